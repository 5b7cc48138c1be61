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


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float


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


def median_interval(values: Iterable[float | None]) -> Interval | None:
    """Where the median lies, as surely as `confidence` says: from one of `values`, one a trial, to another.

    None with fewer than two. Exact whatever the distribution is: the ends are the narrowest pair of order statistics,
    as far from the ends on both sides, that holds the true median in 95 % of cases; with too few trials for that, the
    smallest and the largest.
    """
    present = np.sort(_present(values))
    if len(present) < 2:
        return None
    left_out = _left_out(len(present))
    return Interval(float(present[left_out]), float(present[-1 - left_out]))


def confidence(trials: int) -> float | None:
    """How sure the interval of a median over so many trials is: the share of runs in which it holds the true median.

    An end is missed when too many trials lie on one side: 50 % with two trials, 75 % with three, 88 % with four, 94 %
    with five, and never below 95 % from six on. None with fewer than two, which have no interval.
    """
    return 1 - 2 * _below(_left_out(trials), trials) if trials > 1 else None


def _left_out(trials: int) -> int:
    """How many values on each side lie outside of the interval of a median."""
    left_out = 0
    while 1 - 2 * _below(left_out + 1, trials) >= CONFIDENCE:
        left_out += 1
    return left_out


def _below(most: int, trials: int) -> float:
    """How often at most so many of the trials lie on one side of the true median."""
    return float(sum(math.comb(trials, count) for count in range(most + 1)) / 2**trials)


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
