"""Percentiles of the response time against load."""

from __future__ import annotations

from pybench.report.charts.curves import Measure, over_trials
from pybench.report.charts.grid import Charts, bars, charts_section, measure_figures, measure_table
from pybench.report.section import Section
from pybench.report.view import View

P99 = over_trials(Measure("p99", "acquire_p99_us", "p99 response", "response", scale="log"))
MEASURES = [
    over_trials(Measure("p50", "acquire_p50_us", "p50 response", "response", scale="log")),
    P99,
    over_trials(Measure("p999", "acquire_p999_us", "p99.9 response", "response", scale="log")),
]


def render(view: View) -> Section:
    """p50, p99 and p99.9 of every cell's response, a panel for each percentile and load."""
    charts = Charts(
        id="latency",
        title="Latency against load" if view.load_axis else "Latency",
        nav="Latency",
        lede="Response time: from the moment a grant was due until the lock was held. The scale is logarithmic, and "
        f"the same for all panels of a percentile. A percentile with fewer than ten samples beyond it is n/a."
        f"{bars(view)}",
        figures=measure_figures(view, MEASURES, "latency"),
        columns=3,
        tables=[measure_table(view, MEASURES, "Response time")],
    )
    return charts_section(charts)
