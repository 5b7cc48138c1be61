"""The decision of `pybench gate`: a pure function of the paired trials of base and head.

Each block measures every cell three times, in turn: the base, the head, and the head once more. The effect is the ratio
of the head's two trials to the base's; the noise is what the head's two trials differ by. A round judges all cells
together. A regression is a cell that is slower in two rounds of fresh blocks, the second of which has only the cells
that were slower in the first.

Promises: where the head is the base, at most 5 % of jobs find a regression, whatever the number of cells; a lock of a
closed loop that is 10 % slower is found by at least 90 % of jobs of `blocks_by_default`.
`tests/unit/test_gate_error_rates.py` checks both with trials of A/A runs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from pybench.analysis.between_runs.figures import FIGURES, SAME_LEVEL, ComparedFigure
from pybench.analysis.block_ratios import TRIMMED, LogRatios, estimates, trimmed
from pybench.analysis.significance import ERROR_RATE, Estimate, Ratio, holm

ENOUGH_BLOCKS = 4
"""With fewer blocks a round decides nothing."""
POWER = 0.95
"""How often one round finds a slowdown of the least size; both rounds find it in 9 of 10 jobs."""
TRIAL_SHARE = 1.5
"""The variance of one block's log ratio in variances of a trial: one for the base, half of one for the head's two."""
TRIMMED_COST = 1.17
"""The variance of a trimmed mean of normal samples, in variances of their mean."""
BY_COLUMN = {figure.column: figure for figure in FIGURES}


@dataclass(frozen=True, slots=True)
class Blocks:
    """The figure `column` of one cell in the blocks of a round: positive numbers, one of each side for a block."""

    column: str
    base: Sequence[float]
    head: Sequence[float]
    again: Sequence[float]
    """Of the head, measured once more."""

    @property
    def figure(self) -> ComparedFigure:
        """How the figure is compared."""
        return BY_COLUMN[self.column]

    @property
    def is_better_high(self) -> bool:
        """Whether a higher figure is the better one."""
        return self.figure.up.is_good

    def ratios(self) -> list[float]:
        """The log ratio of head to base in each block."""
        logs = np.log(np.array([self.base, self.head, self.again], dtype=np.float64))
        return [float(one) for one in (logs[1] + logs[2]) / 2 - logs[0]]

    def noise(self) -> list[float]:
        """The log ratio of the head to itself in each block."""
        logs = np.log(np.array([self.head, self.again], dtype=np.float64))
        return [float(one) for one in logs[1] - logs[0]]


class Finding(StrEnum):
    """What a round, or the gate, found in a cell."""

    SLOWER = "slower"
    NOT_CONFIRMED = "not confirmed"
    """Slower in the first round, and not in the confirming one."""
    FASTER = "faster"
    SAME = "same"
    UNKNOWN = "can't tell"


@dataclass(frozen=True, slots=True)
class Judged:
    """A cell in one round."""

    ratio: Ratio
    """The head's figure divided by the base's, with an interval that holds for all cells of the round together."""
    noise: float
    """The noise floor: a difference up to this share was measured where nothing differed."""
    limit: float
    """The larger of the equivalence band and the noise floor: the interval must lie beyond it."""
    finding: Finding
    least: float
    """The least slowdown that a round like this finds in 9 of 10 jobs, as a share."""
    excluded: float
    """A slowdown above this share is excluded by the interval."""


def judge(cells: Mapping[str, Blocks], band: float | None = None) -> dict[str, Judged]:
    """Judge the cells of one round together. A `band` widens narrower equivalence bands to this share.

    Cells with fewer than `ENOUGH_BLOCKS` blocks are left out.
    """
    large = {cell: blocks for cell, blocks in cells.items() if len(blocks.base) >= ENOUGH_BLOCKS}
    floors = _noise_floors(large)
    samples: dict[Hashable, LogRatios] = {}
    for cell, blocks in large.items():
        limit = max(blocks.figure.test.band, band or 0.0, floors[cell])
        samples[cell] = LogRatios(blocks.ratios(), replace(blocks.figure.test, band=limit, weight=1), blocks.column)
    estimated = estimates(samples)
    tested = holm(estimated)
    found = {}
    for cell, blocks in large.items():
        estimate, result = estimated[cell], tested[cell]
        is_better = (estimate.mean > 0) == blocks.is_better_high
        if result.differs:
            finding = Finding.FASTER if is_better else Finding.SLOWER
        else:
            finding = Finding.SAME if _is_same(estimate) else Finding.UNKNOWN
        least = least_slowdown(estimate, len(large), is_better_high=blocks.is_better_high)
        ratio = result.ratio
        excluded = 1 - ratio.low if blocks.is_better_high else ratio.high - 1
        found[cell] = Judged(ratio, floors[cell], estimate.test.band, finding, least, max(excluded, 0.0))
    return found


def suspects(first: Mapping[str, Judged]) -> list[str]:
    """The cells that the confirming round has to measure."""
    return [cell for cell, judged in first.items() if judged.finding is Finding.SLOWER]


def decided(cell: str, first: Mapping[str, Judged], second: Mapping[str, Judged]) -> Finding:
    """What the gate found in `cell`, after both rounds. A suspect without a confirming round is not confirmed."""
    if cell not in first:
        return Finding.UNKNOWN
    if first[cell].finding is not Finding.SLOWER:
        return first[cell].finding
    confirmed = cell in second and second[cell].finding is Finding.SLOWER
    return Finding.SLOWER if confirmed else Finding.NOT_CONFIRMED


def _is_same(estimate: Estimate) -> bool:
    interval, most = estimate.ratio(SAME_LEVEL), 1 + estimate.test.band
    return 1 / most <= interval.low and interval.high <= most


def _noise_floors(cells: Mapping[str, Blocks]) -> dict[str, float]:
    """The difference that each cell shows to itself; at least the root mean square over all cells of its figure."""
    own = {cell: trimmed(np.array(blocks.noise()))[0] for cell, blocks in cells.items()}
    floors = {}
    for cell, blocks in cells.items():
        alike = [own[other] for other, of in cells.items() if of.column == blocks.column]
        floors[cell] = math.expm1(max(abs(own[cell]), math.sqrt(sum(one**2 for one in alike) / len(alike))))
    return floors


def least_slowdown(estimate: Estimate, cells: int, *, is_better_high: bool) -> float:
    """The least slowdown, as a share, that a round with such an error over so many cells finds with `POWER`."""
    from scipy.special import stdtrit

    beyond = stdtrit(estimate.freedom, 1 - ERROR_RATE / cells / 2) + stdtrit(estimate.freedom, POWER)
    log = math.log1p(estimate.test.band) + float(beyond) * estimate.error
    return -math.expm1(-log) if is_better_high else math.expm1(log)


def forecast(column: str, spread: float, *, blocks: int, cells: int, band: float | None = None) -> float:
    """The least slowdown that a gate finds in 9 of 10 jobs, as a share, if trials vary by `spread`.

    `spread` is the standard deviation of the logarithms of trials in one block.
    """
    figure = BY_COLUMN[column]
    test = replace(figure.test, band=max(figure.test.band, band or 0.0))
    kept = blocks - 2 * int(TRIMMED * blocks)
    error = max(spread * math.sqrt(TRIAL_SHARE * TRIMMED_COST), test.least_spread) / math.sqrt(blocks)
    estimate = Estimate(0.0, error, float(max(kept - 1, 1)), blocks, test)
    return least_slowdown(estimate, cells, is_better_high=figure.up.is_good)


def blocks_by_default(cells: int) -> int:
    """Blocks of a round over so many cells: the more cells, the stricter is the test of each."""
    return 28 + 8 * math.ceil(math.log(max(cells, 1), 4))
