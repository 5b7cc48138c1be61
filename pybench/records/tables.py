"""The tables of a run folder: encoding and decoding of parts, and gathering of a whole folder, finished or not.

Promises: a part replaces earlier rows of the same trial; verdicts follow from the control in the manifest.
Does not do: writing to disk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pybench.analysis import verdicts
from pybench.analysis.disturbances import proven
from pybench.analysis.probe_verdicts import Probed, overruled
from pybench.analysis.terms import READ, Terms
from pybench.errors import RecordError
from pybench.planning.probes import lock_of
from pybench.records import schema
from pybench.records.atomic import explained
from pybench.records.trial import TrialRecord, judgement_columns
from pybench.records.upgrade import latency_of_now, trials_of_now

PARTS = "parts"
PART_SUFFIX = ".arrow"
FILES = {"trials": "trials.parquet", "latency": "latency.parquet", "timeline": "timeline.parquet"}
DETAILS = {
    "clients": "clients.parquet",
    "commands": "commands.parquet",
    "nodes": "nodes.parquet",
    "telemetry": "telemetry.parquet",
    "faults": "faults.parquet",
}
"""Files that folders of schema 4 and earlier lack, and of schema 5 the last one."""
VIOLATIONS = "violations.jsonl"
OF_CELL = (*dict.fromkeys((*READ, "strategy", "args", "backend", "status", "concurrency")),)
"""The columns of a trial on which its verdict rests besides its counts."""
LEVEL = 19
"""Of zstd: a run's files are small, and are written once."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a run, in the schemas of `schema`."""

    trials: pa.Table
    latency: pa.Table
    timeline: pa.Table
    clients: pa.Table
    commands: pa.Table
    nodes: pa.Table
    telemetry: pa.Table
    faults: pa.Table
    violations: pa.Table


def encode_part(record: TrialRecord) -> bytes:
    """One trial as an Arrow file of one row."""
    assert set(record.row) == set(schema.TRIAL_COLUMNS), "a record has every column of its schema"
    details = (record.clients, record.commands, record.nodes, record.telemetry, record.faults)
    nested = dict(zip(schema.NESTED, (record.latency, record.timeline, *details, record.violations), strict=True))
    return encode_row(record.row | nested, schema.PART)


