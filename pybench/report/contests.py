"""The cells of each load for the overview, and which of them are first there, as the comparison says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pybench.matrix.conditions import Conditions
from pybench.report.view import BASE_LINE, CellView, Series, View


@dataclass(frozen=True, eq=False, slots=True)
class Contest:
    """The cells at one load. `winners` are the first lock and those that are statistically tied with it."""

    conditions: Conditions
    cells: tuple[CellView, ...]
    winners: tuple[CellView, ...]
    best: tuple[CellView, ...]
    """The winners where they had anybody to win against; what stands alone is not the best of anything."""


def contests(view: View) -> list[Contest]:
    """One for each load, in their order."""
    return [_contest(view, conditions, cells) for conditions, cells in view.facets()]


def _contest(view: View, conditions: Conditions, cells: Sequence[CellView]) -> Contest:
    winners = tuple(cell for cell in cells if view.standing(cell).rank == 1)
    # All that the comparison has at this load, which may be more than one retry policy.
    loads = {id(load): load for load in (view.comparison.load_of(cell.id) for cell in cells)}
    here = [one for load in loads.values() for one in load.standings if one.cell is not None]
    # No lock at all, and what lets several in, are never ranked; an unsafe lock is a rival that lost.
    rivals = [one for one in here if one.strategy != BASE_LINE and one.cell not in view.not_ranked]
    return Contest(conditions, tuple(cells), winners, winners if len(rivals) > 1 else ())


def by_wins(view: View) -> list[Series]:
    """The locks that may be used first, and of those the ones that are among the first at most loads."""
    wins = Counter(cell.series.label for contest in contests(view) for cell in contest.winners)
    chosen = view.comparison.choice.locks
    return sorted(
        view.series,
        key=lambda one: (not view.may_be_used(one), one.label not in chosen, -wins[one.label]),
    )


def hardest_contest(view: View) -> Contest | None:
    """The load with the most clients, of these the fewest keys, at which a lock that the answer names is ranked.

    None when no cell is ranked.
    """
    chosen = view.comparison.choice.locks
    held = [contest for contest in contests(view) if contest.winners]
    named = [contest for contest in held if any(_is_ranked(view, cell, chosen) for cell in contest.cells)]
    return max(named or held, key=_pressure, default=None)


def _is_ranked(view: View, cell: CellView, locks: tuple[str, ...]) -> bool:
    standing = view.standing(cell)
    return standing.rank is not None and standing.lock in locks


def _pressure(contest: Contest) -> tuple[float, float]:
    row = contest.cells[0].row
    return float(row["concurrency"]), -float(row["keys"])
