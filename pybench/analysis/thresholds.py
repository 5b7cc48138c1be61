"""Whether a run meets the thresholds of its matrix: each threshold is evaluated at each cell that it selects.

Promises: a threshold fails where its figure was not measured, and where it selects no cell.
Does not do: parsing thresholds; see `pybench.matrix`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybench.analysis.stats import number
from pybench.numbers import format_plain, format_us

if TYPE_CHECKING:
    import pandas as pd

    from pybench.matrix.thresholds import Threshold

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class ThresholdResult:
    """The result of one threshold at one cell. `figure` is in the unit of its column; None when it was not measured."""

    threshold: Threshold
    cell: str | None
    """None when the threshold selects no cell of the run."""
    figure: float | None
    passed: bool

    @property
    def figure_text(self) -> str:
        """The figure with its unit."""
        if self.figure is None:
            return "not measured"
        return format_us(self.figure) if "_us" in self.threshold.column else format_plain(self.figure)


def evaluate(thresholds: Iterable[Threshold], summary: pd.DataFrame) -> list[ThresholdResult]:
    """Every threshold at every row of `summary` that its `where` selects, in the order of both."""
    rows = summary.to_dict("records")
    results = []
    for threshold in thresholds:
        selected = [row for row in rows if threshold.selects(row)]
        results += [_at_cell(threshold, row) for row in selected] or [_without_cell(threshold)]
    return results


def _at_cell(threshold: Threshold, row: Mapping[Hashable, Any]) -> ThresholdResult:
    figure = number(row[threshold.column])
    passed = figure is not None and COMPARE[threshold.op](figure, threshold.value)
    return ThresholdResult(threshold, str(row["cell"]), figure, passed)


def _without_cell(threshold: Threshold) -> ThresholdResult:
    return ThresholdResult(threshold, cell=None, figure=None, passed=False)
