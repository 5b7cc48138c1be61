"""Whether one of two locks is significantly better: log ratios of paired trials, with one correction for the run.

A block runs every cell once, so the trials of two locks in one block are a pair: a busy minute of the machine slows
both. For each pair of locks at each load, the log ratios of the blocks are averaged, and the mean is tested with
Student's t. Few blocks estimate a variance badly. The variances of a run are therefore moderated: each variance is
drawn towards the others, the more the others agree (Smyth 2004, "Linear models and empirical Bayes methods"). Holm's
correction covers all comparisons of the run. A ratio within the equivalence band is no difference.

Promises: on identical locks at most 5 % of runs show any difference; `tests/unit/test_error_rates.py` checks this with
real trials of identical locks. The interval of a significant difference lies outside the band, and no other interval
does.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pybench.analysis.comparison.claims import Figure
from pybench.analysis.significance import Estimate, Test, Tested, holm, prior

TESTED = {
    Figure.THROUGHPUT: Test(band=0.03, weight=4),
    Figure.LIMIT: Test(band=0.05, weight=4),
    Figure.RESPONSE: Test(band=0.03, weight=2),
    Figure.FAIRNESS: Test(band=0.25, weight=1),
    Figure.LONGEST_WAIT: Test(band=1.0, weight=2),
    Figure.STARVATION: Test(band=0.25, weight=4, least_spread=0.1),
}
"""The figures that are tested over trials. The band of fairness is wide because slight unfairness does no harm. The
longest of some hundred waits differs much from trial to trial; it replaces a p99 where trials have too few grants.
Starvation compares the numbers of served clients: these are whole numbers and often equal. A search ends when its
interval is 5 % wide, so smaller differences of limits are none."""

ENOUGH_BLOCKS = 4
"""With fewer blocks only an enormous difference would be significant."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One pair of locks at one load in one figure: for each block the log ratio, positive where the first is better."""

    logs: Sequence[float]
    figure: Figure
    load: Hashable
    locks: int
    """How many locks the load has: one pair fewer than this number is independent."""


def compare_pairs(samples: Mapping[Hashable, Sample]) -> dict[Hashable, Tested]:
    """Test all `samples` of a run together. Samples with too few blocks are left out."""
    large = {key: sample for key, sample in samples.items() if len(sample.logs) >= ENOUGH_BLOCKS}
    estimates: dict[Hashable, Estimate] = {}
    for figure in TESTED:
        estimates |= _moderated({key: sample for key, sample in large.items() if sample.figure is figure})
    return holm(estimates)


def _moderated(samples: Mapping[Hashable, Sample]) -> dict[Hashable, Estimate]:
    """Each mean with its error: a variance is drawn to those of its load, or of all loads if its load has one pair."""
    logs = [np.asarray(sample.logs, dtype=np.float64) for sample in samples.values()]
    variances = np.array(
        [max(np.var(one.logs, ddof=1), TESTED[one.figure].least_spread ** 2) for one in samples.values()]
    )
    freedom = np.array([len(one) - 1 for one in logs], dtype=np.float64)
    groups = [sample.load if sample.locks > 2 else None for sample in samples.values()]
    # Pairs of the same locks share trials: of k (k - 1) / 2 pairs only k - 1 are independent estimates of the variance.
    shares = freedom * np.array([2 / sample.locks for sample in samples.values()])
    prior_freedom, priors = prior(variances, freedom, groups)
    found = {}
    for place, key in enumerate(samples):
        known = sum(share for share, group in zip(shares, groups, strict=True) if group == groups[place])
        own = freedom[place]
        worth = min(prior_freedom, max(0.0, known - own))
        variance = (worth * priors[groups[place]] + own * variances[place]) / (worth + own)
        blocks = len(logs[place])
        error = math.sqrt(variance / blocks)
        found[key] = Estimate(float(logs[place].mean()), error, own + worth, blocks, TESTED[samples[key].figure])
    return found


def paired_logs(one: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    """The logarithms of the ratios of two locks, in the blocks that have both."""
    # The ratio itself may be too large or too small for a float; the difference of logarithms is not.
    return [math.log(one[block]) - math.log(other[block]) for block in sorted(one.keys() & other.keys())]


def positive(values: Mapping[int, float], floor: float) -> dict[int, float]:
    """`values` of trials made fit for logarithms: 0 becomes `floor`, and infinite values are dropped."""
    return {block: max(value, floor, sys.float_info.min) for block, value in values.items() if math.isfinite(value)}


def floor_of(values: Iterable[float]) -> float:
    """Half of the smallest positive one of `values`."""
    return min((value for value in values if value > 0 and math.isfinite(value)), default=1.0) / 2
