"""Which of many estimated log ratios are significant: moderated variances, one weighted correction for all of them.

Few trials estimate a variance badly, so variances are drawn towards each other, the more they agree (Smyth 2004,
"Linear models and empirical Bayes methods"). Holm's correction (1979), weighted, covers all estimates that are judged
together. An equivalence band says which ratios are no difference.

Promises: the interval of a significant ratio lies outside its band, and no other interval does.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ERROR_RATE = 0.05


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times better, or higher, one figure is than another."""

    value: float
    """The geometric mean over blocks of paired trials, or the ratio of two geometric means."""
    low: float
    high: float
    confidence: float
    """The confidence of the interval from `low` to `high`: 0.95, or higher where the run has many comparisons."""
    blocks: int
    """Pairs of trials; without pairs, the trials of the figure that has fewer."""


@dataclass(frozen=True, slots=True)
class Test:
    """How a figure is tested."""

    band: float
    """The equivalence band: a lead up to this share counts as no difference."""
    weight: float
    """The share of the error rate that goes to this figure, relative to the weights of the others."""
    least_spread: float = 0.002
    """The smallest credible deviation of log ratios: a smaller one comes from chance or rounding."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean log ratio with its error, over so many `trials`."""

    mean: float
    error: float
    freedom: float
    trials: int
    test: Test

    @property
    def p(self) -> float:
        """The p value: how likely chance alone takes the mean so far beyond the band, on either side."""
        from scipy.special import stdtr

        beyond = abs(self.mean) - math.log1p(self.test.band)
        return 1.0 if beyond <= 0 else float(2 * stdtr(self.freedom, -beyond / self.error))

    def ratio(self, level: float) -> Ratio:
        """The ratio with its interval at the confidence 1 - `level`."""
        from scipy.special import stdtrit

        half = float(stdtrit(self.freedom, 1 - level / 2)) * self.error
        return Ratio(_exp(self.mean), _exp(self.mean - half), _exp(self.mean + half), 1 - level, self.trials)


@dataclass(frozen=True, slots=True)
class Tested:
    """The result of a test."""

    ratio: Ratio
    """The ratio of the first figure to the second: above 1 where the first is better."""
    differs: bool
    """Whether the ratio lies significantly outside the equivalence band."""


def holm(estimates: Mapping[Hashable, Estimate]) -> dict[Hashable, Tested]:
    """Holm's correction with weights: from the smallest p value on, each at its share of the rate that is left."""
    weights = {key: one.test.weight for key, one in estimates.items()}
    chances = {key: one.p for key, one in estimates.items()}
    left, rejected = sum(weights.values()), set[Hashable]()
    for key in sorted(chances, key=lambda key: chances[key] / weights[key]):
        if chances[key] > ERROR_RATE * weights[key] / left:
            break
        rejected.add(key)
        left -= weights[key]
    # Intervals use the level of the last step: at this level exactly the significant differences clear their bands.
    levels = {key: ERROR_RATE * weights[key] / max(left, weights[key]) for key in estimates}
    return {key: Tested(one.ratio(levels[key]), key in rejected) for key, one in estimates.items()}


def _exp(value: float) -> float:
    return math.exp(min(max(value, -700.0), 700.0))


def prior(
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
