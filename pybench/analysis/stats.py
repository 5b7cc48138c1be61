"""The statistics behind every figure: quantiles of histograms, medians over trials with intervals, bounds of rates.

Promises: pure functions. A figure that is not available is None, never NaN, and causes no warning.
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
"""A quantile needs at least this many samples beyond it; with fewer, single samples decide its value."""


class Interval(NamedTuple):
    """A closed interval: both ends belong to it."""

    low: float
    high: float


def quantile(values: NDArray[Any], counts: NDArray[Any], q: float) -> float | None:
    """The smallest of `values` (ascending) with at least the share `q` of all `counts` at or below it.

    None when fewer than ten samples lie beyond that rank.
    """
    return quantile_of_few(values, counts, q) if enough(int(counts.sum()), q) else None


def quantile_of_few(values: NDArray[Any], counts: NDArray[Any], q: float) -> float | None:
    """As `quantile`, however few samples there are; None without a sample."""
    running = np.cumsum(counts, dtype=np.uint64)
    if not len(running):
        return None
    return float(values[int(np.searchsorted(running, _rank(int(running[-1]), q)))])


def enough(samples: int, q: float) -> bool:
    """Whether so many `samples` suffice for the quantile `q`: 20 for p50, 1,000 for p99, 10,000 for p99.9."""
    return samples - _rank(samples, q) >= SAMPLES_BEYOND


def _rank(samples: int, q: float) -> int:
    assert 0 < q < 1, "a quantile lies between the extremes"
    # 0.99 * 1000 may be rounded to slightly above 990, which must not need one sample more.
    return math.ceil(round(q * samples, 6))


def median(values: Iterable[float | None]) -> float | None:
    """The median of the values that are not None; None without such a value."""
    present = _present(values)
    return float(np.median(present)) if len(present) else None


def median_interval(values: Iterable[float | None]) -> Interval | None:
    """The interval of the median of `values`, one value a trial, at the level that `confidence` gives.

    None with fewer than two values. The interval is exact for every distribution: its ends are the narrowest symmetric
    pair of order statistics that holds the true median in 95 % of cases. With too few trials for 95 %, the ends are the
    smallest and the largest value.
    """
    present = np.sort(_present(values))
    if len(present) < 2:
        return None
    left_out = _left_out(len(present))
    return Interval(float(present[left_out]), float(present[-1 - left_out]))


def confidence(trials: int) -> float | None:
    """The share of runs in which the interval of a median over so many trials holds the true median.

    The interval misses the median when too many trials lie on one side of it. The confidence is 50 % with two trials,
    75 % with three, 88 % with four, 94 % with five, and at least 95 % from six on. None with fewer than two trials.
    """
    return 1 - 2 * _below(_left_out(trials), trials) if trials > 1 else None


def _left_out(trials: int) -> int:
    """How many values on each side lie outside the interval of a median."""
    left_out = 0
    while 1 - 2 * _below(left_out + 1, trials) >= CONFIDENCE:
        left_out += 1
    return left_out


def _below(most: int, trials: int) -> float:
    """The probability that at most `most` of the trials lie on one given side of the true median."""
    return float(sum(math.comb(trials, count) for count in range(most + 1)) / 2**trials)


def bound_per_million(chances: int) -> float | None:
    """The highest rate per million of an event that `chances` chances did not show: rule of three, 95 % confidence.

    None without a chance. At most one million, which is a rate of 100 %.
    """
    return min(3e6 / chances, 1e6) if chances > 0 else None


def number(value: Any) -> float | None:  # noqa: ANN401 - a field of a frame's row
    """A figure as a frame holds it; None for NaN."""
    return None if value is None or math.isnan(value) else float(value)


def _present(values: Iterable[float | None]) -> NDArray[np.float64]:
    column = np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    return column[~np.isnan(column)]
