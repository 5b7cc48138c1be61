"""Panels of one measure against load, one line for each lock: throughput, latency, fairness and cost are drawn so.

Unsafe cells are drawn dashed and hollow, with a cross. The scale fits the locks that may be used and are ranked: any
other lock that would flatten them leaves the panel at its top edge, where its figure is written. A cell without a
figure has a mark with the text n/a at its load, at the foot of the panel.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pybench.analysis.quantile_text import quantile_text
from pybench.columns import COLUMNS
from pybench.formats import Format
from pybench.matrix.conditions import chart_title, say_condition
from pybench.numbers import NOT_AVAILABLE, format_count, format_us
from pybench.report.charts.axes import Axis, Text, linear_axis, load_axis, log_axis
from pybench.report.section import Figure
from pybench.report.trial_figures import INVERSIONS
from pybench.report.view import CellView, Series, View

SYMBOL_SUFFIXES = {"SAFE": "", "UNSAFE": "-x-open", "UNDECIDED": "-open", "VOID": "-open-dot"}
# An unsafe lock may reach so many times as high as the safe ones before it is cut off.
UNSAFE_HEADROOM = 1.6
HEIGHT = 260
MARGIN = {"l": 54, "r": 14, "t": 28, "b": 42}
LABEL_LEADING = 14
# A row of the marks for cells without a figure: its height, and how many marks stand in it.
GAP_ROW = 13
GAP_MARKS = 3
MOST_FOR_GAPS = 0.4
"""The largest share of a panel that these rows may take."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of the summary in charts: `title` is its name, `axis` the title of its axis, `key` a part of ids."""

    key: str
    column: str
    title: str
    axis: str
    scale: str = "linear"
    low: str | None = None
    high: str | None = None
    top: float | None = None
    """The highest possible value, where there is one."""

    @property
    def text(self) -> Callable[[float | None], str]:
        """Writes a figure, in the format of its column."""
        return _format(self.column).text

    @property
    def ticks(self) -> Text:
        """Writes a tick of the axis: ticks are round, so that they need no fixed precision."""
        return format_us if _format(self.column) is Format.TIME_US else format_count


def _format(column: str) -> Format:
    return COLUMNS["fifo_inversions" if column == INVERSIONS else column].format


def over_trials(measure: Measure) -> Measure:
    """`measure` with bars from its lowest to its highest trial; its column is one of `trial_figures.TRIAL_RANGES`."""
    return replace(measure, low=f"{measure.column}_lowest", high=f"{measure.column}_highest")


@dataclass(frozen=True, slots=True)
class Point:
    """A figure of a cell, and its place in a panel."""

    cell: CellView
    x: float
    y: float


def drawn_values(cells: Sequence[CellView], measure: Measure) -> list[float]:
    """The values that an axis for `cells` must show, with the ends of intervals; a logarithmic axis shows no zero."""
    columns = [measure.column, measure.low, measure.high]
    values = [cell.number(column) for cell in cells for column in columns if column]
    return [value for value in values if value is not None and (value > 0 or measure.scale == "linear")]


def y_axis(view: View, cells: Sequence[CellView], measure: Measure) -> Axis:
    """The axis that suits `cells`; unsafe and unranked locks count only where they flatten nothing."""
    if measure.scale == "log":
        return log_axis(drawn_values(cells, measure), measure.axis, measure.ticks)
    if measure.top is not None:
        return linear_axis([measure.top], measure.axis, measure.ticks)
    values = drawn_values(cells, measure)
    counting = [cell for cell in cells if view.may_be_used(cell.series) and cell.id not in view.not_ranked]
    usable = drawn_values(counting, measure)
    if usable and max(values) > UNSAFE_HEADROOM * max(usable):
        values = usable
    return linear_axis(values, measure.axis, measure.ticks)


def top_of(view: View, tops: Mapping[CellView, float]) -> float:
    """The top of an axis for cells with these highest figures; unsafe locks count only where they flatten nothing."""
    usable = max((top for cell, top in tops.items() if view.may_be_used(cell.series)), default=0.0)
    highest = max(tops.values(), default=1.0)
    return usable if 0 < usable < highest / UNSAFE_HEADROOM else highest


