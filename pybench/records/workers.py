"""The processes of a run whose load came from several: `workers.parquet`, a row for each.

A run has this file only if its one trial was merged from the parts of processes, as that of a native swarm of Locust.

Does not do: judging, or computing figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pybench.records import tables
from pybench.records.atomic import explained, write_atomically

WORKERS = "workers.parquet"

SCHEMA = pa.schema(
    {
        "worker": pa.string(),
        "host": pa.string(),
        "state": pa.string(),
        "clients": pa.int64(),
        "joined_s": pa.float64(),
        "left_s": pa.float64(),
        "grants": pa.int64(),
        "grants_per_s": pa.float64(),
        "contended_grants": pa.int64(),
        "acquire_p50_us": pa.float64(),
        "acquire_p99_us": pa.float64(),
        "send_delay_p99_us": pa.float64(),
        "violations": pa.int64(),
        "verdict": pa.string(),
        "reason": pa.string(),
        "clock_offset_us": pa.float64(),
        "clock_error_us": pa.float64(),
        "note": pa.string(),
    }
)


def write(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a row for each process. Raises RecordError."""
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)
    with explained(folder):
        write_atomically(folder / WORKERS, tables.parquet(table))


def read(folder: Path) -> pa.Table:
    """The rows; none where the run has no such file. Raises RecordError for a damaged file."""
    path = folder / WORKERS
    with explained(folder):
        if not path.exists():
            return SCHEMA.empty_table()
        return tables.read_parquet(path)
