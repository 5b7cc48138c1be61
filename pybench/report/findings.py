"""Who is ahead at each load, for the overview; what it all amounts to is said by `pybench.answer`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pybench.conditions import Conditions
from pybench.report.view import CellView, Series, View
from pybench.stats import Interval, told_apart


@dataclass(frozen=True, eq=False, slots=True)
class Contest:
    """The cells at one load. `winners` are the best safe one, first, and those that it cannot be told apart from."""

    conditions: Conditions
    cells: tuple[CellView, ...]
    winners: tuple[CellView, ...]


def contests(view: View) -> list[Contest]:
    """One for each load, in their order."""
    return [Contest(conditions, tuple(cells), _winners(cells)) for conditions, cells in view.facets()]


def by_wins(view: View) -> list[Series]:
    """The strategies that may be used first, and of those the ones that are among the best at most loads."""
    held = contests(view)
    wins = Counter(cell.series.label for contest in held for cell in contest.winners)
    best = Counter[str]()
    for contest in held:
        best.update(cell.series.label for cell in contest.winners[:1])
    return sorted(view.series, key=lambda one: (not view.may_be_used(one), -wins[one.label], -best[one.label]))


def best_contest(view: View) -> Contest | None:
    """The load with the most safe grants per second of the run; None when no cell is safe."""
    held = [contest for contest in contests(view) if contest.winners]
    return max(held, key=lambda contest: _safe_rate(contest.winners[0]), default=None)


def _winners(cells: list[CellView]) -> tuple[CellView, ...]:
    safe = sorted((cell for cell in cells if _safe_rate(cell)), key=_safe_rate, reverse=True)
    return tuple(cell for cell in safe if cell is safe[0] or not _told_apart(safe[0], cell))


def _safe_rate(cell: CellView) -> float:
    return (cell.number("safe_grants_per_s") or 0.0) if cell.verdict == "SAFE" else 0.0


def _told_apart(best: CellView, other: CellView) -> bool:
    trials = min(int(cell.number("trials") or 0) for cell in (best, other))
    return told_apart(_interval(best), _interval(other), trials=trials)


def _interval(cell: CellView) -> Interval | None:
    low, high = cell.number("grants_per_s_low"), cell.number("grants_per_s_high")
    return None if low is None or high is None else Interval(low, high)
