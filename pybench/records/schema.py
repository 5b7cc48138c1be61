"""The columns of a run folder, as `results/README.md` describes them, in their order.

Promises: each written file has the schema number, and a file with a newer number is refused.
Does not do: computing values.
"""

from __future__ import annotations

import pyarrow as pa

from pybench.columns import COLUMNS
from pybench.errors import RecordError
from pybench.matrix.cells import CELL_COLUMNS

SCHEMA = 7
"""Schema 1 had the named axes as text. Since schema 2 every axis is a column, with durations and rates as numbers.
Schema 3 added the axis `rtt`: a pybench that does not know it would compare cells of different networks.
Schema 4 added the axis `stages`, for the same reason, and the load `offered` in each step of the time line.
Schema 5 added the axis `mode`: a cell that searches for its limit has no rate, and must not be compared as a closed
loop. It added the files of clients, commands, nodes and telemetry, too, which folders of earlier schemas lack.
Schema 6 added the axis `faults`, since figures under faults must not be compared with those of healthy servers, and
the file of faults.
Schema 7 added the axis `processes`, since load from several processes costs more than load from one, and the axes
`guard` and `guard_on`, since guarded work takes longer than a hold without it."""
_NUMBER = b"pybench.schema"

_TYPES = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}

_OF_TRIALS = {**CELL_COLUMNS, **{column.name: column.type for column in COLUMNS.values() if column.in_trials}}
TRIAL_COLUMNS = tuple(_OF_TRIALS)

_LATENCY = {
    "cell": pa.string(),
    "trial": pa.int64(),
    "phase": pa.string(),
    "outcome": pa.string(),
    "count": pa.int64(),
    "hdr": pa.binary(),
}
_TIMELINE = {
    "cell": pa.string(),
    "trial": pa.int64(),
    "start_ns": pa.int64(),
    "grants": pa.int64(),
    "refused": pa.int64(),
    "errors": pa.int64(),
    "p50_ns": pa.int64(),
    "p99_ns": pa.int64(),
    "offered": pa.float64(),
}
_CLIENTS = {
    "cell": pa.string(),
    "trial": pa.int64(),
    "client": pa.int64(),
    "clients": pa.int64(),
    "grants": pa.int64(),
    "attempts": pa.int64(),
    "refused": pa.int64(),
    "errors": pa.int64(),
    "wait_mean_us": pa.float64(),
    "wait_p50_us": pa.float64(),
    "wait_p90_us": pa.float64(),
    "wait_p99_us": pa.float64(),
    "longest_wait_us": pa.float64(),
}
_COMMANDS = {
    "cell": pa.string(),
    "trial": pa.int64(),
    "step_ns": pa.int64(),
    "commands": pa.list_(pa.int64()),
}
_NODES = {
    "cell": pa.string(),
    "trial": pa.int64(),
    "server": pa.int64(),
    "asked": pa.int64(),
    "granted": pa.int64(),
    "refused": pa.int64(),
    "errors": pa.int64(),
    "unanswered": pa.int64(),
    "late": pa.int64(),
    "decided": pa.int64(),
    "reply_p50_us": pa.float64(),
    "reply_p90_us": pa.float64(),
    "reply_p99_us": pa.float64(),
    "longest_reply_us": pa.float64(),
    "validity_p50_ms": pa.float64(),
    "validity_p10_ms": pa.float64(),
    "validity_p01_ms": pa.float64(),
    "least_validity_ms": pa.float64(),
}
_TELEMETRY = {
    "cell": pa.string(),
    "trial": pa.int64(),
    "start_ns": pa.int64(),
    "server": pa.int64(),
    "cpu_share": pa.float64(),
    "commands": pa.int64(),
    "slow_commands": pa.int64(),
    "waiting": pa.float64(),
    "waits": pa.string(),
    "wal_bytes": pa.int64(),
    "steal_share": pa.float64(),
    "sampling_share": pa.float64(),
}
_FAULTS = {
    "cell": pa.string(),
    "trial": pa.int64(),
    "fault": pa.int64(),
    "name": pa.string(),
    "planned_from_ns": pa.int64(),
    "planned_until_ns": pa.int64(),
    "from_ns": pa.int64(),
    "until_ns": pa.int64(),
    "error": pa.string(),
}
_VIOLATION = {
    "schema": pa.int64(),
    "cell": pa.string(),
    "trial": pa.int64(),
    "sentence": pa.string(),
    "kind": pa.string(),
    "key": pa.string(),
    "at_ns": pa.int64(),
    "overlap_ns": pa.int64(),
    "first_client": pa.int64(),
    "first_granted_ns": pa.int64(),
    "first_until_ns": pa.int64(),
    "first_fence": pa.int64(),
    "first_ended_ns": pa.int64(),
    "second_client": pa.int64(),
    "second_granted_ns": pa.int64(),
    "second_until_ns": pa.int64(),
    "second_fence": pa.int64(),
    "second_ended_ns": pa.int64(),
}

TRIALS = pa.schema({name: _TYPES[kind] for name, kind in _OF_TRIALS.items()})
LATENCY = pa.schema(_LATENCY)
TIMELINE = pa.schema(_TIMELINE)
VIOLATIONS = pa.schema(_VIOLATION)

CLIENTS = pa.schema(_CLIENTS)
COMMANDS = pa.schema(_COMMANDS)
NODES = pa.schema(_NODES)
TELEMETRY = pa.schema(_TELEMETRY)
FAULTS = pa.schema(_FAULTS)

NESTED = {
    "latency_rows": LATENCY,
    "timeline_rows": TIMELINE,
    "client_rows": CLIENTS,
    "command_rows": COMMANDS,
    "node_rows": NODES,
    "telemetry_rows": TELEMETRY,
    "fault_rows": FAULTS,
    "violation_rows": VIOLATIONS,
}
"""The list columns of a part besides its trial's row: rows without their cell and trial."""


def inner_schema(name: str) -> pa.Schema:
    """The schema of the rows in a list column: that of the file without cell and trial, which the part's row has."""
    return pa.schema([field for field in NESTED[name] if field.name not in {"cell", "trial"}])


PART = pa.schema([*TRIALS, *(pa.field(name, pa.list_(pa.struct(list(inner_schema(name))))) for name in NESTED)])
"""The row of one trial with its list columns."""


def numbered(schema: pa.Schema) -> pa.Schema:
    """`schema` with the schema number, to be written to a file."""
    return schema.with_metadata({_NUMBER: str(SCHEMA).encode()})


def require_known(schema: pa.Schema, file: str) -> None:
    """Raise RecordError unless `file`, which has `schema`, was written under this schema number or an earlier one."""
    number = (schema.metadata or {}).get(_NUMBER)
    if number is None or not number.isdigit():
        raise RecordError(f"{file} is not a file of a run folder", hint="pass a folder that `pybench run` wrote")
    require_known_number(int(number), file)


def require_known_number(number: int, file: str) -> None:
    """Raise RecordError when `number` is newer than this pybench knows."""
    if number > SCHEMA:
        raise RecordError(
            f"{file} has schema number {number}, and this pybench reads up to {SCHEMA}",
            hint="upgrade pybench: a newer version recorded this run",
        )
