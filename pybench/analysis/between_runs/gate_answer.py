"""The answer of a gate, from the records of its sides alone.

Verdicts come first: a lock that became unsafe is a regression at once, since a violation is evidence and no estimate.
Speed is judged in two rounds, see `gating`: by grants/s in a closed loop, by p99 in an open one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pybench.analysis import gating
from pybench.analysis.between_runs.changes import CellChange, Recorded, RunChanges, Turn, compare_runs, complete_trials
from pybench.analysis.between_runs.figures import by_block
from pybench.analysis.gating import Blocks, Finding, Judged
from pybench.formats import digits
from pybench.numbers import plural

if TYPE_CHECKING:
    import pandas as pd


class Outcome(StrEnum):
    """The answer in a word."""

    REGRESSION = "regression"
    PASS = "pass"
    UNKNOWN = "can't tell"


@dataclass(frozen=True, slots=True)
class GateCell:
    """One cell of a gate."""

    change: CellChange
    """Verdicts and all figures, over both rounds."""
    finding: Finding | None
    """None where the speed is not judged, because a side is unsafe or void."""
    first: Judged | None
    """None with too few blocks that have the figure on all sides."""
    second: Judged | None
    """The confirming round, where there was one."""

    @property
    def became_unsafe(self) -> bool:
        """Whether the lock became unsafe, or breaks a promise that it kept."""
        return self.change.turn is Turn.REGRESSION

    @property
    def is_regression(self) -> bool:
        """Whether this cell fails the gate."""
        return self.became_unsafe or self.finding is Finding.SLOWER

    @property
    def word(self) -> str:
        """The result in a word or two."""
        if self.became_unsafe:
            return "unsafe"
        return "not judged" if self.finding is None else self.finding.value


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """What a gate found."""

    cells: tuple[GateCell, ...]
    changes: RunChanges
    """Base and head compared, all trials of both rounds."""
    is_whole: bool = True
    """Whether the job came to its end: else no regression may only mean that it was not reached."""

    @property
    def regressions(self) -> list[GateCell]:
        """The cells that fail the gate, those that became unsafe first."""
        found = [one for one in self.cells if one.is_regression]
        return sorted(found, key=lambda one: not one.became_unsafe)

    @property
    def judged(self) -> list[GateCell]:
        """The cells whose speed was judged."""
        return [one for one in self.cells if one.first is not None]

    @property
    def outcome(self) -> Outcome:
        """The answer in a word: a gate that judged nothing can't tell."""
        if self.regressions:
            return Outcome.REGRESSION
        return Outcome.PASS if self.judged and self.is_whole and not self.lost else Outcome.UNKNOWN

    @property
    def lost(self) -> list[GateCell]:
        """The cells that are no longer proved safe."""
        return [one for one in self.cells if one.change.turn is Turn.LOST]

    @property
    def suspects(self) -> list[str]:
        """The head's cells that were slower in the first round."""
        return [one.change.new_cell for one in self.judged if one.first and one.first.finding is Finding.SLOWER]

    @property
    def headline(self) -> str:
        """One sentence."""
        unsafe = [one for one in self.regressions if one.became_unsafe]
        slower = [one for one in self.regressions if not one.became_unsafe]
        told = [f"{_first_of(unsafe)} became unsafe"] if unsafe else []
        told += [f"{_first_of(slower)} became slower"] if slower else []
        if told:
            return f"regression: {', and '.join(told)}"
        if not self.is_whole:
            return "can't tell: the job ended before all its trials, and no regression was found until then"
        if self.lost:
            return f"can't tell: {_first_of(self.lost)} no longer proved safe"
        if not self.judged:
            return "can't tell: no cell has enough trials of base and head that can be compared"
        most = max(one.first.excluded for one in self.judged if one.first is not None)
        every = "the cell" if len(self.judged) == 1 else "every cell"
        return (
            f"pass: no regression in {plural(len(self.judged), 'cell')}; a slowdown above {digits(most * 100, 2)} % is "
            f"excluded in {every}"
        )


def _first_of(cells: list[GateCell]) -> str:
    others = f" and {plural(len(cells) - 1, 'other cell')}" if len(cells) > 1 else ""
    return f"{cells[0].change.name}{others}"


def answer_of(
    base: Recorded, head: Recorded, again: Recorded, band: float | None = None, *, is_whole: bool = True
) -> GateAnswer:
    """Judge the sides of one gate. A `band` widens narrower equivalence bands to this share."""
    changes = _with_verdicts(compare_runs(base, head, band), compare_runs(base, again, band))
    of_first = int(head.manifest["gate"]["blocks"])
    trials = [complete_trials(run) for run in (base, head, again)]
    rounds: list[dict[str, Blocks]] = [{}, {}]
    for change in changes.cells:
        if change.effect is None:
            continue
        cells = (change.old_cell, change.new_cell, change.new_cell)
        figures = [_by_block(of.get(cell), change.deciding) for of, cell in zip(trials, cells, strict=True)]
        common = sorted(set.intersection(*(set(figure) for figure in figures)))
        for number, is_first in enumerate((True, False)):
            blocks = [block for block in common if (block <= of_first) is is_first]
            if blocks:
                columns = [[figure[block] for block in blocks] for figure in figures]
                rounds[number][change.new_cell] = Blocks(change.deciding, *columns)
    first = gating.judge(rounds[0], band)
    # Holm's correction covers the suspects of which the confirming round has blocks.
    second = gating.judge({cell: rounds[1][cell] for cell in gating.suspects(first) if cell in rounds[1]}, band)
    found = []
    for change in changes.cells:
        cell = change.new_cell
        finding = None if change.effect is None else gating.decided(cell, first, second)
        found.append(GateCell(change, finding, first.get(cell), second.get(cell)))
    return GateAnswer(tuple(found), changes, is_whole)


def _with_verdicts(head: RunChanges, again: RunChanges) -> RunChanges:
    """The changes of the head, with its verdict from the second measurement where only that one found a regression."""
    worse = {one.new_cell: one for one in again.cells if one.turn is Turn.REGRESSION}
    cells = [one if one.turn is Turn.REGRESSION else worse.get(one.new_cell, one) for one in head.cells]
    return replace(head, cells=tuple(cells))


def _by_block(trials: pd.DataFrame | None, column: str) -> dict[int, float]:
    return {} if trials is None else by_block(trials, column)
