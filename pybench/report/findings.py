"""What a run amounts to: the winner under each set of conditions, and the strategies that were unsafe.

A strategy that was unsafe anywhere in the run wins nowhere: a lock is chosen, not a cell. Strategies whose intervals
overlap the winner's are tied with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybench.report.view import CellView, Conditions, View


@dataclass(frozen=True, eq=False, slots=True)
class Contest:
    """The cells under one set of conditions. `winners` is empty when nothing there may be used; the best is first."""

    conditions: Conditions
    cells: tuple[CellView, ...]
    winners: tuple[CellView, ...]


def contests(view: View) -> list[Contest]:
    """One for each set of conditions, in their order."""
    return [Contest(conditions, tuple(cells), _winners(view, cells)) for conditions, cells in view.facets()]


def best_cell(view: View) -> CellView | None:
    """The cell with the most safe grants per second, of the strategies that were safe wherever they were judged."""
    usable = [cell for cell in view.cells if _usable(view, cell)]
    return max(usable, key=lambda cell: cell.number("safe_grants_per_s") or 0.0, default=None)


def _usable(view: View, cell: CellView) -> bool:
    return (
        cell.verdict == "SAFE"
        and cell.series.label not in view.unsafe_series
        and cell.number("safe_grants_per_s") is not None
    )


def _winners(view: View, cells: list[CellView]) -> tuple[CellView, ...]:
    usable = [cell for cell in cells if _usable(view, cell)]
    usable.sort(key=lambda cell: cell.number("safe_grants_per_s") or 0.0, reverse=True)
    return tuple(cell for cell in usable if cell is usable[0] or _tied(usable[0], cell))


def _tied(best: CellView, other: CellView) -> bool:
    low, high = best.number("grants_per_s_low"), other.number("grants_per_s_high")
    return low is not None and high is not None and high >= low
