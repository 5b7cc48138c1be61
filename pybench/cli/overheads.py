"""What each cell's trials take beyond their planned time, on a machine that may become slower or faster meanwhile.

The overhead of a trial is modelled as the product of a level, which belongs to the cell, and a factor, which belongs to
the time: up to twenty trials in sequence share a factor. Both follow from all trials so far, in turn, until they agree.
The factor of the latest trials is expected of those that are left, as far as it differs from 1 by more than chance.

Does not do: reading a clock; see `clock`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_IN_SEQUENCE, MOST_IN_SEQUENCE = 4, 20
"""So many trials in sequence share a factor: those of a block, within these bounds."""
ALIKE = 4
"""What slows a machine lasts: so many factors in sequence count as one where factors average out."""
ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Expected:
    """A sum that is expected, with its standard deviation."""

    value: float = 0.0
    deviation: float = 0.0

    def __add__(self, other: Expected) -> Expected:
        """The sum of both, which are independent."""
        return Expected(self.value + other.value, math.hypot(self.deviation, other.deviation))


@dataclass(frozen=True, slots=True)
class _Fit:
    levels: Mapping[str, float]
    factor: float
    """That of the latest trials."""
    spread: float
    """The standard deviation of one trial, as a share of the product of level and factor."""
    certain: float
    """The standard deviation of `factor` as an estimate."""
    wanders: float
    """The standard deviation of the factor from some trials in sequence to the next."""


@dataclass
class Overheads:
    """The overheads of the trials of a run, in seconds."""

    usual: float
    """What is expected before the first trial."""
    in_sequence: int
    """How many trials in sequence share a factor."""
    counts_for: int = 0
    """How many cells `usual` counts for; 0 where it is a guess that the first trial replaces."""
    _cells: list[str] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)
    _fitted: _Fit | None = None

    def add(self, cell: str, value: float) -> None:
        """The latest trial was one of `cell`, and had this overhead."""
        self._cells.append(cell)
        self._values.append(value)
        self._fitted = None

    def of(self, cell: str) -> float:
        """The overhead that is expected of the next trial of `cell`."""
        fit = self._fit()
        return fit.factor * fit.levels[cell] if cell in fit.levels else self._elsewhere()

    def of_all(self, left: Mapping[str, int]) -> Expected:
        """The overhead that is expected of so many trials of each cell."""
        fit, count = self._fit(), sum(left.values())
        value = sum(many * self.of(cell) for cell, many in left.items())
        if not count or not fit.factor:
            return Expected(value)
        sequences = max(1.0, count / self.in_sequence / ALIKE)
        share = math.hypot(fit.certain, fit.wanders / math.sqrt(sequences)) / fit.factor
        each = fit.spread * math.sqrt(sum(many * self.of(cell) ** 2 for cell, many in left.items()))
        return Expected(value, math.hypot(each, value * share))

    def _elsewhere(self) -> float:
        """The overhead that is expected of a cell without a trial: the mean of the others."""
        fit = self._fit()
        if not fit.levels:
            return self.usual
        total = self.counts_for * self.usual + fit.factor * sum(fit.levels.values())
        return total / (self.counts_for + len(fit.levels))

    def _fit(self) -> _Fit:
        if self._fitted is None:
            self._fitted = _fit(self._cells, self._values, self.in_sequence)
        return self._fitted


def sequence_of(cells: int) -> int:
    """How many trials in sequence share a factor, in a run of so many cells."""
    return max(LEAST_IN_SEQUENCE, min(MOST_IN_SEQUENCE, cells))


def _fit(cells: list[str], values: list[float], in_sequence: int) -> _Fit:
    names = list(dict.fromkeys(cells))
    if not names or not any(values):
        return _Fit(dict.fromkeys(names, 0.0), 1.0, 0.0, 0.0, 0.0)
    places = {name: place for place, name in enumerate(names)}
    cell, value = np.array([places[name] for name in cells]), np.array(values)
    # Counted from the latest trial, so that the latest factor has a whole sequence.
    time = np.arange(len(value))[::-1] // in_sequence
    # While most cells have one trial, what belongs to the cell and what to the time cannot be told apart.
    is_first_block = len(value) < 2 * len(names)
    level, factor = (_of_first_block if is_first_block else _in_turn)(cell, time, value)
    each = level[cell]
    expected = (value.mean() if is_first_block else each) * factor[time]
    freedom = max(1, len(value) - (1 if is_first_block else len(names)) - len(factor) + 1)
    # Few trials say little about how much trials vary, and are given more room.
    spread = _size(value - expected) / _size(expected) * math.sqrt(len(value) / freedom) * (1 + 2 / freedom)
    error = _error(each[time == 0], spread)
    wanders = math.sqrt(max(0.0, _wander(factor[: len(value) // in_sequence]) ** 2 - error**2))
    difference = float(factor[0]) - 1
    # A factor that wanders says little about the trials to come, however well it is known.
    share = _beyond_chance(difference, math.hypot(error, wanders))
    of_all = math.hypot(_error(each, spread), wanders / math.sqrt(max(1.0, len(factor) / ALIKE)))
    return _Fit(
        levels=dict(zip(names, level.tolist(), strict=True)),
        factor=1 + share * difference,
        spread=spread,
        certain=math.hypot(share * error, (1 - share) * of_all),
        wanders=wanders,
    )


def _size(figures: NDArray[np.float64]) -> float:
    """The root of the sum of squares."""
    return float(np.sqrt(np.sum(figures**2)))


def _error(expected: NDArray[np.float64], spread: float) -> float:
    """The standard deviation of the sum of these trials, as a share of it."""
    total = float(np.sum(expected))
    return spread * _size(expected) / total if total else 0.0


def _of_first_block(
    cell: NDArray[np.int64], time: NDArray[np.int64], value: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Level of each cell and factor of each time.

    Cells run in random order, so the times differ by the cells that they happened to have, and by their factor.
    """
    factor = _shrunk(np.bincount(time, value) / np.bincount(time) / value.mean(), time, value)
    return _divided(np.bincount(cell, value), np.bincount(cell, factor[time]), 0.0), factor


