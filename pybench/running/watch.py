"""What a run tells those who look on while it goes: the terminal's live view, plain lines, or nobody.

The runner calls these from its own thread, between trials; a watcher may read `trial.progress()` from a thread of its
own as often as it likes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pybench import _core
    from pybench.analysis.verdicts import Verdict
    from pybench.matrix.cells import Cell


@dataclass(frozen=True, slots=True)
class Slot:
    """One trial of the run's order. The control has no block and is number 0."""

    number: int
    """From 1, over all trials of the run."""
    cell: Cell
    block: int
    planned_s: float
    """Warm-up and window, without what surrounds them."""

    @property
    def is_control(self) -> bool:
        """Whether it is not of the matrix, but shows that the checker sees."""
        return self.number == 0


@dataclass(frozen=True, slots=True)
class Finished:
    """What a trial came to; a figure that was not measured is None."""

    grants_per_s: float | None
    p99_us: float | None
    violations: int
    verdict: Verdict
    by_probe: bool = False
    """Whether the verdict is that of the lock's probe."""


class Watch(Protocol):
    """Someone who looks on."""

    def run_begins(self, name: str, folder: Path, left: list[Slot], total: int) -> None:
        """The trials that are `left` of `total` are about to run; those before were done by an earlier run."""

    def trial_begins(self, slot: Slot, trial: _core.Trial) -> None:
        """`trial` is about to run."""

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        """It has been saved."""

    def note(self, text: str) -> None:
        """Something a user should know."""

    def run_ends(self) -> None:
        """Nothing more will come; the terminal is the caller's again. Harmless when called twice."""


class Silent:
    """Nobody looks on."""

    def run_begins(self, name: str, folder: Path, left: list[Slot], total: int) -> None:
        """See `Watch`."""

    def trial_begins(self, slot: Slot, trial: _core.Trial) -> None:
        """See `Watch`."""

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        """See `Watch`."""

    def note(self, text: str) -> None:
        """See `Watch`."""

    def run_ends(self) -> None:
        """See `Watch`."""
