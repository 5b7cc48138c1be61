"""Two sides of one job, measured in turn block by block: the mean log ratio of their paired trials, with its error.

The trials of a cell in one block ran one after the other, so a busy minute of the machine slows both and leaves their
ratio. A disturbance that hits one of them only gives an outlier: means are trimmed, and their errors come from
winsorised variances (Tukey and McLaughlin 1963, Yuen 1974). Few blocks estimate a variance badly, so the variances of
the cells of a figure are drawn towards each other; see `significance`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.analysis.significance import Estimate, Test, prior

TRIMMED = 0.3
"""The share of blocks that is left out at each end: on a busy machine one block in five is an outlier."""


@dataclass(frozen=True, slots=True)
class LogRatios:
    """The log ratios of one cell, one for each block, and how they are tested."""

    logs: Sequence[float]
    test: Test
    group: Hashable = None
    """Only the variances of one group are drawn towards each other, such as those of one figure."""


def estimates(samples: Mapping[Hashable, LogRatios]) -> dict[Hashable, Estimate]:
    """The mean log ratio of each of `samples` with its error. Each sample needs at least two blocks."""
    means, variances, freedom = {}, [], []
    for key, sample in samples.items():
        means[key], variance, kept = trimmed(np.asarray(sample.logs, dtype=np.float64))
        variances.append(max(variance, sample.test.least_spread**2))
        freedom.append(float(kept))
    if not samples:
        return {}
    groups = [sample.group for sample in samples.values()]
    worth, priors = prior(np.array(variances), np.array(freedom), groups)
    found = {}
    for place, (key, sample) in enumerate(samples.items()):
        others = sum(own for own, group in zip(freedom, groups, strict=True) if group == groups[place]) - freedom[place]
        drawn, own = min(worth, others), freedom[place]
        variance = (drawn * priors[groups[place]] + own * variances[place]) / (drawn + own)
        blocks = len(sample.logs)
        found[key] = Estimate(means[key], math.sqrt(variance / blocks), own + drawn, blocks, sample.test)
    return found


def trimmed(logs: NDArray[np.float64]) -> tuple[float, float, int]:
    """The trimmed mean, the variance of one block that its error stands on, and the degrees of freedom."""
    ordered, cut = np.sort(logs), int(TRIMMED * len(logs))
    kept = ordered[cut : len(ordered) - cut]
    winsorised = np.clip(ordered, kept[0], kept[-1])
    share = len(kept) / len(ordered)
    # Yuen's error is (n - 1) s² / (h (h - 1)), with h kept values of n.
    variance = float(winsorised.var(ddof=1)) * (len(ordered) - 1) / ((len(kept) - 1) * share) if len(kept) > 1 else 0.0
    return float(kept.mean()), variance, max(len(kept) - 1, 1)
