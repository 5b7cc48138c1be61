"""Grants over time: a line for each lock, a panel for each of the other conditions, planned faults shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pybench.errors import InputError
from pybench.matrix.conditions import say_conditions
from pybench.numbers import format_count
from pybench.plots import picture
from pybench.plots.selection import chosen
from pybench.report.charts.axes import linear_axis
from pybench.report.charts.curves import top_of
from pybench.report.sections import faults, timeline

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from pybench.records import Run
    from pybench.report.view import CellView, View

TITLE = "grants per 100 ms"


def over_time(run: Run, where: str | None = None) -> picture.Picture:
    """Grants in each 100 ms of the window, medians over trials; `where` is a query that chooses cells.

    Raises InputError where no window had a whole step.
    """
    selection = chosen(run, where)
    steps = timeline.per_100_ms(selection.view)
    medians = {str(cell): rows["grants"].groupby(rows["start_ns"]).median() for cell, rows in steps.groupby("cell")}
    groups: dict[str, list[CellView]] = {}
    for cell in selection.cells:
        if cell.id in medians:
            groups.setdefault(say_conditions(selection.varied(cell)), []).append(cell)
    if not groups:
        raise InputError("no window of these cells had a whole step of 100 ms", hint="measure with a longer --duration")
    length_s = {str(cell): float(rows["step_ns"].iloc[0]) / 1e9 for cell, rows in steps.groupby("cell")}
    with picture.theme():
        figure, axes = picture.panels(len(groups), columns=2, width=4.6, height=2.8)
        for axis, (title, cells) in zip(axes, groups.items(), strict=True):
            _panel(axis, selection.view, cells, medians, length_s)
            axis.set_title(title or selection.fixed)
    told = [_told(selection.view, title, cells, medians) for title, cells in groups.items()]
    figure.alt = f"Grants per 100 ms over time, medians over trials. {' '.join(told)}"
    return figure


def _panel(
    axis: Axes,
    view: View,
    cells: Sequence[CellView],
    medians: Mapping[str, pd.Series],
    length_s: Mapping[str, float],
) -> None:
    end = max(float(medians[cell.id].index.max()) / 1e9 + length_s[cell.id] for cell in cells)
    picture.scale(axis, "x", timeline.time_axis(end))
    tops = {cell: float(medians[cell.id].max()) for cell in cells}
    picture.scale(axis, "y", linear_axis([top_of(view, tops)], TITLE, format_count))
    for begin, until, _ in faults.spans(view, cells):
        # A fault of a moment has no width of its own.
        axis.axvspan(begin, until, color=picture.colour("--unsafe"), alpha=faults.OPACITY, linewidth=1, zorder=0)
    for cell in cells:
        steps, ink = medians[cell.id], picture.colour(cell.line.colour)
        places = timeline.middles(steps.index, length_s[cell.id] * 1e9)
        name = picture.with_verdict(cell.line.label, cell)
        axis.plot(places, list(steps), color=ink, linestyle=picture.dash(cell), linewidth=1.8, label=name)
        axis.plot(places[-1:], list(steps)[-1:], **picture.marker(cell))
    axis.legend(fontsize=8, frameon=False, loc="best")


def _told(view: View, title: str, cells: Sequence[CellView], medians: Mapping[str, pd.Series]) -> str:
    lines = "; ".join(
        f"{cell.line.label}, {cell.verdict}: {format_count(float(medians[cell.id].min()))} to "
        f"{format_count(float(medians[cell.id].max()))}"
        for cell in cells
    )
    return f"{title + ': ' if title else ''}{lines}.{faults.told(faults.spans(view, cells))}"
