"""Two rules that every table follows, in the terminal and in reports: what is bold, and which overlaps are expected.

Promises: pure functions that load quickly, because the terminal's table needs them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybench.analysis.assumptions import entry_of
from pybench.analysis.comparison import LoadComparison, Out, Place
from pybench.analysis.comparison.entrants import BASE_LINE
from pybench.strategies import Exclusion, Judge

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


def promises_nothing(row: Mapping[Any, Any]) -> bool:
    """Whether the lock of `row` promises neither exclusion nor whole updates, as `none`, which takes no lock at all."""
    known = entry_of(row)
    if known is None:
        return str(row["strategy"]) == BASE_LINE
    strategy = known[0].with_arguments(known[1])
    return strategy.exclusion is Exclusion.NOTHING and strategy.judged_by is Judge.BELIEF
