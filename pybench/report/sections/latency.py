"""Percentiles of the response time against load."""

from __future__ import annotations

from pybench.numbers import format_us
from pybench.report.charts.curves import Measure, over_trials
from pybench.report.charts.grid import Charts, bars, charts_section, measure_figures, measure_table
from pybench.report.section import Section
from pybench.report.view import View

P99 = over_trials(Measure("p99", "acquire_p99_us", "p99 response", "response", format_us, scale="log"))
MEASURES = [
    over_trials(Measure("p50", "acquire_p50_us", "p50 response", "response", format_us, scale="log")),
    P99,
    over_trials(Measure("p999", "acquire_p999_us", "p99.9 response", "response", format_us, scale="log")),
]

ZERO_NOTE = "A response of 0, of a strategy that sends nothing, has no place on a logarithmic scale."


def render(view: View) -> Section:
    """p50, p99 and p99.9 of every cell's response, a panel for each percentile and condition."""
    charts = Charts(
        id="latency",
        title="Latency against load" if view.load_axis else "Latency",
        nav="Latency",
        lede="Response time of grants, from the moment a grant was due until it was held; logarithmic, one scale for "
        f"each percentile. A percentile with fewer than ten samples beyond it is not drawn.{bars(view)}",
        figures=measure_figures(view, MEASURES, "latency"),
        columns=3,
        note=ZERO_NOTE if any(cell.number("acquire_p50_us") == 0 for cell in view.cells) else "",
        tables=[measure_table(view, MEASURES, "Response time")],
    )
    return charts_section(view, charts)