def encode_row(row: Mapping[str, Any], columns: pa.Schema) -> bytes:
    """One row as an Arrow file with the schema number."""
    table = pa.Table.from_pylist([row], schema=schema.numbered(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def require_files(folder: Path) -> None:
    """Raise RecordError where `folder`, the folder of a complete run, lacks a file."""
    for file in (*FILES.values(), VIOLATIONS):
        if not (folder / file).exists():
            raise RecordError(
                f"{folder / file} is missing, although the run is complete",
                hint="restore the file from a copy, or run again",
            )


def gather(folder: Path, manifest: Mapping[str, Any]) -> Tables:
    """The tables of `folder`, judged by the controls and probes of its `manifest`.

    Raises RecordError for a file that is damaged or cannot be read.
    """
    with explained(folder):
        parts = _read_parts(folder)
        known = (FILES | DETAILS).items()
        files = {name: read_parquet(folder / file) for name, file in known if (folder / file).exists()}
        violations = _read_violations(folder / VIOLATIONS) if (folder / VIOLATIONS).exists() else None
    fresh = _split(parts) if parts is not None else None
    replaced = _keys(fresh.trials) if fresh is not None else None

    def joined(name: str, old: pa.Table | None, empty: pa.Schema) -> pa.Table:
        tables = [empty.empty_table()]
        if old is not None:
            tables.append(old if replaced is None else _without(old, replaced))
        if fresh is not None:
            tables.append(getattr(fresh, name))
        return pa.concat_tables([table.replace_schema_metadata(None) for table in tables], promote_options="default")

    cells = manifest.get("cells", ())
    if "trials" in files:
        files["trials"] = trials_of_now(files["trials"], cells)
    if "latency" in files:
        files["latency"] = latency_of_now(files["latency"])
    if fresh is not None:
        fresh = replace(fresh, trials=trials_of_now(fresh.trials, cells), latency=latency_of_now(fresh.latency))
    trials = joined("trials", files.get("trials"), schema.TRIALS).select(schema.TRIAL_COLUMNS)
    trials = trials.sort_by([("block", "ascending"), ("started_at", "ascending")])
    return Tables(
        trials=_judged(trials, manifest["control"], manifest.get("probes", ())),
        latency=joined("latency", files.get("latency"), schema.LATENCY),
        timeline=joined("timeline", files.get("timeline"), schema.TIMELINE),
        clients=joined("clients", files.get("clients"), schema.CLIENTS),
        commands=joined("commands", files.get("commands"), schema.COMMANDS),
        nodes=joined("nodes", files.get("nodes"), schema.NODES),
        telemetry=joined("telemetry", files.get("telemetry"), schema.TELEMETRY),
        faults=joined("faults", files.get("faults"), schema.FAULTS),
        violations=joined("violations", violations, schema.VIOLATIONS),
    )


def _read_parts(folder: Path) -> pa.Table | None:
    paths = sorted((folder / PARTS).glob(f"[!.]*{PART_SUFFIX}"))
    tables = [read_part(path) for path in paths]
    return pa.concat_tables(tables, promote_options="default") if tables else None


def read_part(path: Path) -> pa.Table:
    """The table in an Arrow file under `parts/`. Raises OSError, and RecordError for a damaged or a newer file."""
    data = path.read_bytes()
    try:
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise RecordError(
            f"{path} is damaged: {error}", hint="delete the file; `pybench run --resume` measures its trial again"
        ) from error
    schema.require_known(table.schema, str(path))
    return table.replace_schema_metadata(None)


def read_parquet(path: Path) -> pa.Table:
    """The table in a Parquet file of a run. Raises OSError, and RecordError for a damaged or a newer file."""
    data = path.read_bytes()
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"{path} is damaged: {error}", hint="restore the file from a copy, or run again") from error
    schema.require_known(table.schema, str(path))
    return table.replace_schema_metadata(None)


def parquet(table: pa.Table) -> bytes:
    """`table` as a Parquet file with the schema number."""
    # Encoded in memory first, so that a full disk fails in one write with a clear error.
    buffer = BytesIO()
    pq.write_table(table.cast(schema.numbered(table.schema)), buffer, compression="zstd", compression_level=LEVEL)
    return buffer.getvalue()


def _read_violations(path: Path) -> pa.Table:
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for number in {row["schema"] for row in rows}:
            schema.require_known_number(number, str(path))
        return pa.Table.from_pylist(rows, schema=schema.VIOLATIONS)
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise RecordError(f"{path} is damaged: {error}", hint="restore the file from a copy, or run again") from error


def _split(parts: pa.Table) -> Tables:
    """The tables in `parts`, with each list column expanded into rows."""

    def rows_of(name: str) -> pa.Table:
        if name not in parts.column_names:
            return schema.NESTED[name].empty_table()
        lists = parts[name].combine_chunks()
        owner = pc.list_parent_indices(lists)
        inner = pa.Table.from_struct_array(pc.list_flatten(lists))
        for field in schema.inner_schema(name):
            # A part of an older schema lacks the columns that came later.
            if field.name not in inner.column_names:
                inner = inner.append_column(field, pa.nulls(len(inner), field.type))
        for column in ("trial", "cell"):
            inner = inner.add_column(0, column, pc.take(parts[column], owner))
        return inner.select(schema.NESTED[name].names)

    nested = [name for name in schema.NESTED if name in parts.column_names]
    return Tables(parts.drop_columns(nested), *(rows_of(name) for name in schema.NESTED))


def _keys(table: pa.Table) -> pa.ChunkedArray:
    # The id of a cell contains no line break, so different pairs give different texts.
    return pc.binary_join_element_wise(table["cell"], pc.cast(table["trial"], pa.string()), "\n")


def _without(table: pa.Table, replaced: pa.ChunkedArray) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(_keys(table), value_set=replaced.combine_chunks())))


def judged_row(
    row: Mapping[str, Any], controls: Sequence[Mapping[str, Any]], probes: Sequence[Mapping[str, Any]]
) -> Probed:
    """The verdict on the trial `row` under the run's `controls` and `probes`, both as in the manifest."""
    judgement = verdicts.judge(row, Terms.recorded(row), control_caught=verdicts.controls_caught(controls))
    probe = next((probe for probe in probes if lock_of(probe) == lock_of(row)), None)
    probed = overruled(judgement, row, probe)
    return replace(probed, judgement=proven(probed.judgement, row["status"]))


def _judged(trials: pa.Table, controls: Sequence[Mapping[str, Any]], probes: Sequence[Mapping[str, Any]]) -> pa.Table:
    """`trials` judged again under these controls and probes, which may be newer than the trials."""
    columns: dict[str, list[Any]] = {}
    counted = (*verdicts.COUNTS, *verdicts.EFFECTS, *verdicts.CIRCUMSTANCES)
    for row in trials.select(list(dict.fromkeys((*counted, *OF_CELL, "grants_per_s")))).to_pylist():
        probed = judged_row(row, controls, probes)
        judged = judgement_columns(probed.judgement, row["grants_per_s"]) | probed.columns()
        for name, value in judged.items():
            columns.setdefault(name, []).append(value)
    for name, values in columns.items():
        field = trials.schema.field(name)
        trials = trials.set_column(trials.schema.get_field_index(name), field, pa.array(values, field.type))
    return trials
