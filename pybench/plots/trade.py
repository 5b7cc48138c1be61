"""Two figures of every cell against each other: what one gains costs the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybench.plots import measures, picture
from pybench.plots.selection import chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pybench.records import Run
    from pybench.report.view import CellView

LINE = 0.075
"""The height of a line of the key, as a share of the panel."""


def scatter(run: Run, x: str, y: str, where: str | None = None) -> picture.Picture:
    """Two columns of the summary against each other: a numbered point for each cell, and a key with the names."""
    selection = chosen(run, where)
    across, up = measures.measure_of(x), measures.measure_of(y)
    columns = [{cell: measures.value_of(cell, one) for cell in selection.cells} for one in (across, up)]
    scaled = [
        measures.axis_of(one, measures.usable(values), title=one.title)
        for one, values in zip((across, up), columns, strict=True)
    ]
    order = sorted(selection.cells, key=lambda cell: measures.order_of(cell, across))
    with picture.theme():
        height = max(4.2, 0.9 + 0.26 * len(order))
        figure, (axis,) = picture.panels(1, columns=1, width=8.6, height=height)
        picture.scale(axis, "x", scaled[0])
        picture.scale(axis, "y", scaled[1])
        for number, cell in enumerate(order, 1):
            one, other = (values[cell] for values in columns)
            if measures.has_place(one, scaled[0]) and measures.has_place(other, scaled[1]):
                _point(axis, cell, number, float(one.number or 0), float(other.number or 0))
            text = picture.with_verdict(selection.name(cell), cell)
            _line(axis, number, text, picture.colour("--unsafe" if cell.unsafe else "--ink"))
        axis.set_title(", ".join(filter(None, [f"{up.title} against {across.title}", selection.fixed])))
    figure.alt = f"{up.title} against {across.title}. " + "; ".join(
        f"{selection.name(cell)}: {measures.said(cell, across)} and {measures.said(cell, up)}" for cell in order
    )
    return figure


def _point(axis: Axes, cell: CellView, number: int, x: float, y: float) -> None:
    axis.plot([x], [y], **picture.marker(cell))
    picture.cross(axis, cell, x, y)
    axis.annotate(str(number), (x, y), xytext=(0, -14), textcoords="offset points", ha="center", fontsize=9)


def _line(axis: Axes, number: int, text: str, ink: str) -> None:
    look: dict[str, Any] = {
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "va": "center",
        "fontsize": 9,
        "color": ink,
    }
    at = (1.0, 1.0 - (number - 0.5) * LINE)
    axis.annotate(str(number), at, xytext=(22, 0), ha="right", **look, annotation_clip=False)
    axis.annotate(text, at, xytext=(30, 0), **look, annotation_clip=False)
