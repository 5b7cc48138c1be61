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
from numpy.typing import NDArray

from pybench.analysis.comparison.claims import Figure, Ratio

ERROR_RATE = 0.05


@dataclass(frozen=True, slots=True)
class Test:
    """How a figure is tested."""

    band: float
    """The equivalence band: a lead up to this share counts as no difference."""
    weight: float
    """The share of the error rate that goes to this figure, relative to the weights of the others."""
    least_spread: float = 0.002
    """The smallest credible deviation of log ratios: a smaller one comes from chance or rounding."""


TESTED = {
    Figure.THROUGHPUT: Test(band=0.03, weight=4),
    Figure.RESPONSE: Test(band=0.03, weight=2),
    Figure.FAIRNESS: Test(band=0.25, weight=1),
    Figure.LONGEST_WAIT: Test(band=1.0, weight=2),
    Figure.STARVATION: Test(band=0.25, weight=4, least_spread=0.1),
}
"""The figures that are tested over trials. The band of fairness is wide because slight unfairness does no harm. The
longest of some hundred waits differs much from trial to trial; it replaces a p99 where trials have too few grants.
Starvation compares the numbers of served clients: these are whole numbers and often equal."""

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


@dataclass(frozen=True, slots=True)
class Tested:
    """The result of testing a sample."""

    ratio: Ratio
    """The ratio of the first lock to the second: above 1 where the first is better."""
    differs: bool
    """Whether the ratio lies significantly outside the equivalence band."""


@dataclass(frozen=True, slots=True)
class _Estimate:
    mean: float
    error: float
    freedom: float
    blocks: int
    figure: Figure

    @property
    def band(self) -> float:
        """The equivalence band of the figure, as a share."""
        return TESTED[self.figure].band

    @property
    def p(self) -> float:
        """The p value: how likely chance alone takes the mean so far beyond the band, on either side."""
        from scipy.special import stdtr

        beyond = abs(self.mean) - math.log1p(self.band)
        return 1.0 if beyond <= 0 else float(2 * stdtr(self.freedom, -beyond / self.error))


def compare_pairs(samples: Mapping[Hashable, Sample]) -> dict[Hashable, Tested]:
    """Test all `samples` of a run together. Samples with too few blocks are left out."""
    large = {key: sample for key, sample in samples.items() if len(sample.logs) >= ENOUGH_BLOCKS}
    estimates: dict[Hashable, _Estimate] = {}
    for figure in TESTED:
        estimates |= _moderated({key: sample for key, sample in large.items() if sample.figure is figure})
    return _holm(estimates)


def _holm(estimates: Mapping[Hashable, _Estimate]) -> dict[Hashable, Tested]:
    """Holm's correction with weights: from the smallest p value on, each at its share of the rate that is left."""
    weights = {key: TESTED[one.figure].weight for key, one in estimates.items()}
    chances = {key: one.p for key, one in estimates.items()}
    left, rejected = sum(weights.values()), set[Hashable]()
    for key in sorted(chances, key=lambda key: chances[key] / weights[key]):
        if chances[key] > ERROR_RATE * weights[key] / left:
            break
        rejected.add(key)
        left -= weights[key]
    # Intervals use the level of the last step: at this level exactly the significant differences clear their bands.
    levels = {key: ERROR_RATE * weights[key] / max(left, weights[key]) for key in estimates}
    return {key: Tested(_ratio(one, levels[key]), key in rejected) for key, one in estimates.items()}


def _ratio(of: _Estimate, level: float) -> Ratio:
    from scipy.special import stdtrit

    half = float(stdtrit(of.freedom, 1 - level / 2)) * of.error
    return Ratio(_exp(of.mean), _exp(of.mean - half), _exp(of.mean + half), 1 - level, of.blocks)


def _exp(value: float) -> float:
    return math.exp(min(max(value, -700.0), 700.0))


def _moderated(samples: Mapping[Hashable, Sample]) -> dict[Hashable, _Estimate]:
    """Each mean with its error: a variance is drawn to those of its load, or of all loads if its load has one pair."""
    logs = [np.asarray(sample.logs, dtype=np.float64) for sample in samples.values()]
    variances = np.array(
        [max(np.var(one.logs, ddof=1), TESTED[one.figure].least_spread ** 2) for one in samples.values()]
    )
    freedom = np.array([len(one) - 1 for one in logs], dtype=np.float64)
    groups = [sample.load if sample.locks > 2 else None for sample in samples.values()]
    # Pairs of the same locks share trials: of k (k - 1) / 2 pairs only k - 1 are independent estimates of the variance.
    shares = freedom * np.array([2 / sample.locks for sample in samples.values()])
    prior_freedom, priors = _prior(variances, freedom, groups)
    found = {}
    for place, key in enumerate(samples):
        known = sum(share for share, group in zip(shares, groups, strict=True) if group == groups[place])
        own = freedom[place]
        worth = min(prior_freedom, max(0.0, known - own))
        variance = (worth * priors[groups[place]] + own * variances[place]) / (worth + own)
        blocks = len(logs[place])
        error = math.sqrt(variance / blocks)
        found[key] = _Estimate(float(logs[place].mean()), error, own + worth, blocks, samples[key].figure)
    return found


def _prior(
    variances: NDArray[np.float64], freedom: NDArray[np.float64], groups: Sequence[Hashable]
) -> tuple[float, dict[Hashable, float]]:
    """The degrees of freedom that the other variances of a group count for, and the variance of each group."""
    pooled = {group: _mean([one for one, of in zip(variances, groups, strict=True) if of == group]) for group in groups}
    if len(variances) < 3:
        return 0.0, pooled
    from scipy.special import digamma, polygamma

    logs = np.log(variances) - digamma(freedom / 2) + np.log(freedom / 2)
    centres = {group: _mean([one for one, of in zip(logs, groups, strict=True) if of == group]) for group in groups}
    spare = len(logs) - len(centres)
    if not spare:
        return 0.0, pooled
    excess = sum((one - centres[of]) ** 2 for one, of in zip(logs, groups, strict=True)) / spare
    excess -= float(polygamma(1, freedom / 2).mean())
    return (math.inf if excess <= 0 else 2 * _trigamma_inverse(excess)), pooled


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _trigamma_inverse(value: float) -> float:
    """Newton's method on the reciprocal of the trigamma function, which is nearly linear."""
    from scipy.special import polygamma

    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    found = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, found))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, found))
        found += step
        if -step / found < 1e-8:
            break
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
