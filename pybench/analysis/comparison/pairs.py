"""Whether one of two locks is better than chance explains: log ratios of paired trials, and one correction for a run.

A block holds every cell once, so the trials of one block are a pair: a minute in which the machine was busy falls on
both. Of each pair of locks at each load the logarithms of their ratios are taken, block by block, and their mean is
tested with Student's t. Few blocks estimate a variance badly, so those of a run are moderated: each is drawn towards
the others as far as they agree (Smyth 2004, "Linear models and empirical Bayes methods"). Holm's correction is over all
comparisons of the run together. What lies within the equivalence band is no difference.

Promises: on identical locks at most 5 % of runs show a difference anywhere; `tests/unit/test_error_rates.py` proves it
on real trials of identical locks. A difference that is found has an interval that clears the band, and no other has.
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
    """The equivalence band: so much better, as a share, is not better."""
    weight: float
    """Its share of the error rate, beside the weights of the others."""
    least_spread: float = 0.002
    """Of logarithms: trials whose ratios agree better do so by chance, or because their figures are rounded."""


TESTED = {
    Figure.THROUGHPUT: Test(band=0.03, weight=4),
    Figure.RESPONSE: Test(band=0.03, weight=2),
    Figure.FAIRNESS: Test(band=0.25, weight=1),
    Figure.LONGEST_WAIT: Test(band=1.0, weight=2),
    Figure.STARVATION: Test(band=0.25, weight=4, least_spread=0.1),
}
"""The figures that are tested over trials. Little unfairness is no starvation. The longest of some hundred waits
differs from trial to trial; it stands in for a p99 where trials have too few grants for one. Of starvation the clients
that were served are compared: whole numbers, often the same ones."""

ENOUGH_BLOCKS = 4
"""With fewer, a difference would have to be enormous."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One pair of locks at one load in one figure: the logarithm of how many times better the first is, by block."""

    logs: Sequence[float]
    figure: Figure
    load: Hashable
    locks: int
    """How many locks the load has: of its pairs that many less one are independent."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What was found of a sample."""

    ratio: Ratio
    """Of the first to the second: above 1 where the first is better."""
    differs: bool
    """Whether it lies beyond the equivalence band, and that is no chance."""


@dataclass(frozen=True, slots=True)
class _Estimate:
    mean: float
    error: float
    freedom: float
    blocks: int
    figure: Figure

    @property
    def band(self) -> float:
        """The equivalence band: so much better, as a share, is not better."""
        return TESTED[self.figure].band

    @property
    def p(self) -> float:
        """How often chance alone takes the mean so far beyond the band, on one side or the other."""
        from scipy.special import stdtr

        beyond = abs(self.mean) - math.log1p(self.band)
        return 1.0 if beyond <= 0 else float(2 * stdtr(self.freedom, -beyond / self.error))


def compare_pairs(samples: Mapping[Hashable, Sample]) -> dict[Hashable, Tested]:
    """Test all `samples` of a run together. Those with too few blocks are left out."""
    large = {key: sample for key, sample in samples.items() if len(sample.logs) >= ENOUGH_BLOCKS}
    estimates: dict[Hashable, _Estimate] = {}
    for figure in TESTED:
        estimates |= _moderated({key: sample for key, sample in large.items() if sample.figure is figure})
    return _holm(estimates)


def _holm(estimates: Mapping[Hashable, _Estimate]) -> dict[Hashable, Tested]:
    """Holm's correction with weights: from the clearest on, each is tested at its share of what is left."""
    weights = {key: TESTED[one.figure].weight for key, one in estimates.items()}
    chances = {key: one.p for key, one in estimates.items()}
    left, rejected = sum(weights.values()), set[Hashable]()
    for key in sorted(chances, key=lambda key: chances[key] / weights[key]):
        if chances[key] > ERROR_RATE * weights[key] / left:
            break
        rejected.add(key)
        left -= weights[key]
    # An interval is at the level of the last step: what differs clears its band at that, and nothing else does.
    levels = {key: ERROR_RATE * weights[key] / max(left, weights[key]) for key in estimates}
    return {key: Tested(_ratio(one, levels[key]), key in rejected) for key, one in estimates.items()}


def _ratio(of: _Estimate, level: float) -> Ratio:
    from scipy.special import stdtrit

    half = float(stdtrit(of.freedom, 1 - level / 2)) * of.error
    return Ratio(_exp(of.mean), _exp(of.mean - half), _exp(of.mean + half), 1 - level, of.blocks)


def _exp(value: float) -> float:
    return math.exp(min(max(value, -700.0), 700.0))


def _moderated(samples: Mapping[Hashable, Sample]) -> dict[Hashable, _Estimate]:
    """Each mean with its error: a variance is drawn to those of its load, or of all loads where that has one pair."""
    logs = [np.asarray(sample.logs, dtype=np.float64) for sample in samples.values()]
    variances = np.array(
        [max(np.var(one.logs, ddof=1), TESTED[one.figure].least_spread ** 2) for one in samples.values()]
    )
    freedom = np.array([len(one) - 1 for one in logs], dtype=np.float64)
    groups = [sample.load if sample.locks > 2 else None for sample in samples.values()]
    # Pairs of the same locks share their trials: of k (k - 1) / 2 only k - 1 add to what is known of the variance.
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
    """How many degrees of freedom the other variances of a group are worth, and the variance of each group."""
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
    # Of the logarithms and not of the ratio, which may be too large or too small for a float.
    return [math.log(one[block]) - math.log(other[block]) for block in sorted(one.keys() & other.keys())]


def positive(values: Mapping[int, float], floor: float) -> dict[int, float]:
    """`values` of trials as logarithms take them: what stood still counts as `floor`, what is infinite not at all."""
    return {block: max(value, floor, sys.float_info.min) for block, value in values.items() if math.isfinite(value)}


def floor_of(values: Iterable[float]) -> float:
    """Half of the least of `values` that is above 0."""
    return min((value for value in values if value > 0 and math.isfinite(value)), default=1.0) / 2
