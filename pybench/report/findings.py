"""Who is ahead at each load, for the overview; what it all amounts to is said by `pybench.answer`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pybench.conditions import Conditions
from pybench.contenders import Contender, contenders, first_ones, in_order
from pybench.report.view import CellView, Series, View


@dataclass(frozen=True, eq=False, slots=True)
class Contest:
    """The cells at one load. `winners` are the best safe one, first, and those that it cannot be told apart from."""

    conditions: Conditions
    cells: tuple[CellView, ...]
    winners: tuple[CellView, ...]


def contests(view: View) -> list[Contest]:
    """One for each load, in their order."""
    safe = contenders(view.run.summary.to_dict("records"), view.run.trials)
    return [Contest(conditions, tuple(cells), _winners(cells, safe)) for conditions, cells in view.facets()]


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


def _winners(cells: Sequence[CellView], safe: Mapping[str, Contender]) -> tuple[CellView, ...]:
    by_id = {cell.id: cell for cell in cells}
    return tuple(by_id[one.cell] for one in first_ones(in_order(safe[id_] for id_ in by_id if id_ in safe)))


def _safe_rate(cell: CellView) -> float:
    return (cell.number("safe_grants_per_s") or 0.0) if cell.verdict == "SAFE" else 0.0
