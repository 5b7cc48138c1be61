"""The probes of searches for a limit: `probes.parquet`, a row for each, in the order in which they ran.

A probe is saved in a file of its own under `parts/` as soon as it is over, and gathered with the trials. Only runs with
a search have them.

Does not do: deciding what a probe has shown, or what comes next; see `analysis.search_outcomes` and
`planning.limit_search`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pybench.analysis import histograms
from pybench.analysis.outcome import Outcome
from pybench.analysis.search_outcomes import ProbeOutcome
from pybench.planning.limit_search import Ask
from pybench.records import tables
from pybench.records.histories import part_stem
from pybench.records.trial import TrialRecord

PROBES = "probes.parquet"
PROBE_SUFFIX = ".probe"

WORK = ("hold", "release")
"""The phases of an arrival after its grant, until it leaves the system."""

_FROM_TRIAL = {
    "started_at": pa.string(),
    "grants_per_s": pa.float64(),
    "safe_grants_per_s": pa.float64(),
    "acquire_p50_us": pa.float64(),
    "acquire_p99_us": pa.float64(),
    "acquire_p999_us": pa.float64(),
    "longest_wait_us": pa.float64(),
    "send_delay_p99_us": pa.float64(),
    "longest_stall_ms": pa.float64(),
    "server_cpu_share": pa.float64(),
    "utilisation": pa.float64(),
    "arrivals": pa.int64(),
    "drops": pa.int64(),
    "grants": pa.int64(),
    "contended_grants": pa.int64(),
    "unfinished": pa.int64(),
    "violations": pa.int64(),
    "verdict": pa.string(),
    "steady": pa.bool_(),
}
"""Columns of `trials.parquet`, with the same meaning for a probe."""
SCHEMA = pa.schema(
    {
        "cell": pa.string(),
        "trial": pa.int64(),
        "probe": pa.int64(),
        "phase": pa.string(),
        "rate_per_s": pa.float64(),
        "shown": pa.string(),
        "limited_by": pa.string(),
        "reason": pa.string(),
        "mean_response_us": pa.float64(),
        "mean_in_system_us": pa.float64(),
        **_FROM_TRIAL,
    }
)


def row_of(record: TrialRecord, number: int, ask: Ask, outcome: ProbeOutcome, result: Outcome) -> dict[str, Any]:
    """The row of probe `number`, from 1, of the search that `record` belongs to."""
    response = _mean_us(result, "response")
    after = [_mean_us(result, phase) or 0.0 for phase in WORK]
    return {
        "cell": record.cell,
        "trial": record.trial,
        "probe": number,
        "phase": ask.phase.value,
        "rate_per_s": ask.rate_per_s,
        "shown": outcome.shown.value,
        "limited_by": outcome.limited_by or None,
        "reason": outcome.reason or None,
        "mean_response_us": response,
        "mean_in_system_us": None if response is None else response + sum(after),
        **{name: record.row[name] for name in _FROM_TRIAL},
    }


def encode(row: Mapping[str, Any]) -> bytes:
    """One probe as an Arrow file."""
    return tables.encode_row(row, SCHEMA)


def part_name(cell: str, trial: int, number: int | None = None) -> str:
    """The name of the file of a probe under `parts/`; without a `number`, the pattern of all those of its search."""
    return f"{part_stem(cell, trial)}.{'*' if number is None else f'{number:03}'}{PROBE_SUFFIX}"


def without(probes: pa.Table, cell: str, trial: int) -> pa.Table:
    """`probes` without those of one search."""
    own = pc.and_(pc.equal(probes["cell"], cell), pc.equal(probes["trial"], trial))
    return probes.filter(pc.invert(own))


def read(folder: Path) -> pa.Table:
    """The probes of a run, finished or not. Raises RecordError for a damaged file, OSError for one that is not read."""
    gathered = [tables.read_parquet(folder / PROBES)] if (folder / PROBES).exists() else []
    parts = [tables.read_part(path) for path in sorted((folder / tables.PARTS).glob(f"[!.]*{PROBE_SUFFIX}"))]
    rows: dict[tuple[str, int, int], dict[str, Any]] = {}
    for table in (*gathered, *parts):
        for row in table.to_pylist():
            # A probe that was measured again replaces the earlier one.
            rows[row["cell"], row["trial"], row["probe"]] = row
    return pa.Table.from_pylist([rows[key] for key in sorted(rows)], schema=SCHEMA)


def _mean_us(result: Outcome, phase: str) -> float | None:
    """The mean length of a phase of grants in microseconds; None without a sample."""
    parts = [row.hdr for row in result.histograms if row.phase == phase and row.outcome == "granted"]
    mean_ns = histograms.mean_ns(parts)
    return None if mean_ns is None else mean_ns / 1e3
