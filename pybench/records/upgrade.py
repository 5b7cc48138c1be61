"""Conversion of records of older schemas.

Schema 1 had columns only for the axes that the matrix named, as text; the manifest had all axes of each cell. Now every
axis is a column, with durations and rates as numbers. Schema 2 had no axis `rtt`: nothing was added to a round trip.
Schema 3 had no axis `stages`: every load was the same during its window. Schema 4 had no axis `mode`: every trial was
measured at the load of its cell. Schema 5 had no axis `faults`: no trial harmed its servers. Schema 6 had no axis
`processes`, and no `guard`: every trial ran in the process of pybench, and a hold was only time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pybench.matrix.cells import AXES, CELL_COLUMNS, HAS_NONE
from pybench.matrix.faults import NO_FAULTS
from pybench.matrix.guards import NO_GUARD
from pybench.matrix.search_modes import MEASURE
from pybench.matrix.stages import NO_STAGES
from pybench.notation import BadValue, parse_call
from pybench.records import schema

RENAMED = {
    "lag_p99_us": "send_delay_p99_us",
    "split_votes": "no_quorum",
    "split_votes_per_1000": "no_quorum_per_1000",
}
"""Columns of `trials.parquet` under schema 1, and their names now."""
ADDED: Mapping[str, Any] = {
    "rtt": "0",
    "rtt_ms": 0.0,
    "stages": NO_STAGES.text,
    "mode": MEASURE.text,
    "faults": NO_FAULTS.text,
    "processes": 0,
    "guard": NO_GUARD.text,
    "guard_on": HAS_NONE,
}
"""Columns since schema 3, 4, 5, 6 and 7, with their values in older records."""
_RENAMED_PHASES = {"lag": "send_delay"}


def manifest_of_now(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """`manifest` in the form of this version."""
    if manifest["schema"] >= schema.SCHEMA:
        return dict(manifest)
    listed = {name: [_cell(cell) for cell in manifest.get(name) or ()] for name in ("cells", "control")}
    return {**manifest, "schema": schema.SCHEMA, **listed}


def trials_of_now(trials: pa.Table, cells: Sequence[Mapping[str, Any]]) -> pa.Table:
    """`trials` with a column for each axis, from the manifest's `cells` where a record lacks it or has a text.

    Other columns that the records lack get their value of then.
    """
    known = {cell["id"]: cell for cell in cells}
    trials = trials.rename_columns([RENAMED.get(name, name) for name in trials.column_names])
    for name in CELL_COLUMNS:
        field = schema.TRIALS.field(name)
        place = trials.schema.get_field_index(name)
        if place >= 0 and trials.schema.field(place).type == field.type:
            continue
        values = pa.array([known.get(cell, {}).get(name) for cell in trials["cell"].to_pylist()], field.type)
        trials = trials.append_column(field, values) if place < 0 else trials.set_column(place, field, values)
    for name in ADDED.keys() - set(trials.column_names):
        field = schema.TRIALS.field(name)
        trials = trials.append_column(field, pa.array([ADDED[name]] * len(trials), field.type))
    return trials


def latency_of_now(latency: pa.Table) -> pa.Table:
    """`latency` with the names that phases have now."""
    if not set(pc.unique(latency["phase"]).to_pylist()) & _RENAMED_PHASES.keys():
        return latency
    phases = [_RENAMED_PHASES.get(phase, phase) for phase in latency["phase"].to_pylist()]
    place = latency.schema.get_field_index("phase")
    return latency.set_column(place, latency.schema.field(place), pa.array(phases, pa.string()))


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of the manifest's `cells` with every axis, and with its loop replaced by the axes of the loop."""
    loop = cell.get("loop")
    entry: dict[str, Any] = {name: value for name, value in ADDED.items() if name in AXES} | {
        name: value for name, value in cell.items() if name != "loop"
    }
    if loop is None:
        return entry
    entry |= {"rate_per_s": None, "arrival_process": None, "max_in_flight": None}
    with suppress(BadValue, KeyError, ValueError):
        call = parse_call(str(loop))
        if call.name == "open":
            rate = AXES["rate"].type.parse(call.named["rate"])
            entry |= {
                "rate_per_s": rate,
                "arrival_process": call.named["arrivals"],
                "max_in_flight": int(call.named["max_in_flight"]),
            }
    return entry
