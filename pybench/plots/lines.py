"""A figure against load: a line for each lock, a panel for each of the other conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pybench.errors import InputError
from pybench.matrix.conditions import chart_title, say_condition, say_conditions
from pybench.plots import measures, picture
from pybench.plots.selection import Selection, chosen
from pybench.report.charts.axes import Axis, load_axis
from pybench.report.charts.grid import SHARED_SCALE_RATIO

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pybench.records import Run
    from pybench.report.charts.curves import Measure
    from pybench.report.view import CellView

LABEL_GAP = 0.055
"""The least distance of two names at the ends of lines, as a share of the height of a panel."""


def against_load(run: Run, column: str = "safe_grants_per_s", where: str | None = None) -> picture.Picture:
    """A column of the summary against load, with its interval; `where` is a query that chooses cells.

    Raises InputError where the cells differ in no axis of load.
    """
    selection, measure = chosen(run, where), measures.measure_of(column)
    load = selection.load_axis
    if load is None:
        raise InputError("these cells differ in no axis of load", hint="plots.dots shows them beside each other")
    groups: dict[str, list[CellView]] = {}
    for cell in selection.cells:
        inside = (load, *([selection.view.line_axis] if selection.view.line_axis else []))
        groups.setdefault(say_conditions(selection.varied(cell, without=inside)), []).append(cell)
    with picture.theme():
        figure, axes = picture.panels(len(groups), columns=2, width=4.6, height=3.2)
        for axis, (title, cells), heights in zip(axes, groups.items(), _heights(groups.values(), measure), strict=True):
            _panel(axis, cells, measure, load, heights)
            axis.set_title(", ".join(filter(None, [measure.title, title or selection.fixed])))
    figure.alt = f"{measure.title} against {chart_title(load)}. {_told(selection, measure)}"
    return figure


def _heights(groups: Iterable[Sequence[CellView]], measure: Measure) -> list[Axis]:
    """The vertical axis of each panel: one for all, unless a linear one would flatten some of them."""
    of_panels = [measures.usable({cell: measures.value_of(cell, measure) for cell in cells}) for cells in groups]
    own = [measures.axis_of(measure, values) for values in of_panels]
    shared = measures.axis_of(measure, [value for values in of_panels for value in values])
    is_flat = shared.scale == "linear" and shared.high > SHARED_SCALE_RATIO * min(axis.high for axis in own)
    return own if is_flat else [shared] * len(own)


def _panel(axis: Axes, cells: Sequence[CellView], measure: Measure, load: str, heights: Axis) -> None:
    loads = load_axis([cell.at(load) for cell in cells], chart_title(load))
    values = {cell: measures.value_of(cell, measure) for cell in cells}
    picture.scale(axis, "x", loads)
    picture.scale(axis, "y", heights)
    ends: list[tuple[float, CellView]] = []
    for label in dict.fromkeys(cell.line.label for cell in cells):
        mine = sorted((cell for cell in cells if cell.line.label == label), key=lambda cell: cell.at(load))
        shown = [one for one in mine if measures.has_place(values[one], heights)]
        for before, after in pairwise(shown):
            worse = before if before.unsafe else after
            ys = [float(values[one].number or 0.0) for one in (before, after)]
            xs = [one.at(load) for one in (before, after)]
            axis.plot(xs, ys, color=picture.colour(worse.line.colour), linestyle=picture.dash(worse), linewidth=1.8)
        for one in shown:
            _point(axis, one, one.at(load), values[one])
        if shown:
            ends.append((float(values[shown[-1]].number or 0.0), shown[-1]))
    _names(axis, ends)


def _point(axis: Axes, cell: CellView, x: float, value: measures.Value) -> None:
    y = float(value.number or 0.0)
    look: dict[str, Any] = picture.marker(cell)
    if value.is_bound:
        look |= {"marker": "^", "markerfacecolor": picture.colour("--paper")}
    elif value.low is not None and value.high is not None:
        axis.plot([x, x], [value.low, value.high], color=picture.colour(cell.line.colour), linewidth=1.4, alpha=0.6)
    axis.plot([x], [y], **look)
    picture.cross(axis, cell, x, y)


def _names(axis: Axes, ends: Sequence[tuple[float, CellView]]) -> None:
    """The names of the lines at their ends, apart from each other; an unsafe one has its verdict."""
    # To the place of a figure on the panel, whichever scale it has.
    place = axis.transData + axis.transAxes.inverted()
    x = axis.get_xlim()[1]
    heights = sorted(((place.transform((x, y))[1], cell) for y, cell in ends), key=lambda pair: pair[0])
    moved: list[float] = []
    for height, _ in heights:
        moved.append(max(height, moved[-1] + LABEL_GAP) if moved else max(height, 0.0))
    over = max(moved, default=0.0) - 1.0
    for height, (_, cell) in zip(moved, heights, strict=True):
        axis.annotate(
            picture.with_verdict(cell.line.label, cell),
            (1.0, height - max(over, 0.0)),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=picture.colour("--unsafe") if cell.unsafe else picture.colour(cell.line.colour),
            annotation_clip=False,
        )


def _told(selection: Selection, measure: Measure) -> str:
    load = selection.load_axis
    assert load is not None, "the caller has looked"
    parts: dict[str, list[str]] = {}
    for cell in selection.cells:
        inside = (load, *([selection.view.line_axis] if selection.view.line_axis else []))
        further = say_conditions(selection.varied(cell, without=inside))
        name = f"{cell.line.label}, {further}" if further else cell.line.label
        parts.setdefault(name, []).append(
            f"{measures.said(cell, measure)} with {say_condition(load, cell.condition(load))}"
        )
    return "; ".join(f"{name}: {', '.join(figures)}" for name, figures in parts.items()) + "."
