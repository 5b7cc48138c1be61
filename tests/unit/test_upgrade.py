"""Runs of older schemas: in schema 1 axes were texts, and only those that the matrix named; schema 2 had no `rtt`,
and schema 3 no `stages`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from support.trials import manifest, record

import pybench
from pybench.matrix.cells import CELL_COLUMNS
from pybench.records import RunFolder
from pybench.records.schema import TRIAL_COLUMNS
from pybench.report import write_report

RECORDED = Path(__file__).parent / "support" / "schema_1"
SCHEMA_2 = Path(__file__).parent / "support" / "schema_2"
SCHEMA_3 = Path(__file__).parent / "support" / "schema_3"


@pytest.fixture(scope="module")
def run() -> pybench.Run:
    return pybench.load(RECORDED)


def test_it_has_a_column_for_every_axis(run):
    assert tuple(run.trials.columns) == TRIAL_COLUMNS
    assert set(CELL_COLUMNS) < set(run.summary.columns)
    assert run.manifest["schema"] == 7
    assert set(run.summary["ttl_ms"]) == {500, 10_000}
    assert set(run.trials["nesting"]) == {1}


def test_its_open_loop_is_told_in_numbers(run):
    (opened,) = run.summary[run.summary["rate_per_s"].notna()].to_dict("records")
    told = opened["rate_per_s"], opened["arrival_process"], opened["max_in_flight"]
    assert told == (2_000.0, "poisson", 64)
    closed = run.summary[run.summary["rate_per_s"].isna()]
    assert len(closed) == 2
    assert closed["arrival_process"].isna().all()
    entries = {entry["id"]: entry for entry in run.manifest["cells"]}
    assert entries[opened["cell"]]["rate_per_s"] == 2_000.0
    assert all("loop" not in entry for entry in entries.values())


def test_its_figures_are_those_that_were_recorded(run):
    header, *rows = (RECORDED / "summary.csv").read_text().splitlines()
    column = header.split(",").index("grants")
    assert sorted(int(row.split(",")[column]) for row in rows) == sorted(run.summary["grants"])


def test_columns_and_phases_have_their_present_names(run):
    assert run.trials["no_quorum"].eq(0).all()
    assert "send_delay" in set(run.latency["phase"])
    assert "lag" not in set(run.latency["phase"])


def test_it_can_be_reported_and_finished_again_under_the_present_schema(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(RECORDED, folder)
    assert all(path.stat().st_size > 0 for path in write_report(pybench.load(folder)))
    RunFolder.open(folder).finish("complete")
    assert json.loads((folder / "manifest.json").read_text())["schema"] == 7
    assert set(pybench.load(folder).summary["ttl_ms"]) == {500, 10_000}


@pytest.mark.parametrize("recorded", [RECORDED, SCHEMA_2], ids=["schema 1", "schema 2"])
def test_before_there_was_an_axis_rtt_nothing_was_added(recorded):
    run = pybench.load(recorded)
    assert tuple(run.trials.columns) == TRIAL_COLUMNS
    assert set(run.trials["rtt"]) == set(run.summary["rtt"]) == {"0"}
    assert set(run.trials["rtt_ms"]) == set(run.summary["rtt_ms"]) == {0.0}
    assert {entry["rtt"] for entry in run.manifest["cells"]} == {"0"}


@pytest.mark.parametrize("recorded", [RECORDED, SCHEMA_2, SCHEMA_3], ids=["schema 1", "schema 2", "schema 3"])
def test_before_there_was_an_axis_stages_every_load_was_steady(recorded):
    run = pybench.load(recorded)
    assert tuple(run.trials.columns) == TRIAL_COLUMNS
    assert set(run.trials["stages"]) == set(run.summary["stages"]) == {"none"}
    assert {entry["stages"] for entry in run.manifest["cells"]} == {"none"}
    assert run.timeline["offered"].isna().all()
    assert len(run.timeline) > 0


def test_a_run_of_schema_3_keeps_its_round_trip_times_and_can_be_finished_again(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(SCHEMA_3, folder)
    before = pybench.load(folder)
    assert set(before.summary["rtt"]) == {"1ms"}
    assert set(before.summary["rtt_ms"]) == {1.0}
    RunFolder.open(folder).finish("complete")
    assert json.loads((folder / "manifest.json").read_text())["schema"] == 7
    assert pybench.load(folder).summary["grants"].tolist() == before.summary["grants"].tolist()
    assert all(path.stat().st_size > 0 for path in write_report(pybench.load(folder)))


def test_a_part_of_a_run_that_an_older_version_left_unfinished_has_no_offered_load(tmp_path):
    folder = RunFolder.create(tmp_path / "run", manifest())
    folder.add_trial(record())
    (part,) = (folder.path / "parts").glob("*.arrow")
    table = pa.ipc.open_file(part).read_all()
    steps = [
        [{name: step[name] for name in step if name != "offered"} for step in steps]
        for steps in table["timeline_rows"].to_pylist()
    ]
    older = table.set_column(table.schema.get_field_index("timeline_rows"), "timeline_rows", pa.array(steps))
    with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, older.schema) as writer:
        writer.write_table(older)
    assert pybench.load(folder.path).timeline["offered"].isna().all()
    assert len(pybench.load(folder.path).timeline) == 2


def test_a_run_of_schema_2_can_be_finished_again_under_the_present_schema(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(SCHEMA_2, folder)
    figures = pybench.load(folder).summary["grants"].tolist()
    RunFolder.open(folder).finish("complete")
    assert json.loads((folder / "manifest.json").read_text())["schema"] == 7
    assert pybench.load(folder).summary["grants"].tolist() == figures
    assert "rtt_ms" in (folder / "summary.csv").read_text()
