"""What a grant costs: commands, attempts, and CPU of client and server."""

from __future__ import annotations

from dataclasses import replace

from pybench.numbers import format_percent, format_ratio, format_us
from pybench.report.charts.curves import Measure, over_trials
from pybench.report.charts.grid import Charts, bars, charts_section, measure_figures, measure_table
from pybench.report.section import Section
from pybench.report.view import View

CHARTED = [
    over_trials(Measure("commands", "commands_per_grant", "commands per grant", "commands per grant", format_ratio)),
    over_trials(
        Measure("client", "client_cpu_us_per_grant", "client CPU", "CPU time per grant", format_us, ticks=format_us)
    ),
    over_trials(
        Measure("server", "server_cpu_us_per_grant", "server CPU", "CPU time per grant", format_us, ticks=format_us)
    ),
]
TABLE_ONLY = [
    Measure("attempts", "attempts_per_grant", "attempts per grant", "attempts", format_ratio),
    Measure("contention", "contention_rate", "refused attempts", "share", format_percent),
]


# Beyond it the cheapest would be lost on a linear axis: locks of different kinds of server lie that far apart.
WIDE = 10.0


def _scaled(view: View, measure: Measure) -> Measure:
    """`measure`, with a logarithmic axis where locks that may be used are an order of magnitude apart."""
    usable = [cell.number(measure.column) for cell in view.cells if view.may_be_used(cell.series)]
    positive = [value for value in usable if value]
    wide = bool(positive) and max(positive) > WIDE * min(positive)
    return replace(measure, scale="log") if wide and measure in CHARTED[1:] else measure


def render(view: View) -> Section:
    """Commands and CPU time that a grant of every cell took, refused attempts included."""
    charted = [_scaled(view, measure) for measure in CHARTED]
    logarithmic = " Where locks are far apart the scale is logarithmic." if charted != CHARTED else ""
    charts = Charts(
        id="cost",
        title="Cost of a grant",
        nav="Cost",
        lede="Commands sent and CPU time spent for each grant, with its release, its refused attempts and its share of "
        f"the load generator.{logarithmic}{bars(view)}",
        figures=measure_figures(view, charted, "cost"),
        columns=3,
        tables=[measure_table(view, CHARTED[:1] + TABLE_ONLY + CHARTED[1:], "Cost of a grant")],
    )
    return charts_section(view, charts)
