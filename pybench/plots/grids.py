"""Every lock at every load in one grid: its verdict, or its rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle

from pybench.analysis.comparison import Place
from pybench.columns import COLUMNS
from pybench.matrix.conditions import condition_texts
from pybench.plots import picture
from pybench.plots.selection import Selection, chosen

if TYPE_CHECKING:
    from pybench.records import Run
    from pybench.report.view import CellView

Text = Callable[["CellView"], tuple[str, str]]
"""The text of a square, and the name of its colour."""
MOST_COLUMNS = 7


def verdicts(run: Run, where: str | None = None) -> picture.Picture:
    """The verdict of every lock at every load, with the highest rate of violations that it leaves possible."""

    def text(cell: CellView) -> tuple[str, str]:
        bound = cell.number("bound_per_million")
        below = f"\nrate < {COLUMNS['bound_per_million'].format.text(bound)}" if bound is not None else ""
        return f"{picture.verdict_text(cell)}{below}", picture.VERDICT_COLOURS[cell.verdict]

    return _grid(chosen(run, where), "verdict, and with 95 % confidence the rate of violations", text)


def standings(run: Run, where: str | None = None) -> picture.Picture:
    """The rank of every lock within each load; `=` marks locks that are statistically tied."""
    selection = chosen(run, where)

    def text(cell: CellView) -> tuple[str, str]:
        standing = selection.view.standing(cell)
        if standing.rank is None:
            told = picture.verdict_text(cell) if cell.verdict != "SAFE" else "not ranked"
            return told, picture.VERDICT_COLOURS[cell.verdict]
        if standing.place is Place.ALONE:
            return "no rival", "--ink-soft"
        return standing.mark, "--safe" if standing.rank == 1 else "--ink-soft"

    return _grid(selection, "rank within each load; = is statistically tied", text)


def _grid(selection: Selection, title: str, text: Text) -> picture.Picture:
    """Locks are rows and loads columns; the other way round where there are many loads."""
    ordered = [cell for _, cells in selection.view.facets() for cell in cells if cell in selection.cells]
    names = [((cell.series.label,), tuple(condition_texts(selection.varied(cell)))) for cell in ordered]
    squares = dict(zip(names, (text(cell) for cell in ordered), strict=True))
    locks = list(dict.fromkeys((cell.series.label,) for cell in selection.cells))
    loads = list(dict.fromkeys(load for _, load in squares))
    flip = len(loads) > MOST_COLUMNS
    across: list[tuple[str, ...]] = [*locks] if flip else loads
    down: list[tuple[str, ...]] = loads if flip else [*locks]
    with picture.theme():
        figure, (axis,) = picture.panels(1, columns=1, width=1.9 + 1.35 * len(across), height=0.9 + 0.5 * len(down))
        axis.set_xlim(-0.5, len(across) - 0.5)
        axis.set_ylim(len(down) - 0.5, -0.5)
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
        axis.set_xticks(range(len(across)), ["\n".join(name) for name in across], fontsize=9)
        axis.xaxis.tick_top()
        axis.set_yticks(range(len(down)), [", ".join(name) for name in down], color=picture.colour("--ink"))
        axis.tick_params(length=0)
        for (lock, load), (told, tint) in squares.items():
            x, y = (across.index(lock), down.index(load)) if flip else (across.index(load), down.index(lock))
            strong = tint != "--ink-soft"
            axis.add_patch(_square(x, y, picture.colour(tint if strong else "--line-strong"), strong=strong))
            axis.text(x, y, told, ha="center", va="center", fontsize=8.5, color=picture.colour(tint),
                      fontweight="bold" if "\n" not in told and strong else "normal")  # fmt: skip
        axis.set_title(title, pad=10)
    figure.alt = f"{title}. " + "; ".join(
        f"{', '.join([*lock, *load])}: {told.replace(chr(10), ', ')}" for (lock, load), (told, _) in squares.items()
    )
    return figure


def _square(x: float, y: float, colour: str, *, strong: bool) -> Rectangle:
    return Rectangle((x - 0.47, y - 0.44), 0.94, 0.88, color=colour, alpha=0.13 if strong else 0.2, linewidth=0)
