"""The counters and wait events of a database in the trials of a cell, per grant: pure functions of the record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pybench.numbers import missing

KINDS = {
    "working": "at work",
    "Client": "waiting for the client",
    "Lock": "waiting for a lock",
    "IO": "waiting for the disk",
    "LWLock": "waiting inside the server",
}
"""The activity of sessions by the type of their wait event."""
IN_TRANSACTION = "waiting for the client, in a transaction"
OTHER = "other"
WAL_WAIT = "WALWrite"
"""The lock inside the server that is a queue for the disk: its holder writes the WAL for all that wait."""

ORDER = ("at work", "waiting for a lock", "waiting for the disk", "waiting inside the server", IN_TRANSACTION,
         "waiting for the client", OTHER)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DatabaseUse:
    """The use of one cell. Figures per grant count the grants of whole trials, as the counters do; None if unknown."""

    waits: Mapping[str, float]
    """By activity, one of `ORDER`: its share of all sampled sessions."""
    events: Mapping[str, float]
    """By wait event, such as `IO:WalSync`, the largest share first."""
    samples: int
    sessions: int
    """The most in one sample."""
    wal_bytes: float | None
    commits: float | None
    cpu_us: float | None
    rollbacks: int
    deadlocks: int


def database_use(trials: pd.DataFrame) -> dict[str, DatabaseUse]:
    """The use of each cell that has a database, by the id of the cell; older records have none."""
    if "database_figures" not in trials:
        return {}
    complete = trials[trials["status"] == "complete"]
    records: dict[str, list[dict[str, Any]]] = {}
    for cell, text in zip(complete["cell"], complete["database_figures"], strict=True):
        if not missing(text):
            records.setdefault(str(cell), []).append(json.loads(text))
    return {cell: _use(of_cell) for cell, of_cell in records.items()}


def kind_of(event: str) -> str:
    """The activity, one of `ORDER`, of a session that waits for `event`."""
    kind, _, what = event.partition(":")
    if kind == "Client" and event.endswith("(in transaction)"):
        return IN_TRANSACTION
    if kind == "LWLock" and what.startswith(WAL_WAIT):
        return KINDS["IO"]
    return KINDS.get(kind, OTHER)


def _use(records: Sequence[Mapping[str, Any]]) -> DatabaseUse:
    events = _events(records)
    waits = dict.fromkeys(ORDER, 0.0)
    for event, share in events.items():
        waits[kind_of(event)] += share
    grants = sum(record.get("grants") or 0 for record in records)
    return DatabaseUse(
        waits={kind: share for kind, share in waits.items() if share},
        events=events,
        samples=sum(record["looks"]["taken"] for record in records),
        sessions=max(record["looks"]["most_sessions"] for record in records),
        wal_bytes=_per_grant(records, "wal_bytes", grants),
        commits=_per_grant(records, "commits", grants),
        cpu_us=_per_grant(records, "cpu_us", grants),
        rollbacks=sum(record["rollbacks"] for record in records),
        deadlocks=sum(record["deadlocks"] for record in records),
    )


def _events(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Shares over all samples of all trials: a trial with more samples counts for more."""
    weights = [record["looks"]["taken"] if record["waits"] else 0 for record in records]
    total = sum(weights)
    sums: dict[str, float] = {}
    for record, weight in zip(records, weights, strict=True):
        for event, share in record["waits"].items():
            sums[event] = sums.get(event, 0.0) + share * weight / total
    return dict(sorted(sums.items(), key=lambda entry: (-entry[1], entry[0])))


def _per_grant(records: Sequence[Mapping[str, Any]], name: str, grants: int) -> float | None:
    counts = [record.get(name) for record in records]
    known = [count for count in counts if count is not None]
    return sum(known) / grants if grants and len(known) == len(counts) else None
