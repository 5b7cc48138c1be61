"""What became of the faults of a trial: the rows of `faults.parquet`, and the figures before, during and after them.

Promises: a figure that is not available is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench.analysis import histograms, stats
from pybench.records.parts import STEP_NS, step_ns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.analysis.outcome import Outcome
    from pybench.matrix.faults import Fault, Faults

PERIODS = ("before", "during", "after")
QS = {"p50": 0.5, "p99": 0.99}
RATES = tuple(f"grants_{period}_per_s" for period in PERIODS)
QUANTILES = {f"acquire_{name}_{period}_us": (period, q) for name, q in QS.items() for period in PERIODS}
FIGURES = ("unavailable_ms", *RATES, *QUANTILES, "orphans", "time_to_free_ms", "time_to_know_ms")
"""The columns of a trial about its faults."""
NEVER = "the trial ended before"


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


def fault_columns(carried: Sequence[Carried], result: Outcome, *, one_holder: bool) -> dict[str, float | None]:
    """The columns of a trial about its faults, as they were really carried out.

    The next grant of a key shows that a dead client's lock was freed only where a key has `one_holder` at a time.
    """
    columns: dict[str, float | None] = dict.fromkeys(FIGURES)
    if not carried:
        return columns
    for period in result.periods:
        length_s, name = period["length_ns"] / 1e9, period["period"]
        columns[f"grants_{name}_per_s"] = period["grants"] / length_s if length_s else None
        buckets = histograms.merged([period["hdr"]])
        for part, q in QS.items():
            quantile_ns = stats.quantile(*buckets, q)
            columns[f"acquire_{part}_{name}_us"] = None if quantile_ns is None else quantile_ns / 1e3
    columns["unavailable_ms"] = _unavailable_ms(carried, result)
    done = result.faults
    if done is not None and any(one.fault.kills_holders for one in carried):
        columns["orphans"] = done["orphans"]
        if one_holder:
            columns["time_to_free_ms"] = _longest_ms(done["time_to_free_ns"])
    if done is not None:
        columns["time_to_know_ms"] = _longest_ms(done["time_to_know_ns"])
    return columns


def of_core(faults: Faults, result: Outcome) -> list[Carried]:
    """What became of those `faults` that the core carries out."""
    planned = [fault for fault in faults.faults if fault.kind.by_core]
    spans = [] if result.faults is None else result.faults["spans"]
    opened_ns = result.totals["window_start_ns"]
    return [
        Carried(
            fault,
            None if begin is None else opened_ns + begin,
            None if end is None else opened_ns + end,
            NEVER if begin is None else None,
        )
        for fault, (begin, end) in zip(planned, spans, strict=True)
    ]


def _longest_ms(times_ns: Sequence[int]) -> float | None:
    return max(times_ns) / 1e6 if times_ns else None


def _unavailable_ms(carried: Sequence[Carried], result: Outcome) -> float | None:
    begins = [one.from_ns - result.totals["window_start_ns"] for one in carried if one.from_ns is not None]
    starts_ns = result.timeline.get("start_ns", np.zeros(0)).astype(np.int64)
    if not begins or not len(starts_ns):
        return None
    length_ns = step_ns(starts_ns, STEP_NS)
    ends_ns = starts_ns + length_ns
    whole = ends_ns <= result.totals["window_ns"]
    grants = result.timeline["grants"].astype(np.int64)
    return _longest_gap(grants[whole], (ends_ns > min(begins))[whole]) * length_ns / 1e6


def _longest_gap(grants: NDArray[np.int64], counts: NDArray[np.bool_]) -> int:
    """The most steps in a row without a grant, of those that count."""
    longest = run = 0
    for empty in (grants == 0) & counts:
        run = run + 1 if empty else 0
        longest = max(longest, run)
    return longest
