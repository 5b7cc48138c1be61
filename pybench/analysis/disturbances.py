"""Disturbances of the servers or connections of a trial, and what a disturbed trial still proves.

A trial with broken connections and lost replies stays valid: its clients handle them, and the report names them. After
a server restart, refused calls or a changed clock, the trial enters no median.

Promises: a violation counts only where the disturbance of the servers cannot have caused it.
Does not do: detecting disturbances; see `running.aftermath`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pybench.analysis.verdicts import KINDS, Judgement, Verdict
from pybench.errors import LocksGone, ServerError
from pybench.numbers import plural

if TYPE_CHECKING:
    from pybench.core_results import Violation


DISTURBANCES = ("reconnects", "lost_calls", "unknown", "unknown_writes")
"""The totals of a trial that count disturbances."""


def disturbances(*, reconnects: int, lost_calls: int, unknown: int, unknown_writes: int = 0) -> str:
    """Such as `2 connections broke, 5 calls were lost, 3 acquires got no reply`; empty without a disturbance.

    The counts overlap: an acquire whose call was lost with its connection counts in the first three.
    """
    parts = (
        (reconnects, f"{plural(reconnects, 'connection')} broke"),
        (lost_calls, f"{plural(lost_calls, 'call was', 'calls were')} lost"),
        (unknown, f"{plural(unknown, 'acquire')} got no reply"),
        (unknown_writes, f"{plural(unknown_writes, 'write')} got no reply"),
    )
    return ", ".join(text for count, text in parts if count)


DISTURBED = "disturbed"
"""The status of a trial whose servers were disturbed: its figures enter no median."""

PROOF = ("double-grant", "double-grant-after-overrun", "session-lost", "lease-overrun", "stale-fence")
"""Kinds that a refused call cannot cause. A key that stalls or a release that is denied may be the server's fault."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error that ends the run after a trial, and up to when the violations of the trial count."""

    error: ServerError
    intact_ns: float = math.inf
    """How long after the trial began the servers certainly still kept all held locks, in nanoseconds."""

    @classmethod
    def of(cls, error: ServerError, *, first_cut_ns: int | None) -> Trouble:
        """The trouble that `error` makes for a trial whose first closed connection was noticed at `first_cut_ns`."""
        if not isinstance(error, LocksGone):
            return cls(error)
        if not error.cuts_connections:
            return cls(error, -math.inf)
        return cls(error) if first_cut_ns is None else cls(error, first_cut_ns)


def first_of(troubles: Iterable[Trouble]) -> Trouble | None:
    """The first of `troubles`, with the earliest time up to which violations count."""
    listed = list(troubles)
    return Trouble(listed[0].error, min(one.intact_ns for one in listed)) if listed else None


def counted(
    totals: Mapping[str, int], violations: Sequence[Violation], trouble: Trouble | None
) -> tuple[dict[str, int], list[Violation]]:
    """The totals and the violations of a trial that count in spite of `trouble`.

    Where a server lost its locks, only earlier violations count; the core keeps the first 100 of them.
    """
    if trouble is None:
        return dict(totals), list(violations)
    is_intact = trouble.intact_ns == math.inf
    kept = [one for one in violations if one["kind"] in PROOF and one["at_ns"] < trouble.intact_ns]
    seen = Counter[str](one["kind"] for one in kept)
    counts = {
        kind.column: totals[kind.column] if is_intact and name in PROOF else seen[name]
        for name, kind in KINDS.items()
        if kind.column in totals
    }
    return {**totals, **counts}, kept


def proven(judgement: Judgement, status: str) -> Judgement:
    """The judgement on a trial with this `status`: a disturbed trial can prove UNSAFE, but never SAFE."""
    if status != DISTURBED or judgement.verdict is not Verdict.SAFE:
        return judgement
    reason = "its servers were disturbed, and no violation was seen before"
    return replace(judgement, verdict=Verdict.UNDECIDED, reason=reason, bound_per_million=None)
