"""Throughput against load, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

from pybench.report.charts.curves import Measure
from pybench.report.charts.grid import Charts, charts_section, measure_figures, measure_table
from pybench.report.section import Figure, Section
from pybench.report.view import View

MEASURE = Measure("rate", "grants_per_s", "grants/s", "grants/s", low="grants_per_s_low", high="grants_per_s_high")


def render(view: View) -> Section:
    """Grants per second of every cell, a panel for each load except its load axis."""
    figures = measure_figures(view, [MEASURE], "throughput")
    lede = ["Grants per second."]
    if view.sureness is not None:
        lede.append(f"A point is the median over trials, its bar the {view.sureness} interval of that median.")
    elif any((cell.number("trials") or 0) > 1 for cell in view.cells):
        lede.append("A point is the median over trials, its bar the interval of that median.")
    else:
        lede.append("A point is a single trial, so there is no interval.")
    if len({str(figure.layout["yaxis"]["range"][1]) for figure in figures if view.load_axis}) > 1:
        lede.append("Each panel has its own scale.")
    note = ""
    if _cut_off(figures):
        note = (
            "A triangle at the edge of a panel is a figure beyond the scale, which fits the locks that may be used. "
            "The table has that figure."
        )
    charts = Charts(
        id="throughput",
        title="Throughput against load" if view.load_axis else "Throughput",
        nav="Throughput",
        lede=" ".join(lede),
        figures=figures,
        tables=[measure_table(view, [MEASURE], "Throughput")],
        note=note,
    )
    return charts_section(charts)


def _cut_off(figures: Sequence[Figure]) -> bool:
    return any("triangle" in str(trace.get("marker", {}).get("symbol")) for f in figures for trace in f.data)
