"""What a grant costs: commands, attempts, and CPU of client and server."""

from __future__ import annotations

from pybench.numbers import format_percent, format_ratio, format_us
from pybench.report.curves import Measure, over_trials
from pybench.report.grid import Charts, bars, charts_section, measure_figures, measure_table
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


def render(view: View) -> Section:
    """Commands and CPU time that a grant of every cell took, refused attempts included."""
    charts = Charts(
        id="cost",
        title="Cost of a grant",
        nav="Cost",
        lede="Commands sent and CPU time spent for each grant, with its release, its refused attempts and its share of "
        f"the load generator.{bars(view)}",
        figures=measure_figures(view, CHARTED, "cost"),
        columns=3,
        tables=[measure_table(view, CHARTED[:1] + TABLE_ONLY + CHARTED[1:], "Cost of a grant")],
    )
    return charts_section(view, charts)
