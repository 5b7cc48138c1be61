"""What a trial counted, wherever it ran: the core's result, or the merged parts of several processes.

For the type checker; nothing here runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pybench._core import ErrorReply, Violation


class Counted(Protocol):
    """A histogram of a phase and an outcome, as `_core.HistogramRow`."""

    @property
    def phase(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def hdr(self) -> bytes:
        """HdrHistogram V2, deflated."""


class Outcome(Protocol):
    """What a trial counted: a `TrialResult` of the core, or a `TrialPart` from `records.parts`."""

    @property
    def stopped(self) -> bool: ...
    @property
    def totals(self) -> dict[str, int]: ...
    @property
    def jain(self) -> float | None: ...
    @property
    def histograms(self) -> Sequence[Counted]: ...
    @property
    def timeline(self) -> Mapping[str, NDArray[np.uint64 | np.float64]]: ...
    @property
    def clients(self) -> Mapping[str, NDArray[Any]]: ...
    @property
    def violations(self) -> list[Violation]: ...
    @property
    def finding(self) -> str | None: ...
    @property
    def errors(self) -> list[ErrorReply]: ...
    @property
    def writes(self) -> Mapping[str, NDArray[Any]]: ...
