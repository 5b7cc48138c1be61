"""Panels of one measure without a load to draw it against: a row a strategy, a dot with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pybench.report.axes import Axis
from pybench.report.curves import Measure, hover_text, plot_text, series_text, symbol
from pybench.report.section import Figure
from pybench.report.view import CellView

ROW = 34
MARGIN = {"l": 16, "r": 24, "t": 6, "b": 42}


def dot_panel(cells: Sequence[CellView], measure: Measure, axis: Axis, *, id_: str, title: str) -> Figure:
    """`measure` of `cells`, one of each strategy, in the order of the run from above."""
    shown = [(cell, value) for cell in cells if (value := cell.number(measure.column)) is not None]
    rows = {cell.line.label: len(shown) - place for place, (cell, _) in enumerate(shown)}
    data = [_dot(cell, value, rows[cell.line.label], measure, axis) for cell, value in shown]
    # What is cut off at the right edge has its figure beside its name.
    beyond = ["" if value <= axis.high else f" {measure.text(value)} →" for _, value in shown]
    names = [
        series_text(cell.line, unsafe=cell.unsafe, further=figure)
        for (cell, _), figure in zip(shown, beyond, strict=True)
    ]
    longest = max((len(cell.line.label + figure) for (cell, _), figure in zip(shown, beyond, strict=True)), default=0)
    layout = {
        "xaxis": axis.layout() | {"showgrid": True},
        "yaxis": {
            "type": "linear",
            "range": [0.4, len(shown) + 0.6],
            "tickvals": list(rows.values()),
            "ticktext": names,
            "showgrid": False,
        },
        "margin": MARGIN | {"l": MARGIN["l"] + min(round(7 * longest), 190)},
    }
    values = "; ".join(f"{cell.line.label}: {hover_text(cell, measure)}" for cell, _ in shown)
    alt = f"Chart of {measure.title}{', ' + title if title else ''}. {values}."
    return Figure(id_, title, alt, data, layout, MARGIN["t"] + MARGIN["b"] + ROW * max(len(shown), 1))


def _dot(cell: CellView, value: float, row: int, measure: Measure, axis: Axis) -> dict[str, Any]:
    within = value <= axis.high
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": plot_text(cell.line.label),
        "meta": cell.line.label,
        "x": [value if within else axis.high * 0.995],
        "y": [row],
        "cliponaxis": False,
        "customdata": [hover_text(cell, measure)],
        "hovertemplate": "%{fullData.name}: %{customdata}<extra></extra>",
        "marker": {
            "color": cell.line.colour,
            "size": 10,
            "symbol": symbol(cell) if within else "triangle-right-open",
            "line": {"width": 1.5, "color": "var(--paper)"},
        },
    }
    low, high = (cell.number(column) if column else None for column in (measure.low, measure.high))
    if within and low is not None and high is not None:
        trace["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [max(0.0, high - value)],
            "arrayminus": [max(0.0, value - low)],
            "color": cell.line.colour,
            "thickness": 1.5,
            "width": 5,
        }
    return trace