def _in_turn(
    cell: NDArray[np.int64], time: NDArray[np.int64], value: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Level of each cell and factor of each time; the mean factor of all trials is 1."""
    of_cells, of_times = np.bincount(cell, value), np.bincount(time, value)
    level = of_cells / np.bincount(cell)
    for _ in range(ROUNDS):
        factor = _divided(of_times, np.bincount(time, level[cell]), 1.0)
        level = _divided(of_cells, np.bincount(cell, factor[time]), 0.0)
    mean = float(value.sum() / np.sum(level[cell]))
    return level * mean, factor / mean


def _shrunk(factor: NDArray[np.float64], time: NDArray[np.int64], value: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = float(np.sqrt(np.sum((value - value.mean() * factor[time]) ** 2) / max(1, len(value) - len(factor))))
    error = spread / value.mean() / np.sqrt(np.bincount(time))
    shares = np.array([_beyond_chance(one - 1, by) for one, by in zip(factor, error, strict=True)])
    shrunk: NDArray[np.float64] = 1 + (factor - 1) * shares
    return shrunk


def _divided(total: NDArray[Any], by: NDArray[Any], otherwise: float) -> NDArray[np.float64]:
    """`total / by`, and `otherwise` where both are 0: trials without any overhead."""
    found: NDArray[np.float64] = np.full(len(by), otherwise)
    np.divide(total, by, out=found, where=by > 0)
    return found


def _beyond_chance(difference: float, error: float) -> float:
    """The share of a difference that counts: 0 within its standard error, nearly 1 far beyond it."""
    return max(0.0, 1 - (error / difference) ** 2) if difference else 0.0


def _wander(factor: NDArray[np.float64]) -> float:
    """The standard deviation of factors in sequence, by their steps but the greatest two.

    These two may be one lasting change in the middle of some trials in sequence.
    """
    squares = np.sort(np.diff(factor) ** 2)[:-2]
    return math.sqrt(float(squares.mean()) / 2) if len(squares) else 0.0
