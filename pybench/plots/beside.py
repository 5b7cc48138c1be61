"""Rows of dots beside each other: one figure of several cells, or the phases of one cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pybench.analysis.stats import quantile
from pybench.numbers import format_us
from pybench.plots import measures, picture
from pybench.plots.selection import Selection, chosen
from pybench.report.charts.axes import log_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pybench.records import Run
    from pybench.report.charts.curves import Measure
    from pybench.report.view import CellView

ROW = 0.28
"""The height of a row in inches."""
PHASES = ("queue", "service", "response", "hold", "release", "handoff")


def dots(run: Run, column: str, where: str | None = None) -> picture.Picture:
    """A column of the summary, a row for each cell: the best first, cells that are not SAFE last.

    The bar is the interval of the median, or reaches from the lowest to the highest trial. A triangle is a lower bound.
    """
    selection, measure = chosen(run, where), measures.measure_of(column)
    cells = sorted(selection.cells, key=lambda cell: measures.order_of(cell, measure))
    values = {cell: measures.value_of(cell, measure) for cell in cells}
    scaled = measures.axis_of(measure, measures.usable(values))
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=0.85 + ROW * len(cells))
        picture.scale(axis, "x", scaled)
        rows(axis, [selection.name(cell) for cell in cells])
        for place, (cell, value) in enumerate(values.items()):
            if measures.has_place(value, scaled):
                _dot(axis, cell, value, place)
            verdict = picture.verdict_text(cell)
            if cell.id in selection.view.not_ranked:
                verdict += ", not ranked"
            told(axis, place, [value.text, verdict], picture.verdict_colour(cell))
        axis.set_title(", ".join(filter(None, [measure.title, selection.fixed])))
    figure.alt = f"{measure.title}. {_said(selection, cells, measure)}"
    return figure


def _said(selection: Selection, cells: Sequence[CellView], measure: Measure) -> str:
    return "; ".join(f"{selection.name(cell)}: {measures.said(cell, measure)}" for cell in cells) + "."


def _dot(axis: Axes, cell: CellView, value: measures.Value, place: int) -> None:
    x = float(value.number or 0.0)
    look: dict[str, Any] = picture.marker(cell)
    if value.is_bound:
        look |= {"marker": ">", "markerfacecolor": picture.colour("--paper")}
    elif value.low is not None and value.high is not None:
        axis.plot([value.low, value.high], [place] * 2, color=picture.colour(cell.line.colour), linewidth=2, alpha=0.5)
    axis.plot([x], [place], **look)
    picture.cross(axis, cell, x, place)


def rows(axis: Axes, names: Sequence[str]) -> None:
    """Prepare `axis` for rows with these names, the first on top."""
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_yticks(range(len(names)), names, color=picture.colour("--ink"))
    axis.tick_params(axis="y", length=0, pad=10)
    axis.spines["left"].set_visible(False)
    axis.grid(visible=False, axis="y")


def told(axis: Axes, place: int, texts: Sequence[str], colour: str, offsets: Sequence[int] = (10, 92)) -> None:
    """Texts to the right of a row, `offsets` points away: figures, and last in `colour` what they are worth."""
    for offset, text in zip(offsets, texts, strict=True):
        is_last = offset == offsets[-1]
        axis.annotate(
            text,
            (1.0, place),
            xycoords=("axes fraction", "data"),
            xytext=(offset, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=colour if is_last else picture.colour("--ink"),
            fontweight="bold" if is_last else "normal",
            annotation_clip=False,
        )


def phases(run: Run, cell: str) -> picture.Picture:
    """Each phase of a grant in the cell with this id, over the samples of all its trials: from p50 to p99."""
    (view,) = chosen(run, f"cell == {cell!r}").cells
    recorded = {phase: run.histogram(cell, phase) for phase in PHASES}
    found = {phase: [_us(quantile(*one, q)) for q in (0.5, 0.99)] for phase, one in recorded.items() if len(one.counts)}
    # The queue of a closed loop is empty: a time of zero has no place on the axis.
    found = {phase: ends for phase, ends in found.items() if any(ends)}
    scaled = log_axis([us for ends in found.values() for us in ends if us], "filled: p50, hollow: p99", format_us)
    ink = picture.colour(view.line.colour)
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=0.85 + ROW * len(found))
        picture.scale(axis, "x", scaled)
        rows(axis, list(found))
        for place, (half, most) in enumerate(found.values()):
            if half and most:
                axis.plot([half, most], [place] * 2, color=ink, linewidth=2, alpha=0.4)
            for us, fill in ((most, picture.colour("--paper")), (half, ink)):
                if us:
                    axis.plot([us], [place], **{**picture.marker(view), "markerfacecolor": fill})
            told(axis, place, [format_us(half), format_us(most), ""], picture.colour("--ink"), (10, 75, 140))
        axis.set_title(f"phases: {view.name} {picture.verdict_text(view)}")
    figure.alt = f"Phases of {view.name}, {view.verdict}, p50 and p99. " + "; ".join(
        f"{phase}: {format_us(half)} and {format_us(most)}" for phase, (half, most) in found.items()
    )
    return figure


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e3
