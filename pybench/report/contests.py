"""Which locks lead: whose figures are bold at a load, the order of the locks in charts, and the load to show first."""

from __future__ import annotations

from collections import Counter

from pybench.analysis.comparison import LoadComparison, Out, Place
from pybench.report.view import BASE_LINE, Series, View

NOT_COMPETING = (Out.SHARED, Out.EXCLUDES_NOBODY)


def best_cells(load: LoadComparison) -> frozenset[str]:
    """The ids of the cells whose deciding figure is bold at `load`: the best one, and those tied with it.

    No bold figure is worse than a ranked one that is not bold: a lock that ties only because its trials vary widely
    stays plain where a lock with a better median is behind. Its mark, such as `=1`, still says that it ties. Nothing
    is bold where a lock has no rival, or where there are too few trials to compare.
    """
    rivals = [one for one in load.standings if one.cell and one.strategy != BASE_LINE and one.out not in NOT_COMPETING]
    compared = [one for one in load.first if one.place is not Place.TIED or one.ratio is not None]
    first = [one for one in compared if one.cell is not None and one.value is not None]
    if len(rivals) < 2 or not first:
        return frozenset()
    figure = first[0].figure
    assert figure is not None, "a ranked lock was placed by a figure"
    sign = -1.0 if figure.least_is_best else 1.0
    behind = [
        sign * one.value for one in load.ranked if one.rank != 1 and one.figure is figure and one.value is not None
    ]
    bar = max(behind, default=-float("inf"))
    return frozenset(
        one.cell for one in first if one.cell and one.figure is figure and sign * (one.value or 0.0) >= bar
    )


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
