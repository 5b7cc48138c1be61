"""Which locks lead: the order of the locks in charts, and the load that the answer shows."""

from __future__ import annotations

from collections import Counter

from pybench.analysis.comparison import LoadComparison
from pybench.report.view import Series, View


def by_wins(view: View) -> list[Series]:
    """The locks that may be used first, and of those the ones that are among the first at most loads."""
    by_cell = {cell.id: cell.series.label for cell in view.cells}
    wins = Counter(by_cell[one.cell] for load in view.comparison.loads for one in load.first if one.cell in by_cell)
    chosen = view.comparison.choice.locks
    return sorted(
        view.series,
        key=lambda one: (not view.may_be_used(one), one.label not in chosen, -wins[one.label]),
    )


def hardest_load(view: View) -> LoadComparison | None:
    """The load with the most clients, of these the fewest keys, at which a lock that the answer names is ranked.

    None when no cell is ranked.
    """
    chosen = view.comparison.choice.locks
    held = [load for load in view.comparison.loads if load.ranked]
    named = [load for load in held if any(one.lock in chosen for one in load.ranked)]
    return max(named or held, key=_pressure, default=None)


def _pressure(load: LoadComparison) -> tuple[float, float]:
    values = dict(load.values)
    clients, keys = values["concurrency"], values["keys"]
    assert isinstance(clients, int | float), "clients are counted"
    assert isinstance(keys, int | float), "keys are counted"
    return float(clients), -float(keys)
