"""What a trial counted, wherever it ran: the core's result, or the merged parts of several processes.

For the type checker; nothing here runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pybench.core_results import ErrorReply, FaultOutcome, NodeVotes, PeriodFigures, Violation


class Counted(Protocol):
    """A histogram of a phase and an outcome, as `_core.HistogramRow`."""

    @property
    def phase(self) -> str:
        """Such as `response`; see `_core.HistogramRow`."""

    @property
    def outcome(self) -> str:
        """Such as `granted`."""

    @property
    def count(self) -> int:
        """The number of samples."""

    @property
    def hdr(self) -> bytes:
        """HdrHistogram V2, deflated."""


class Outcome(Protocol):
    """What a trial counted: a `TrialResult` of the core, or a `TrialPart` from `records.parts`."""

    @property
    def stopped(self) -> bool:
        """Whether the trial was ended early."""

    @property
    def totals(self) -> dict[str, int]:
        """The counters that `results/README.md` lists."""

    @property
    def jain(self) -> float | None:
        """Jain's index over the clients' grants; None without a grant."""

    @property
    def histograms(self) -> Sequence[Counted]:
        """One for each phase and outcome that occurred."""

    @property
    def timeline(self) -> Mapping[str, NDArray[np.uint64 | np.float64]]:
        """The columns of the time line, one element per step."""

    @property
    def clients(self) -> Mapping[str, NDArray[Any]]:
        """The columns of the clients, one element for each."""

    @property
    def violations(self) -> list[Violation]:
        """The first 100 violations."""

    @property
    def finding(self) -> str | None:
        """The first order of events that the checker considers impossible."""

    @property
    def errors(self) -> list[ErrorReply]:
        """The error replies by phase, code and server."""

    @property
    def writes(self) -> Mapping[str, NDArray[Any]]:
        """For each key: acknowledged and unknown writes; empty for a lock that writes nothing."""

    @property
    def commands(self) -> Mapping[str, NDArray[Any]]:
        """The commands sent in each step of 10 ms."""

    @property
    def periods(self) -> Sequence[PeriodFigures]:
        """Before, during and after the faults; empty without any."""

    @property
    def faults(self) -> FaultOutcome | None:
        """What the faults of connections and clients did; None without any fault."""

    @property
    def nodes(self) -> Sequence[NodeVotes]:
        """For each server of a lock whose servers vote, what it replied; empty for all other locks."""
