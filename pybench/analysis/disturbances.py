"""What befell the servers or connections of a trial, and what the trial still proves.

Broken connections and lost replies do not spoil a trial: its clients lived through them, and the report says so. After
a restart, refused calls or a clock that was set, the trial enters no median.

Promises: a violation counts only where what befell the servers cannot have caused it.
Does not do: finding out what befell the servers; see `running.aftermath`.
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
    from pybench._core import Violation


DISTURBANCES = ("reconnects", "lost_calls", "unknown", "unknown_writes")
"""The totals of a trial that tell of them."""


def disturbances(*, reconnects: int, lost_calls: int, unknown: int, unknown_writes: int = 0) -> str:
    """Such as `2 connections broke, 5 calls were lost, 3 acquires got no answer`; empty when nothing was amiss.

    They are not added up: an acquire whose call was lost with its connection counts in the first three.
    """
    told = (
        (reconnects, f"{plural(reconnects, 'connection')} broke"),
        (lost_calls, f"{plural(lost_calls, 'call was', 'calls were')} lost"),
        (unknown, f"{plural(unknown, 'acquire')} got no answer"),
        (unknown_writes, f"{plural(unknown_writes, 'write')} got no answer"),
    )
    return ", ".join(words for count, words in told if count)


DISTURBED = "disturbed"
"""The status of a trial whose servers something befell: its figures enter no median."""

PROOF = ("double-grant", "double-grant-after-overrun", "session-lost", "lease-overrun", "stale-fence")
"""Kinds that a refused call cannot cause. A key that stalls or a release that is denied may be the server's fault."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What ends the run after a trial, and how far the trial's violations still count."""

    error: ServerError
    intact_ns: float = math.inf
    """For how long since the trial began the servers certainly kept all locks that were held."""

    @classmethod
    def of(cls, error: ServerError, *, first_cut_ns: int | None) -> Trouble:
        """What `error` means after a trial whose first closed connection was found at `first_cut_ns`, if any was."""
        if not isinstance(error, LocksGone):
            return cls(error)
        if not error.cuts_connections:
            return cls(error, -math.inf)
        return cls(error) if first_cut_ns is None else cls(error, first_cut_ns)


def first_of(troubles: Iterable[Trouble]) -> Trouble | None:
    """The first of `troubles` stands for all, and violations count up to the shortest of their times."""
    found = list(troubles)
    return Trouble(found[0].error, min(one.intact_ns for one in found)) if found else None


def counted(
    totals: Mapping[str, int], found: Sequence[Violation], trouble: Trouble | None
) -> tuple[dict[str, int], list[Violation]]:
    """The totals of a trial and the violations found in it, as far as they count after `trouble`.

    Of a server that lost its locks only violations of before count, and of those the core keeps the first 100.
    """
    if trouble is None:
        return dict(totals), list(found)
    is_intact = trouble.intact_ns == math.inf
    kept = [one for one in found if one["kind"] in PROOF and one["at_ns"] < trouble.intact_ns]
    seen = Counter[str](one["kind"] for one in kept)
    counts = {
        kind.column: totals[kind.column] if is_intact and name in PROOF else seen[name]
        for name, kind in KINDS.items()
        if kind.column in totals
    }
    return {**totals, **counts}, kept


def proven(judgement: Judgement, status: str) -> Judgement:
    """What a trial with this `status` proves: one whose servers were disturbed shows violations, and never safety."""
    if status != DISTURBED or judgement.verdict is not Verdict.SAFE:
        return judgement
    reason = "its servers were disturbed, and nothing was seen broken before"
    return replace(judgement, verdict=Verdict.UNDECIDED, reason=reason, bound_per_million=None)
