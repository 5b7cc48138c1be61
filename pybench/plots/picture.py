"""A figure that shows itself in a notebook, has a text alternative, and looks like the report."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from pybench.report.html import VERDICT_SYMBOLS, asset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pybench.report.charts.axes import Axis
    from pybench.report.view import CellView

DPI = 120
"""Pixels per inch of a picture in a notebook; it is shown at 100, so that letters are sharp on dense screens."""
SHOWN_DPI = 100
_MARGIN = 0.17
"""Paper around the picture, in inches."""
_MARKERS = {"circle": "o", "square": "s", "diamond": "D"}
_DASHES: dict[str, Any] = {
    "solid": "-",
    "longdash": (0, (7, 2.5)),
    "longdashdot": (0, (7, 2.5, 1.5, 2.5)),
    "dash": (0, (3.5, 2.5)),
}
UNSAFE_DASH: Any = (0, (1, 1.8))
VERDICT_COLOURS = {"SAFE": "--safe", "UNSAFE": "--unsafe", "UNDECIDED": "--undecided", "VOID": "--undecided"}


class Picture(Figure):
    """A figure with a text alternative. A notebook shows it as the value of a cell, without pyplot."""

    alt = ""
    """What the picture shows, with its figures."""

    def __repr__(self) -> str:
        return self.alt or super().__repr__()

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """The picture as a card, and its text and its size for the page."""
        from PIL import Image

        from pybench.plots.card import card

        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=DPI, bbox_inches="tight", pad_inches=_MARGIN)
        image = Image.open(drawn)
        shown = {"width": image.width * SHOWN_DPI // DPI, "height": image.height * SHOWN_DPI // DPI}
        return card(image, colour("--line-strong")), {**shown, "alt": self.alt}


@cache
def colour(name: str) -> str:
    """The colour of the report's light theme with this name: `--ink`, or `var(--series-1)` as a series has it."""
    variable = re.escape(name.removeprefix("var(").removesuffix(")"))
    found = re.search(rf"{variable}: light-dark\((#\w+),", asset("assets/page.css"))
    assert found is not None, f"{name} is a colour of page.css"
    return found[1]


@contextmanager
def theme() -> Iterator[None]:
    """The look of the report, for what is drawn inside."""
    look: dict[Any, Any] = {
        "font.size": 10,
        "font.family": "sans-serif",
        "text.color": colour("--ink"),
        "text.parse_math": False,
        "axes.labelcolor": colour("--ink-soft"),
        "axes.labelsize": 10,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.edgecolor": colour("--line-strong"),
        "axes.facecolor": colour("--paper"),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": colour("--line"),
        "xtick.color": colour("--line-strong"),
        "ytick.color": colour("--line-strong"),
        "xtick.labelcolor": colour("--ink-soft"),
        "ytick.labelcolor": colour("--ink-soft"),
        "xtick.minor.visible": False,
        "figure.facecolor": colour("--paper"),
    }
    with mpl.rc_context(look):
        yield


def panels(count: int, *, columns: int, width: float, height: float, share: bool = False) -> tuple[Picture, list[Axes]]:
    """A picture of `count` panels, each of `width` and `height` in inches, side by side in rows of `columns`."""
    across = min(columns, count)
    down = -(-count // across)
    figure = Picture(figsize=(width * across, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharey=share)
    every = [axis for row in axes for axis in row]
    for spare in every[count:]:
        spare.remove()
    return figure, every[:count]


def scale(axes: Axes, which: Literal["x", "y"], as_in: Axis) -> None:
    """Give an axis of `axes` the scale, the ends, the ticks and the title that the report computed."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": as_in.scale, f"{which}lim": (as_in.low, as_in.high)})
    axis.set_ticks(list(as_in.ticks), [as_in.text(tick) for tick in as_in.ticks])
    axis.set_ticks([], minor=True)
    axis.set_label_text(as_in.title)


def marker(cell: CellView) -> dict[str, Any]:
    """The marker of a cell: the shape of its line; filled where it is SAFE, hollow otherwise."""
    ink = colour(cell.line.colour)
    fill = ink if cell.verdict == "SAFE" else colour("--paper")
    look = {"marker": _MARKERS[cell.line.shape], "markersize": 7, "markerfacecolor": fill, "markeredgecolor": ink}
    return {**look, "markeredgewidth": 1.5, "linestyle": "none", "clip_on": False, "zorder": 4}


def apart(place: float, count: int) -> Sequence[float]:
    """Places for the markers of `count` trials around `place`, so that none hides another."""
    return [float(x) for x in np.linspace(place - 0.12, place + 0.12, count)]


def cross(axis: Axes, cell: CellView, x: float, y: float) -> None:
    """A cross over the marker of a cell, if it is unsafe."""
    if cell.unsafe:
        axis.plot([x], [y], "x", color=colour("--unsafe"), markersize=7, markeredgewidth=1.8, clip_on=False, zorder=5)


def dash(cell: CellView) -> Any:  # noqa: ANN401 - a name or a pattern
    """The dash of the line of a cell."""
    return UNSAFE_DASH if cell.unsafe else _DASHES[cell.line.dash]


def verdict_text(cell: CellView) -> str:
    """The verdict with its symbol: "✓ SAFE"."""
    return f"{VERDICT_SYMBOLS[cell.verdict]} {cell.verdict}"


def with_verdict(name: str, cell: CellView) -> str:
    """A name in a picture with the verdict: a symbol for SAFE, and symbol and word for every other verdict."""
    return f"{name} {VERDICT_SYMBOLS[cell.verdict] if cell.verdict == 'SAFE' else verdict_text(cell)}"


def verdict_colour(cell: CellView) -> str:
    """The colour of the verdict."""
    return colour(VERDICT_COLOURS[cell.verdict])
