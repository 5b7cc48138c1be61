"""Whether the figures of a cell changed from one run to another: ratios of their trials.

The trials of two runs usually ran at different times, so each figure has two samples. Logarithms of the trials are
compared by the difference of their means, with a variance pooled from both runs and moderated over the cells. The two
sides of a gate were measured in turn, so their trials are pairs, block by block; see `block_ratios`. One correction
covers all cells and figures; see `significance`.

Does not see what changed between two runs besides the lock: a busy machine slows all trials of one run.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from pybench.analysis import block_ratios
from pybench.analysis.block_ratios import LogRatios
from pybench.analysis.comparison.pairs import ENOUGH_BLOCKS, floor_of, positive
from pybench.analysis.significance import Estimate, Ratio, Test, holm, prior
from pybench.numbers import missing

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

SAME_LEVEL = 0.05
"""Two figures are the same where the interval of their ratio at this level lies within the band."""


class Effect(StrEnum):
    """What became of a figure, or of a cell."""

    FASTER = "faster"
    SLOWER = "slower"
    LESS = "less"
    MORE = "more"
    SAME = "same"
    UNKNOWN = "can't tell"

    @property
    def is_good(self) -> bool:
        """Whether the effect is an improvement."""
        return self in (Effect.FASTER, Effect.LESS)


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """A column of `trials.parquet` that is compared."""

    column: str
    title: str
    test: Test
    up: Effect
    """The effect of a higher figure."""
    down: Effect


FIGURES = (
    ComparedFigure("grants_per_s", "grants/s", Test(band=0.03, weight=4), Effect.FASTER, Effect.SLOWER),
    ComparedFigure("acquire_p50_us", "p50", Test(band=0.05, weight=1), Effect.SLOWER, Effect.FASTER),
    ComparedFigure("acquire_p99_us", "p99", Test(band=0.1, weight=2), Effect.SLOWER, Effect.FASTER),
    ComparedFigure("longest_wait_us", "longest wait", Test(band=1.0, weight=1), Effect.SLOWER, Effect.FASTER),
    ComparedFigure("commands_per_grant", "commands/grant", Test(band=0.02, weight=1), Effect.MORE, Effect.LESS),
    ComparedFigure("server_cpu_us_per_grant", "server CPU/grant", Test(band=0.05, weight=1), Effect.MORE, Effect.LESS),
)
"""The bands are wider for figures that vary more between runs; the longest of some hundred waits varies most."""
THROUGHPUT, RESPONSE = FIGURES[0].column, FIGURES[2].column


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One figure of a cell in both runs; `ratio` is the new one divided by the old one."""

    figure: ComparedFigure
    old: float | None
    """As in the summary of the old run."""
    new: float | None
    ratio: Ratio | None
    """None where a run has too few trials with the figure."""
    effect: Effect


def change_figures(
    cells: Mapping[Hashable, tuple[pd.DataFrame, pd.DataFrame]], band: float | None, *, paired: bool = False
) -> dict[tuple[Hashable, str], tuple[Ratio, Effect]]:
    """Test all figures of all `cells`, of which each has the complete trials of the old and of the new run.

    A `band` widens narrower equivalence bands to this share. `paired` says that the trials of a block are pairs.

    Returns the ratio and the effect by cell and column, for figures with enough trials in both runs.
    """
    figures = [replace(one, test=replace(one.test, band=max(one.test.band, band or 0.0))) for one in FIGURES]
    estimates: dict[Hashable, Estimate] = {}
    if paired:
        estimates = block_ratios.estimates({key: of for figure in figures for key, of in _pairs(figure, cells)})
    else:
        for figure in figures:
            estimates |= _estimates(figure, cells)
    tested = holm(estimates)
    by_column = {figure.column: figure for figure in figures}
    found: dict[tuple[Hashable, str], tuple[Ratio, Effect]] = {}
    for key, result in tested.items():
        assert isinstance(key, tuple), "an estimate is known by its cell and its column"
        figure = by_column[key[1]]
        found[key] = result.ratio, _effect(figure, estimates[key], differs=result.differs)
    return found


def _effect(figure: ComparedFigure, estimate: Estimate, *, differs: bool) -> Effect:
    if differs:
        return figure.up if estimate.mean > 0 else figure.down
    interval, most = estimate.ratio(SAME_LEVEL), 1 + figure.test.band
    return Effect.SAME if 1 / most <= interval.low and interval.high <= most else Effect.UNKNOWN


def _estimates(
    figure: ComparedFigure, cells: Mapping[Hashable, tuple[pd.DataFrame, pd.DataFrame]]
) -> dict[Hashable, Estimate]:
    """The difference of the logarithms of each cell, each variance drawn towards those of the other cells."""
    logs = {cell: tuple(_logs(trials, figure.column) for trials in runs) for cell, runs in cells.items()}
    samples = {cell: (old, new) for cell, (old, new) in logs.items() if min(len(old), len(new)) >= ENOUGH_BLOCKS}
    if not samples:
        return {}
    freedom = np.array([len(old) + len(new) - 2 for old, new in samples.values()], dtype=np.float64)
    variances = np.array([_pooled(logs, figure.test.least_spread) for logs in samples.values()])
    worth, priors = prior(variances, freedom, [None] * len(samples))
    found: dict[Hashable, Estimate] = {}
    for place, (cell, (old, new)) in enumerate(samples.items()):
        own, most = freedom[place], float(freedom.sum() - freedom[place])
        drawn = min(worth, most)
        variance = (drawn * priors[None] + own * variances[place]) / (drawn + own)
        error = math.sqrt(variance * (1 / len(old) + 1 / len(new)))
        mean = float(new.mean() - old.mean())
        found[cell, figure.column] = Estimate(mean, error, own + drawn, min(len(old), len(new)), figure.test)
    return found


def _pairs(
    figure: ComparedFigure, cells: Mapping[Hashable, tuple[pd.DataFrame, pd.DataFrame]]
) -> Iterator[tuple[Hashable, LogRatios]]:
    """The log ratios of each cell that has the figure in enough blocks of both runs."""
    for cell, runs in cells.items():
        old, new = (by_block(trials, figure.column) for trials in runs)
        blocks = sorted(old.keys() & new.keys())
        if len(blocks) >= ENOUGH_BLOCKS:
            logs = [math.log(new[block]) - math.log(old[block]) for block in blocks]
            yield (cell, figure.column), LogRatios(logs, figure.test, figure.column)


def by_block(trials: pd.DataFrame, column: str) -> dict[int, float]:
    """The figure of each block that has it. One of 0 has no logarithm, and counts as half of the smallest other."""
    if column not in trials:
        return {}
    pairs = zip(trials["block"], trials[column], strict=True)
    found = {int(block): float(value) for block, value in pairs if not missing(value)}
    return positive(found, floor_of(found.values())) if any(value > 0 for value in found.values()) else {}


def _pooled(logs: Sequence[NDArray[np.float64]], least_spread: float) -> float:
    squares = sum(float(((one - one.mean()) ** 2).sum()) for one in logs)
    return max(squares / (sum(len(one) for one in logs) - 2), least_spread**2)


def _logs(trials: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """The logarithms of the trials that have the figure. A figure of 0 has no ratio: then nothing is compared."""
    values = [] if column not in trials else [float(value) for value in trials[column] if not missing(value)]
    if any(value <= 0 or not math.isfinite(value) for value in values):
        return np.empty(0)
    logs: NDArray[np.float64] = np.log(np.array(values, dtype=np.float64).clip(min=sys.float_info.min))
    return logs
