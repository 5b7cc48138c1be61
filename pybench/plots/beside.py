"""Cells beside each other: one figure as a row of dots, the phases of a grant, or two figures as a scatter."""

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
WIDE = 10.0
"""A linear axis becomes a logarithmic one where figures differ more than so many times."""
NAME_WIDTH, NAME_HEIGHT = 0.3, 0.048
"""The room for the name of a point in a scatter, as shares of the panel."""
PHASES = ("queue", "service", "response", "hold", "release", "handoff")


def dots(run: Run, column: str, where: str | None = None) -> picture.Picture:
    """A column of the summary, a row for each cell: the best first, cells that are not SAFE last.

    The bar is the interval of the median, or reaches from the lowest to the highest trial. A triangle is a lower bound.
    """
    selection, measure = chosen(run, where), measures.measure_of(column)
    cells = sorted(selection.cells, key=lambda cell: measures.order_of(cell, measure))
    values = [measures.value_of(cell, measure) for cell in cells]
    logarithmic = measure.scale == "log" or _is_wide(values, measure)
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=0.85 + ROW * len(cells))
        picture.scale(axis, "x", measures.axis_of(measure, values, logarithmic=logarithmic))
        rows(axis, [selection.name(cell) for cell in cells])
        for place, (cell, value) in enumerate(zip(cells, values, strict=True)):
            if measures.drawn(value, logarithmic=logarithmic):
                _dot(axis, cell, value, place)
            told(axis, place, [value.text, picture.verdict_text(cell)], picture.verdict_colour(cell))
        axis.set_title(", ".join(filter(None, [measure.title, selection.fixed])))
    figure.alt = f"{measure.title}. {_said(selection, cells, measure)}"
    return figure


def _said(selection: Selection, cells: Sequence[CellView], measure: Measure) -> str:
    return "; ".join(f"{selection.name(cell)}: {measures.said(cell, measure)}" for cell in cells) + "."


def _is_wide(values: Sequence[measures.Value], measure: Measure) -> bool:
    numbers = [one.number for one in values if one.number is not None]
    # A figure of zero has no place on a logarithmic axis.
    return measure.top is None and bool(numbers) and min(numbers) > 0 and max(numbers) > WIDE * min(numbers)


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


def scatter(run: Run, x: str, y: str, where: str | None = None) -> picture.Picture:
    """Two columns of the summary against each other: a point for each cell, with its name."""
    selection = chosen(run, where)
    across, up = measures.measure_of(x), measures.measure_of(y)
    pairs = [(cell, measures.value_of(cell, across), measures.value_of(cell, up)) for cell in selection.cells]
    log_x = across.scale == "log" or _is_wide([one for _, one, _ in pairs], across)
    log_y = up.scale == "log" or _is_wide([one for _, _, one in pairs], up)
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=4.4)
        picture.scale(axis, "x", measures.axis_of(across, [one for _, one, _ in pairs], logarithmic=log_x))
        picture.scale(axis, "y", measures.axis_of(up, [one for _, _, one in pairs], logarithmic=log_y))
        axis.set_xlabel(across.title)
        axis.set_ylabel(up.title)
        points = [
            (cell, float(one.number or 0), float(other.number or 0))
            for cell, one, other in pairs
            if measures.drawn(one, logarithmic=log_x) and measures.drawn(other, logarithmic=log_y)
        ]
        for (cell, right, high), drop in zip(points, _drops(axis, points), strict=True):
            _named_point(axis, selection.name(cell), cell, right, high, drop)
        axis.set_title(", ".join(filter(None, [f"{up.title} against {across.title}", selection.fixed])))
    figure.alt = f"{up.title} against {across.title}. " + "; ".join(
        f"{selection.name(cell)}: {measures.said(cell, across)} and {measures.said(cell, up)}" for cell, _, _ in pairs
    )
    return figure


def _drops(axis: Axes, points: Sequence[tuple[CellView, float, float]]) -> list[float]:
    """By how much the name of each point is moved down, in shares of the panel, so that names do not overlap."""
    place = axis.transData + axis.transAxes.inverted()
    at = [tuple(place.transform((x, y))) for _, x, y in points]
    taken: list[tuple[float, float]] = []
    drops = [0.0] * len(points)
    for index in sorted(range(len(points)), key=lambda index: -at[index][1]):
        across, height = at[index]
        for other, above in taken:
            if abs(other - across) < NAME_WIDTH and above - height < NAME_HEIGHT:
                height = above - NAME_HEIGHT
        taken.append((across, height))
        drops[index] = at[index][1] - height
    return drops


def _named_point(axis: Axes, name: str, cell: CellView, x: float, y: float, drop: float) -> None:
    axis.plot([x], [y], **picture.marker(cell))
    picture.cross(axis, cell, x, y)
    text = name if cell.verdict == "SAFE" else f"{name} {picture.verdict_text(cell)}"
    ink = picture.colour("--unsafe") if cell.unsafe else picture.colour("--ink")
    down = drop * axis.get_window_extent().height * 72 / axis.get_figure(root=True).dpi  # type: ignore[union-attr]
    axis.annotate(text, (x, y), xytext=(8, -down), textcoords="offset points", va="center", fontsize=9, color=ink)


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