def load_panel(view: View, cells: Sequence[CellView], measure: Measure, y: Axis, *, id_: str, title: str) -> Figure:
    """`measure` of `cells`, which differ in their line and load only, against the run's load axis."""
    load = view.load_axis
    assert load is not None, "a run without a load axis is drawn as bars"
    x = load_axis([cell.at(load) for cell in cells], chart_title(load))
    gaps = _gaps(view, cells, measure, y, load)
    y = _with_room(y, gaps) if gaps else y
    data: list[dict[str, Any]] = []
    ends: list[tuple[Series, Point]] = []
    for series in view.lines:
        points = [
            Point(cell, cell.at(load), value)
            for cell in cells
            if cell.line == series and (value := cell.number(measure.column)) is not None
        ]
        points = sorted((p for p in points if p.y > 0 or y.scale == "linear"), key=lambda p: p.x)
        if points:
            data += _lines(series, points)
            data.append(_markers(series, points, measure, y))
            ends.append((series, points[-1]))
    labels, right = end_labels(view, ends, y)
    layout: dict[str, Any] = {"xaxis": x.layout(), "yaxis": y.layout(), "annotations": labels}
    layout["margin"] = MARGIN | {"r": right}
    if gaps:
        layout["meta"] = {"gaps": gaps}
    return Figure(id_, title, _alt(view, cells, measure, title, load), data, layout, HEIGHT)


def _gaps(view: View, cells: Sequence[CellView], measure: Measure, y: Axis, load: str) -> list[dict[str, Any]]:
    """The loads at which cells have no place in the panel, with the text that stands there and its lines."""
    found: dict[float, dict[str, list[dict[str, Any]]]] = {}
    for series in view.lines:
        for cell in cells:
            value = cell.number(measure.column)
            if cell.line != series or (value is not None and (value > 0 or y.scale == "linear")):
                continue
            # A logarithmic axis has no place for a zero either.
            text = NOT_AVAILABLE if value is None else "0"
            mark = {"label": series.label, "shape": series.shape, "colour": series.colour, "cell": cell.index}
            found.setdefault(cell.at(load), {}).setdefault(text, []).append(mark)
    return [
        {"x": x, "groups": [{"text": text, "series": series} for text, series in groups.items()]}
        for x, groups in found.items()
    ]


