"""What a grant costs: commands, attempts, and CPU time of client and server."""

from __future__ import annotations

from dataclasses import replace

from pybench.report.charts.curves import Measure, over_trials
from pybench.report.charts.grid import Charts, bars, charts_section, measure_figures, measure_table
from pybench.report.section import Section
from pybench.report.view import View

CHARTED = [
    over_trials(Measure("commands", "commands_per_grant", "commands per grant", "commands per grant")),
    over_trials(Measure("client", "client_cpu_us_per_grant", "client CPU", "CPU time per grant")),
    over_trials(Measure("server", "server_cpu_us_per_grant", "server CPU", "CPU time per grant")),
]
TABLE_ONLY = [
    Measure("attempts", "attempts_per_grant", "attempts per grant", "attempts"),
    Measure("contention", "contention_rate", "refused attempts", "share"),
]


# Beyond this ratio of the highest to the lowest, the cheapest lock would be lost on a linear axis.
WIDE = 10.0


def _scaled(view: View, measure: Measure) -> Measure:
    """`measure`, with a logarithmic axis where the costs of locks that may be used differ by more than `WIDE`."""
    usable = [cell.number(measure.column) for cell in view.cells if view.may_be_used(cell.series)]
    positive = [value for value in usable if value]
    wide = bool(positive) and max(positive) > WIDE * min(positive)
    return replace(measure, scale="log") if wide and measure in CHARTED[1:] else measure


def render(view: View) -> Section:
    """Commands and CPU time per grant of every cell, refused attempts included."""
    charted = [_scaled(view, measure) for measure in CHARTED]
    logarithmic = " The scale is logarithmic where costs differ more than tenfold." if charted != CHARTED else ""
    charts = Charts(
        id="cost",
        title="Cost of a grant",
        nav="Cost",
        lede="Commands and CPU time per grant. They include the release, refused attempts, and the CPU time of the "
        f"load generator.{logarithmic}{bars(view)}",
        figures=measure_figures(view, charted, "cost"),
        columns=3,
        tables=[measure_table(view, CHARTED[:1] + TABLE_ONLY + CHARTED[1:], "Cost of a grant")],
    )
    return charts_section(charts)
