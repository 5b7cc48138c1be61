"""The statistics behind every figure: quantiles of histograms, medians over trials and how sure they are, bounds.

Promises: the same input gives the same output, and n/a is None, never NaN and never a warning.
Does not do: comparing two cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
SAMPLES_BEYOND = 10
"""A quantile stands on at least this many samples beyond it; with fewer it is an anecdote."""


FEW = 5
"""Of so many values each end is the median of more than 2.5 % of resamples: the bootstrap's interval is their range."""

ENOUGH_TRIALS = 4
"""With fewer trials a cell, two that are alike come out apart too often."""


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float

    def overlaps(self, other: Interval) -> bool:
        """Whether some value lies in both."""
        return self.low <= other.high and other.low <= self.high


def quantile(values: NDArray[Any], counts: NDArray[Any], q: float) -> float | None:
    """The smallest of `values` (ascending) with at least the share `q` of all `counts` at or below it.

    None when fewer than ten samples lie beyond that rank.
    """
    running = np.cumsum(counts, dtype=np.uint64)
    total = int(running[-1]) if len(running) else 0
    if not enough(total, q):
        return None
    return float(values[int(np.searchsorted(running, _rank(total, q)))])


def enough(samples: int, q: float) -> bool:
    """Whether so many `samples` show the quantile `q`: 20 for p50, 1,000 for p99, 10,000 for p99.9."""
    return samples - _rank(samples, q) >= SAMPLES_BEYOND


def _rank(samples: int, q: float) -> int:
    assert 0 < q < 1, "a quantile lies between the extremes"
    # 0.99 * 1000 may come out a hair above 990, which must not ask for one sample more.
    return math.ceil(round(q * samples, 6))


def median(values: Iterable[float | None]) -> float | None:
    """The median of those that are there; None when none is."""
    present = _present(values)
    return float(np.median(present)) if len(present) else None


def median_interval(values: Iterable[float | None], *, seed: int = 0) -> Interval | None:
    """Where the median lies, as surely as `confidence` says: percentile bootstrap over `values`, one a trial.

    None with fewer than two. Resampling cannot leave the range of what it is given: with two to five trials the
    interval is just the smallest and the largest of them. `seed` draws the resamples of more.
    """
    present = _present(values)
    if len(present) < 2:
        return None
    if np.ptp(present) == 0:
        return Interval(float(present[0]), float(present[0]))
    if len(present) <= FEW:
        return Interval(float(present.min()), float(present.max()))
    # Imported here: it takes longer than everything else together, and a few trials do without it.
    from scipy.stats import bootstrap

    found = bootstrap(
        (present,),
        np.median,
        n_resamples=9_999,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    # Interpolating rounds: an end may come out a hair beyond the range, or on the wrong side of the median itself.
    middle = np.median(present)
    low = np.clip(found.low, present.min(), middle)
    high = np.clip(found.high, middle, present.max())
    return Interval(float(low), float(high))


def confidence(trials: int) -> float | None:
    """How sure the interval of a median over so many trials is: the share of runs in which it holds the true median.

    The range of n trials misses it when all lie on one side of it: 50 % with two, 75 % with three, 88 % with four, 94 %
    with five, and from six on the bootstrap's 95 %. None with fewer than two, which have no interval.
    """
    return min(CONFIDENCE, 1 - 2 ** (1 - trials)) if trials > 1 else None


def told_apart(one: Interval | None, other: Interval | None, *, trials: int) -> bool:
    """Whether the medians of two cells differ: their intervals do not overlap, and that is hardly chance.

    The ranges of n trials each, drawn from the same, lie apart in 2 n!^2 / (2n)! of cases: in 33 % with two trials, in
    10 % with three, in 3 % with four. `trials` is the smaller number of both; fewer than four tell nothing.
    """
    if one is None or other is None or trials < ENOUGH_TRIALS:
        return False
    return not one.overlaps(other)


def bound_per_million(chances: int) -> float | None:
    """How often, per million, what never happened in `chances` chances may happen at most, at 95 %: the rule of three.

    None without a chance. Never above a million, for a rate ends at always.
    """
    return min(3e6 / chances, 1e6) if chances > 0 else None


def number(value: Any) -> float | None:  # noqa: ANN401 - a field of a frame's row
    """A figure as a frame holds it; None for NaN."""
    return None if value is None or math.isnan(value) else float(value)


def _present(values: Iterable[float | None]) -> NDArray[np.float64]:
    column = np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    return column[~np.isnan(column)]
