"""What a grant costs: commands, attempts, and CPU of client and server."""

from __future__ import annotations

from pybench.numbers import format_percent, format_ratio, format_us
from pybench.report.curves import Measure
from pybench.report.grid import Charts, charts_section, measure_figures, measure_table
from pybench.report.section import Section
from pybench.report.view import View

CHARTED = [
    Measure("commands", "commands_per_grant", "commands per grant", "commands", format_ratio),
    Measure("client", "client_cpu_us_per_grant", "client CPU per grant", "CPU time", format_us, ticks=format_us),
    Measure("server", "server_cpu_us_per_grant", "server CPU per grant", "CPU time", format_us, ticks=format_us),
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
        "the load generator.",
        figures=measure_figures(view, CHARTED, "cost"),
        columns=3,
        tables=[measure_table(view, CHARTED[:1] + TABLE_ONLY + CHARTED[1:], "Cost of a grant")],
    )
    return charts_section(view, charts)