def _with_room(y: Axis, gaps: Sequence[Mapping[str, Any]]) -> Axis:
    """`y` with room below its lowest value for the marks of `gaps`, three in a row, and their texts."""
    rows = max(sum(1 + -(-len(group["series"]) // GAP_MARKS) for group in gap["groups"]) for gap in gaps)
    share = min(GAP_ROW * rows / (HEIGHT - MARGIN["t"] - MARGIN["b"]), MOST_FOR_GAPS)
    if y.scale == "log":
        return replace(y, low=y.low / (y.high / y.low) ** (share / (1 - share)))
    return replace(y, low=y.low - (y.high - y.low) * share / (1 - share))


def _lines(series: Series, points: Sequence[Point]) -> list[dict[str, Any]]:
    """The lines between the points: solid between safe ones, dotted where either end is unsafe."""
    traces = []
    for dash in (series.dash, "dot"):
        xs: list[float | None] = []
        ys: list[float | None] = []
        for before, after in pairwise(points):
            if (before.cell.unsafe or after.cell.unsafe) == (dash == "dot"):
                xs += [before.x, after.x, None]
                ys += [_short(before.y), _short(after.y), None]
        if xs:
            line = {"color": series.colour, "width": 1.5 if dash == "dot" else 2, "dash": dash}
            traces.append(_trace(series) | {"x": xs, "y": ys, "mode": "lines", "line": line, "hoverinfo": "skip"})
    return traces


def _markers(series: Series, points: Sequence[Point], measure: Measure, y: Axis) -> dict[str, Any]:
    inside = [p.y <= y.high for p in points]
    trace = _trace(series) | {
        "x": [p.x for p in points],
        "y": [_short(min(p.y, y.high)) for p in points],
        "ids": [p.cell.index for p in points],
        "mode": "markers",
        "cliponaxis": False,
        "customdata": [hover_text(p.cell, measure) for p in points],
        "hovertemplate": "%{fullData.name}: %{customdata}<extra></extra>",
        "marker": {
            "color": series.colour,
            "size": 8,
            "symbol": [
                symbol(p.cell) if within else "triangle-up-open" for p, within in zip(points, inside, strict=True)
            ],
            "line": {"width": 1.5, "color": "var(--paper)"},
        },
    }
    if measure.low and measure.high:
        trace["error_y"] = _interval(series, points, inside, measure.low, measure.high)
    return trace


def _interval(series: Series, points: Sequence[Point], inside: Sequence[bool], low: str, high: str) -> dict[str, Any]:
    def reach(column: str, sign: int) -> list[float]:
        ends = [p.cell.number(column) for p in points]
        return [
            _short(max(0.0, sign * (end - p.y))) if end is not None and within else 0.0
            for p, end, within in zip(points, ends, inside, strict=True)
        ]

    return {
        "type": "data",
        "symmetric": False,
        "array": reach(high, 1),
        "arrayminus": reach(low, -1),
        "color": series.colour,
        "thickness": 1.25,
        "width": 4,
    }


def cell_trace(cell: CellView) -> dict[str, Any]:
    """What names a trace of `cell` alone: the page finds it by its line, and the filter by its cell."""
    return {
        "type": "scatter",
        "name": series_text(cell.line, struck=cell.breaks_exclusion),
        "meta": cell.line.label,
        "ids": [cell.index],
    }


def cell_stroke(cell: CellView, width: float = 2) -> dict[str, Any]:
    """The colour and dash of a line of `cell`, dotted where it is unsafe."""
    return {"color": cell.line.colour, "width": width, "dash": "dot" if cell.unsafe else cell.line.dash}


def symbol(cell: CellView) -> str:
    """The marker of a cell: the shape of its line, filled when safe, hollow with a cross when unsafe."""
    return cell.line.shape + SYMBOL_SUFFIXES[cell.verdict]


def is_quantile(cell: CellView, measure: Measure) -> bool:
    """Whether the figure is a quantile, which may be pooled, or a bound where it lies beyond the window."""
    return f"{measure.column.removesuffix('_us')}_pooled" in cell.row


def figure_text(cell: CellView, measure: Measure) -> str:
    """The figure of `cell`, written."""
    if is_quantile(cell, measure):
        return quantile_text(cell.row, measure.column)
    return measure.text(cell.number(measure.column))


def hover_text(cell: CellView, measure: Measure) -> str:
    """The figure of `cell` in words, with its interval, and its verdict where it is not SAFE."""
    text = figure_text(cell, measure)
    low, high = (cell.number(column) if column else None for column in (measure.low, measure.high))
    if low is not None and high is not None:
        text += f" ({measure.text(low)} to {measure.text(high)})"
    return text if cell.verdict == "SAFE" else f"{text} {cell.verdict}"


def end_labels(view: View, ends: Sequence[tuple[Series, Point]], y: Axis) -> tuple[list[dict[str, Any]], int]:
    """Names at the ends of the lines, spaced so that none overlaps another, and the right margin.

    There are no names where they would be many or long.
    """
    beyond = {series.label: "" if point.y <= y.high else f" {y.text(point.y)} ↑" for series, point in ends}
    longest = max((len(series.label) for series, _ in ends), default=0)
    if not ends or longest > 14 or len(ends) > 7:
        return [], MARGIN["r"]
    room = HEIGHT - MARGIN["t"] - MARGIN["b"]
    # In the order of the values, cut-off ones too. Lines that end at the same height are named in the order of the run.
    rising = sorted(ends, key=lambda end: -end[1].y)[::-1]
    heights = _spaced([min(max(y.place(point.y), 0.0), 1.0) * room for _, point in rising], room)
    labels = [
        {
            "x": 1,
            "xref": "paper",
            "y": round(moved / room, 4),
            "yref": "paper",
            "xanchor": "left",
            "yanchor": "middle",
            "xshift": 6,
            "showarrow": False,
            "name": series.label,
            "text": series_text(series, struck=series.label in view.struck_lines, further=beyond[series.label]),
        }
        for moved, (series, _) in zip(heights, rising, strict=True)
    ]
    # The page puts the marker of the line before its name.
    return labels, 34 + round(6.7 * max(len(name + figure) for name, figure in beyond.items()))


def _spaced(heights: Sequence[float], room: float) -> list[float]:
    """Ascending `heights` moved so that neighbours are one text line apart, and all stay within `room`."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + LABEL_LEADING) if moved else height)
    for index in range(len(moved) - 1, -1, -1):
        ceiling = room if index == len(moved) - 1 else moved[index + 1] - LABEL_LEADING
        moved[index] = min(moved[index], ceiling)
    return moved


def _alt(view: View, cells: Sequence[CellView], measure: Measure, title: str, load: str) -> str:
    parts = []
    for series in view.lines:
        mine = [cell for cell in cells if cell.line == series]
        values = [
            f"{hover_text(cell, measure)} at {say_condition(load, cell.condition(load))}"
            for cell in sorted(mine, key=lambda cell: cell.at(load))
        ]
        if values:
            parts.append(f"{series.label}: {', '.join(values)}")
    return f"Chart of {measure.title}{', ' + title if title else ''}. " + "; ".join(parts) + "."


def _trace(series: Series) -> dict[str, Any]:
    # The buttons of the legend find the traces of a line by `meta`.
    return {"type": "scatter", "name": plot_text(series.label), "meta": series.label}


def series_text(series: Series, *, struck: bool, further: str = "") -> str:
    """The name of a line for plotly, struck out where its lock broke exclusion; `further` follows it as it is."""
    name = plot_text(series.label)
    return (f"<s>{name}</s>" if struck else name) + plot_text(further)


def plot_text(text: str) -> str:
    """`text` escaped for plotly, which reads some HTML in every text."""
    return html.escape(text, quote=False)


def _short(value: float) -> float:
    return float(f"{value:.5g}")
