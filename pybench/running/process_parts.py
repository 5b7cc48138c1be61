"""What a trial of several worker processes counted, all together, and its one verdict.

The checker judges the events that all threads recorded, merged by the clock of this machine. The rest is the sum of
what the processes counted. A killed process counted nothing at its end: its grants follow from its events, and its
latencies and counters are those that it handed over just before it was killed.

Promises: no grant is lost or counted twice. What is missing of a killed process is its time line of latencies and
commands, its clients' attempts and the quantiles of their waits, and what else it counted in the few milliseconds after
it had handed over.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pybench import _core
from pybench.records.merged_faults import merged_periods
from pybench.records.parts import KILLED, OF_CLIENTS, STEP_NS, Columns, Histogram, Placed, TrialPart, merge

if TYPE_CHECKING:
    from pybench.core_results import BuriedThread, FaultOutcome
    from pybench.core_specs import TrialSpec
    from pybench.running.worker_process import WorkerProcess

_OF_STEPS = ("refused", "errors", "p50_ns", "p99_ns")


def judged_together(
    spec: TrialSpec, workers: Sequence[WorkerProcess], files: Sequence[str], began_ns: int, *, stopped: bool
) -> TrialPart:
    """The trial of `spec`, the whole, that the `workers` ran from `began_ns` on, and recorded in `files`.

    Raises OSError where a recording cannot be read or written.
    """
    assert spec["duration_ns"] is not None, "a trial of several processes has an end"
    opened_ns = began_ns + spec["warmup_ns"]
    window = (opened_ns, opened_ns + spec["duration_ns"])
    parts = []
    for worker in workers:
        if worker.part is not None:
            parts.append(worker.part if not worker.was_stopped else _without_stall(worker.part))
        else:
            parts.append(_of_killed(spec, worker, files, len(workers), window))
    recorded = [worker.recorded for worker in workers if worker.recorded is not None]
    ended_ns = max((one["ended_ns"] for one in recorded), default=time.monotonic_ns())
    judged = _core.judge_recordings(spec, list(files), window, ended_ns)
    whole = merge([Placed(part, f"process {index}") for index, part in enumerate(parts)], shared_keys=True)
    totals = {**whole.totals, "began_ns": judged["began_ns"]}
    histograms = whole.histograms
    if judged["events"]:
        totals |= judged["totals"]
        handoff = judged["handoff"]
        if handoff.count:
            histograms = [*histograms, Histogram(handoff.phase, handoff.outcome, handoff.count, handoff.hdr)]
    if not recorded and not stopped:
        totals["window_ns"] = spec["duration_ns"]
    faults: FaultOutcome | None = None
    if whole.faults is not None:
        faults = {**whole.faults, "orphans": judged["orphans"], "time_to_free_ns": judged["time_to_free_ns"]}
    times = recorded[0]["window"] if recorded else window
    lengths = [len(part.clients.get("grants", ())) for part in parts]
    killed: Columns = {KILLED: np.repeat([np.uint64(worker.part is None) for worker in workers], lengths)}
    return replace(
        whole,
        totals=totals,
        clients={**whole.clients, **killed},
        timeline=_with_offered(whole.timeline, parts),
        histograms=histograms,
        stopped=stopped,
        violations=judged["violations"],
        finding=judged["finding"],
        faults=faults,
        recorded={"files": list(files), "window": times, "ended_ns": ended_ns},
    )


def _with_offered(timeline: Columns, parts: Sequence[TrialPart]) -> Columns:
    """`timeline` with the load that stages offered to all processes together, which each process knows."""
    offered = [part.timeline["offered"] for part in parts if "offered" in part.timeline]
    whole = [steps for steps in offered if len(steps) == len(timeline["start_ns"])]
    return {**timeline, "offered": whole[0]} if whole else timeline


def _without_stall(part: TrialPart) -> TrialPart:
    """A part whose loop stood still because its process was stopped on purpose."""
    return replace(part, totals={name: count for name, count in part.totals.items() if name != "longest_stall_ns"})


def _of_killed(
    spec: TrialSpec, worker: WorkerProcess, files: Sequence[str], processes: int, window: tuple[int, int]
) -> TrialPart:
    """The part of a process that was killed; its recordings get the deaths of its clients."""
    assert worker.died_ns is not None, "it was killed on purpose"
    threads, died_ns = spec["threads"], worker.died_ns
    own = range(worker.index * threads, (worker.index + 1) * threads)
    buried = [_core.bury(spec, (one, threads * processes), files[one], died_ns, window) for one in own]
    clients = _clients(buried)
    grants = clients["grants"]
    # A machine that is too busy leaves no time to hand over. Other code needs all counters, also those that are 0.
    drained = worker.drained or TrialPart(dict(_core.Trial(spec).drain().counters), [])
    counted = {
        "grants": int(grants.sum()),
        "nominal_hold_ns": sum(thread["nominal_hold_ns"] for thread in buried),
        "longest_wait_ns": int(clients["wait_max_ns"].max()),
        "window_start_ns": window[0],
        "window_ns": max(0, min(died_ns, window[1]) - window[0]),
        # Calls of each thread had no reply yet, so that keys may be left.
        "unsettled": threads,
    }
    periods = merged_periods([thread["periods"] for thread in buried])
    return replace(
        drained,
        totals={**drained.totals, **counted},
        timeline=_timeline(buried),
        clients=clients,
        periods=periods,
        faults=_faults(spec) if periods else None,
    )


def _faults(spec: TrialSpec) -> FaultOutcome:
    """A killed process cannot tell what its faults did."""
    return {
        "spans": [(None, None) for _ in spec.get("faults", ())],
        "crashes": 0,
        "orphans": 0,
        "dropped_renewals": 0,
        "time_to_free_ns": [],
        "time_to_know_ns": [],
    }


def _clients(buried: Sequence[BuriedThread]) -> Columns:
    columns: Columns = {
        "grants": np.concatenate([thread["grants"] for thread in buried]),
        "wait_sum_ns": np.concatenate([thread["wait_sum_ns"] for thread in buried]),
        "wait_max_ns": np.concatenate([thread["wait_max_ns"] for thread in buried]),
    }
    return {name: columns.get(name, np.zeros_like(columns["grants"])) for name in OF_CLIENTS}


def _timeline(buried: Sequence[BuriedThread]) -> Columns:
    count = max((len(thread["steps"]) for thread in buried), default=0)
    grants = np.zeros(count, dtype=np.uint64)
    for thread in buried:
        grants[: len(thread["steps"])] += thread["steps"]
    starts: Columns = {"start_ns": np.arange(count, dtype=np.uint64) * np.uint64(STEP_NS), "grants": grants}
    return {**starts, **{name: np.zeros(count, dtype=np.uint64) for name in _OF_STEPS}}
