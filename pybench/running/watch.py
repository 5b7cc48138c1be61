"""The progress events of a run, for the terminal's live view, for plain lines, or for no watcher.

The runner calls the methods from its own thread, between trials. A watcher may read `trial.progress()` from another
thread at any time.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pybench import _core
    from pybench.analysis.verdicts import Verdict
    from pybench.matrix.cells import Cell


@dataclass(frozen=True, slots=True)
class Slot:
    """One trial of the run. Trials outside the matrix, such as the control, have block 0 and number 0."""

    number: int
    """The number of the trial, from 1 over all trials of the run."""
    cell: Cell
    block: int
    planned_s: float
    """Warm-up and window in seconds, without overhead; of a search, of all its probes together."""
    side: str = ""
    """Of a job that measures several sides in turn: which of them this is."""
    probe: int = 0
    """The number of the probe within a search, from 1; 0 for a trial that is no probe."""
    probe_text: str = ""
    """The probe in words: its number, its phase and its rate."""

    @property
    def is_control(self) -> bool:
        """Whether the trial is outside the matrix: a control, a baseline or a probe."""
        return self.number == 0


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a trial; a figure that was not measured is None."""

    grants_per_s: float | None
    p99_us: float | None
    violations: int
    verdict: Verdict
    by_probe: bool = False
    """Whether the lock's probe decided the verdict."""
    limit: str = ""
    """The result of a search in words; empty for other trials."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of a running trial whose counts are in another process, with the fields of `_core.Progress`."""

    phase: str = "measuring"
    elapsed_ns: int = 0
    grants: int = 0
    grants_per_s: float = 0.0
    p99_ns: int = 0
    errors: int = 0
    reconnects: int = 0


@dataclass(frozen=True, slots=True)
class Around:
    """What a run does besides the planned time of its trials, in seconds."""

    before_s: float = 0.0
    """What is measured ahead of the trials: controls, baselines and probes."""
    overhead_s: float | None = None
    """What a trial of an earlier part of the run, or of another process, took beyond its planned time, if known."""
    ending_s: float = 0.0
    """From the last trial until the report is written."""


NOTHING_AROUND = Around()


class Running(Protocol):
    """A trial that is about to run or runs: one of the core, or one in another process."""

    def progress(self) -> _core.Progress | Progress:
        """How far it is; from any thread."""


class Watch(Protocol):
    """A watcher of a run."""

    def run_begins(
        self, name: str, folder: Path, left: list[Slot], total: int, around: Around = NOTHING_AROUND
    ) -> None:
        """The trials `left` of `total` are about to run; an earlier part of the run has done the others."""

    def trial_begins(self, slot: Slot, trial: Running) -> None:
        """`trial` is about to run."""

    def phase_ends(self, slot: Slot, text: str) -> None:
        """A phase of the search of `slot` has ended; `text` is the phase and its result."""

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        """The trial has been saved."""

    def note(self, text: str) -> None:
        """A message for the user."""

    def run_ends(self) -> None:
        """The last trial has ended, and the terminal is free again. A second call does nothing."""

    def working(self, text: str, expected_s: float = 0.0) -> AbstractContextManager[None]:
        """`text` is being done after the trials, while the block does it, in about `expected_s` seconds."""


class Silent:
    """A watcher that does nothing."""

    def run_begins(
        self, name: str, folder: Path, left: list[Slot], total: int, around: Around = NOTHING_AROUND
    ) -> None:
        """See `Watch`."""

    def trial_begins(self, slot: Slot, trial: Running) -> None:
        """See `Watch`."""

    def phase_ends(self, slot: Slot, text: str) -> None:
        """See `Watch`."""

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        """See `Watch`."""

    def note(self, text: str) -> None:
        """See `Watch`."""

    def run_ends(self) -> None:
        """See `Watch`."""

    def working(self, text: str, expected_s: float = 0.0) -> AbstractContextManager[None]:
        """See `Watch`."""
        return nullcontext()
