"""Whether the figures of a trial are steady: when its window opened, and how much its steps depend on each other.

The core decides when a warm-up until steady is over; `rust_core/load/src/recorder/warming.rs` has the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pybench.numbers import missing

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from pybench.analysis.outcome import Outcome
    from pybench.matrix.cells import Cell

LEAST_STEPS = 10
"""The autocorrelation of fewer steps is mostly chance: its standard error is about 1 / sqrt(steps)."""


def steadiness_columns(cell: Cell, result: Outcome) -> dict[str, Any]:
    """`steady`, `warmup_s` and `autocorrelation` of one trial of `cell`."""
    steady = result.totals.get("steady")
    warmup_ns = result.totals.get("warmup_ns")
    grants = result.timeline.get("grants", np.zeros(0))
    return {
        "steady": None if steady is None else bool(steady),
        "warmup_s": None if warmup_ns is None else warmup_ns / 1e9,
        # Under a load that changes by plan, neighbouring steps resemble each other for this reason alone.
        "autocorrelation": None if cell.stages else autocorrelation(grants),
    }


def autocorrelation(values: NDArray[Any]) -> float | None:
    """The lag-1 autocorrelation of `values`; None for fewer than ten values, and where all are equal.

    The estimate of Box and Jenkins: the sum of products of neighbours' deviations from the mean over that of squares.
    """
    if len(values) < LEAST_STEPS:
        return None
    deviations = values - np.mean(values)
    squares = float((deviations**2).sum())
    return float((deviations[1:] * deviations[:-1]).sum()) / squares if squares > 0 else None


def steadiness(complete: pd.DataFrame) -> bool | None:
    """Whether all `complete` trials of a cell were steady; None where no trial waited for it."""
    known = [bool(value) for value in complete["steady"] if not missing(value)]
    return all(known) if known else None
