"""The figures about faults of a trial that ran in several processes, from those of each process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pybench import _core

if TYPE_CHECKING:
    from pybench.core_results import FaultOutcome, PeriodFigures

Span = tuple[int | None, int | None]


def merged_periods(parts: Sequence[Sequence[PeriodFigures]]) -> list[PeriodFigures]:
    """The figures before, during and after the faults; empty where no part has any."""
    merged: dict[str, PeriodFigures] = {}
    for row in (row for part in parts for row in part):
        before = merged.get(row["period"])
        if before is None:
            merged[row["period"]] = {**row}
            continue
        # A process that was interrupted or killed has a shorter window.
        before["length_ns"] = max(before["length_ns"], row["length_ns"])
        before["grants"] += row["grants"]
        before["errors"] += row["errors"]
        before["count"] += row["count"]
        before["hdr"] = _core.merge_histograms([before["hdr"], row["hdr"]])
    return list(merged.values())


def merged_faults(parts: Sequence[FaultOutcome | None]) -> FaultOutcome | None:
    """What the faults did in all processes together; None where no part has any."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    return {
        "spans": [_union(spans) for spans in zip(*(part["spans"] for part in known), strict=True)],
        "crashes": sum(part["crashes"] for part in known),
        "orphans": sum(part["orphans"] for part in known),
        "dropped_renewals": sum(part["dropped_renewals"] for part in known),
        "time_to_free_ns": [time for part in known for time in part["time_to_free_ns"]],
        "time_to_know_ns": [time for part in known for time in part["time_to_know_ns"]],
    }


def _union(spans: Sequence[Span]) -> Span:
    begins = [begin for begin, _ in spans if begin is not None]
    ends = [end for _, end in spans if end is not None]
    return min(begins, default=None), max(ends, default=None)
