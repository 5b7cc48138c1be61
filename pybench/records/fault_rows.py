"""What became of the faults of a trial: the rows of `faults.parquet`, and the figures before, during and after them.

Figures come from the steps of the time line. A step that is only partly within a fault belongs to none of the three.
Promises: a figure that is not available is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench.records.parts import STEP_NS, step_ns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.analysis.outcome import Outcome
    from pybench.matrix.faults import Fault

FIGURES = ("unavailable_ms", "grants_before_per_s", "grants_during_per_s", "grants_after_per_s")


@dataclass(slots=True)
class Carried:
    """What became of one fault. Times by the monotonic clock; None where it did not come to that."""

    fault: Fault
    from_ns: int | None = None
    """When pybench began to do it."""
    until_ns: int | None = None
    """When the server was healthy again; of a fault of a moment, when it was done."""
    error: str | None = None


def fault_rows(carried: Sequence[Carried], opened_ns: int) -> list[dict[str, Any]]:
    """A row for each fault of a trial whose window opened at `opened_ns`."""

    def since(at_ns: int | None) -> int | None:
        return None if at_ns is None else at_ns - opened_ns

    return [
        {
            "fault": number,
            "name": one.fault.name,
            "planned_from_ns": one.fault.at_ns,
            "planned_until_ns": one.fault.until_ns,
            "from_ns": since(one.from_ns),
            "until_ns": since(one.until_ns),
            "error": one.error,
        }
        for number, one in enumerate(carried, start=1)
    ]


def fault_columns(carried: Sequence[Carried], result: Outcome) -> dict[str, float | None]:
    """The columns of a trial about its faults, as they were really carried out."""
    none: dict[str, float | None] = dict.fromkeys(FIGURES)
    opened_ns = result.totals.get("window_start_ns", 0)
    spans = [
        (one.from_ns - opened_ns, (one.until_ns or one.from_ns) - opened_ns)
        for one in carried
        if one.from_ns is not None
    ]
    starts_ns = result.timeline.get("start_ns", np.zeros(0)).astype(np.int64)
    if not spans or not len(starts_ns):
        return none
    length_ns = step_ns(starts_ns, STEP_NS)
    whole = starts_ns + length_ns <= result.totals["window_ns"]
    starts_ns, grants = starts_ns[whole], result.timeline["grants"].astype(np.int64)[whole]
    ends_ns = starts_ns + length_ns
    first_ns, last_ns = min(begin for begin, _ in spans), max(end for _, end in spans)
    within = np.zeros(len(starts_ns), dtype=bool)
    for begin_ns, end_ns in spans:
        within |= (starts_ns >= begin_ns) & (ends_ns <= end_ns)
    parts = {"before": ends_ns <= first_ns, "during": within, "after": starts_ns >= last_ns}
    rates = {f"grants_{name}_per_s": _rate(grants[chosen], length_ns) for name, chosen in parts.items()}
    return none | rates | {"unavailable_ms": _longest_gap(grants, ends_ns > first_ns) * length_ns / 1e6}


def _rate(grants: NDArray[np.int64], length_ns: int) -> float | None:
    return float(grants.sum()) / (len(grants) * length_ns / 1e9) if len(grants) else None


def _longest_gap(grants: NDArray[np.int64], counts: NDArray[np.bool_]) -> int:
    """The most steps in a row without a grant, of those that count."""
    longest = run = 0
    for empty in (grants == 0) & counts:
        run = run + 1 if empty else 0
        longest = max(longest, run)
    return longest


def intervals_s(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, str]]:
    """When each fault of these rows was really there, in seconds from the opening of the window, with its name."""
    return [
        (row["from_ns"] / 1e9, max(row["until_ns"], row["from_ns"]) / 1e9, str(row["name"]))
        for row in rows
        if row["from_ns"] is not None and row["until_ns"] is not None
    ]
