"""Panels of one measure in a run of one load: a row for each lock, with a dot and its interval."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pybench.numbers import NOT_AVAILABLE
from pybench.report.charts.axes import Axis
from pybench.report.charts.curves import Measure, cell_trace, hover_text, plot_text, series_text, symbol
from pybench.report.section import Figure
from pybench.report.view import CellView

ROW = 34
# A name of up to so many letters stands beside its dot. A longer one stands above it, in lines of `LINE_LETTERS`, for
# which the narrowest panel has room; each line is `LINE` pixels high.
LONGEST_BESIDE = 18
LINE_LETTERS = 38
LINE = 15
MARGIN = {"l": 16, "r": 24, "t": 6, "b": 42}


def dot_panel(cells: Sequence[CellView], measure: Measure, axis: Axis, *, id_: str, title: str) -> Figure:
    """`measure` of `cells`, one row for each line, in the order of the run; a row without a figure has the text n/a."""
    rows = {cell.line.label: len(cells) - place for place, cell in enumerate(cells)}
    found = [(cell, _placed(cell, measure, axis)) for cell in cells]
    data = [_dot(cell, value, rows[cell.line.label], measure, axis) for cell, value in found]
    if all(value is None for _, value in found):
        data = []
    # A figure beyond the right edge stands beside the name.
    beyond = {
        cell.line.label: f" {measure.text(value)} →" if value is not None and value > axis.high else ""
        for cell, value in found
    }
    longest = max((len(name + figure) for name, figure in beyond.items()), default=0)
    y: dict[str, Any] = {"type": "linear", "range": [0.4, len(cells) + 0.6], "showgrid": False}
    layout: dict[str, Any] = {"xaxis": axis.layout() | {"showgrid": True}, "yaxis": y, "margin": MARGIN}
    row = ROW
    if longest <= LONGEST_BESIDE:
        names = [series_text(one.line, struck=one.breaks_exclusion, further=beyond[one.line.label]) for one in cells]
        y |= {"tickvals": list(rows.values()), "ticktext": names}
        layout["margin"] = MARGIN | {"l": MARGIN["l"] + round(7 * longest)}
    else:
        y["tickvals"] = []
        above = [_above(cell, rows[cell.line.label], beyond[cell.line.label]) for cell in cells]
        layout["annotations"] = above
        row += LINE * max(name["text"].count("<br>") + 1 for name in above) - LINE // 2
    # The page removes the rows of hidden locks, and needs to know the height of a row.
    layout["meta"] = {"row": row}
    values = "; ".join(f"{cell.line.label}: {hover_text(cell, measure)}" for cell in cells)
    alt = f"Chart of {measure.title}{', ' + title if title else ''}. {values}."
    return Figure(id_, title, alt, data, layout, MARGIN["t"] + MARGIN["b"] + row * max(len(cells), 1))


def _placed(cell: CellView, measure: Measure, axis: Axis) -> float | None:
    """The figure of `cell`, where the axis has a place for it: a logarithmic one has none for a zero."""
    value = cell.number(measure.column)
    return None if value is None or (axis.scale == "log" and value <= 0) else value


def _above(cell: CellView, row: int, further: str) -> dict[str, Any]:
    """The name of `cell` above its dot in row `row`; a long name breaks before its arguments."""
    text = "<br>".join(plot_text(line) for line in _lines(cell.line.label))
    return {
        "x": 0,
        "xref": "paper",
        "y": row,
        "yref": "y",
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 5,
        "align": "left",
        "showarrow": False,
        "name": cell.line.label,
        "text": (f"<s>{text}</s>" if cell.breaks_exclusion else text) + plot_text(further),
    }


def _lines(label: str) -> list[str]:
    lines = [""]
    for piece in re.split(r"(?<=, )|(?=\()", label):
        if lines[-1] and len(lines[-1] + piece.rstrip()) > LINE_LETTERS:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > LINE_LETTERS:
            lines[-1:] = [lines[-1][:LINE_LETTERS], lines[-1][LINE_LETTERS:]]
    return [line.rstrip() for line in lines]


def _dot(cell: CellView, value: float | None, row: int, measure: Measure, axis: Axis) -> dict[str, Any]:
    if value is None:
        return _gap(cell, row, measure, axis)
    within = value <= axis.high
    trace = cell_trace(cell) | {
        "mode": "markers",
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


def _gap(cell: CellView, row: int, measure: Measure, axis: Axis) -> dict[str, Any]:
    """The row of a cell without a place on the axis: the text n/a, or 0 on a logarithmic axis."""
    return cell_trace(cell) | {
        "mode": "text",
        "x": [axis.low],
        "y": [row],
        "text": [NOT_AVAILABLE if cell.number(measure.column) is None else "0"],
        "textposition": "middle right",
        "textfont": {"color": "var(--ink-soft)"},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }
