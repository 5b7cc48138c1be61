from __future__ import annotations

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from support.trials import CAUGHT, MISSED, FakeResult, cell, manifest, record, totals, violation

from pybench.columns import SUMMARY_FIGURES
from pybench.errors import RecordError
from pybench.matrix.cells import CELL_COLUMNS
from pybench.records import RunFolder, load, schema


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", manifest())


def test_a_finished_folder_holds_what_the_readme_lists_and_no_parts(folder):
    folder.add_trial(record(result=FakeResult(violations=[violation()])))
    folder.finish("complete")
    assert sorted(path.name for path in folder.path.iterdir()) == [
        "clients.parquet",
        "commands.parquet",
        "faults.parquet",
        "latency.parquet",
        "manifest.json",
        "nodes.parquet",
        "summary.csv",
        "telemetry.parquet",
        "timeline.parquet",
        "trials.parquet",
        "violations.jsonl",
    ]
    assert load(folder.path).manifest["status"] == "complete"


def test_every_file_carries_the_schema_number(folder):
    folder.add_trial(record(result=FakeResult(violations=[violation()])))
    folder.finish("complete")
    for name in ("trials", "latency", "timeline", "clients", "commands", "nodes", "telemetry", "faults"):
        assert pq.read_schema(folder.path / f"{name}.parquet").metadata[b"pybench.schema"] == b"7"
    assert json.loads((folder.path / "violations.jsonl").read_text())["schema"] == 7
    assert json.loads((folder.path / "manifest.json").read_text())["schema"] == 5


def test_the_files_have_the_columns_of_the_readme_in_order(folder):
    folder.add_trial(record())
    folder.finish("complete")
    trials = pq.read_schema(folder.path / "trials.parquet").names
    assert trials == list(schema.TRIAL_COLUMNS)
    assert trials[:7] == ["cell", "strategy", "args", "backend", "server", "concurrency", "keys"]
    header = (folder.path / "summary.csv").read_text().splitlines()[0].split(",")
    assert header == [*CELL_COLUMNS, *SUMMARY_FIGURES]


def test_a_killed_run_is_read_and_finished_like_any_other(folder):
    for trial in (1, 2, 3):
        folder.add_trial(record(trial=trial))
    before = load(folder.path)
    RunFolder.open(folder.path).finish("interrupted")
    after = load(folder.path)
    assert list(before.trials["trial"]) == [1, 2, 3]
    for frame in ("trials", "latency", "timeline", "violations", "summary"):
        pd.testing.assert_frame_equal(getattr(before, frame), getattr(after, frame))


def test_a_folder_without_a_trial_can_be_loaded_and_finished(folder):
    assert len(load(folder.path).summary) == 0
    folder.finish("interrupted")
    assert len(load(folder.path).trials) == 0


def test_finishing_twice_changes_nothing(folder):
    folder.add_trial(record())
    folder.finish("complete")
    before = {path.name: path.read_bytes() for path in folder.path.glob("*.parquet")}
    RunFolder.open(folder.path).finish("complete")
    assert {path.name: path.read_bytes() for path in folder.path.glob("*.parquet")} == before


def test_a_kill_between_the_files_and_the_removal_of_parts_doubles_nothing(folder, monkeypatch):
    folder.add_trial(record())
    monkeypatch.setattr(shutil, "rmtree", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        folder.finish("complete")
    monkeypatch.undo()
    run = RunFolder.open(folder.path).finish("complete")
    assert (len(run.trials), len(run.latency), len(run.timeline)) == (1, 7, 2)


def test_a_trial_that_is_run_again_replaces_the_interrupted_one(folder):
    folder.add_trial(record(trial=1))
    folder.add_trial(record(trial=2, result=FakeResult(stopped=True)))
    folder.finish("interrupted")
    resumed = RunFolder.open(folder.path)
    assert resumed.starts().keys() == {(cell().id, 1)}
    resumed.add_trial(record(trial=2, result=FakeResult(totals=totals(grants=4_000))))
    assert resumed.starts().keys() == {(cell().id, 1), (cell().id, 2)}
    run = resumed.finish("complete")
    assert list(run.trials["grants"]) == [2_000, 4_000]
    assert len(run.latency) == 14


def unlucky(trial: int = 2):
    seen = totals(double_grants=1)
    return record(trial=trial, result=FakeResult(stopped=True, totals=seen, violations=[violation()]))


def test_an_interrupted_trial_that_saw_a_violation_counts_once_and_is_run_again(tmp_path):
    folder = RunFolder.create(tmp_path / "run", manifest(order=[[0], [0]]))
    folder.add_trial(record(trial=1))
    folder.add_trial(unlucky())
    folder.finish("interrupted")
    resumed = RunFolder.open(folder.path)
    assert resumed.starts().keys() == {(cell().id, 1)}
    resumed.add_trial(unlucky())
    resumed.add_trial(record(trial=2))
    run = resumed.finish("complete")
    assert sorted(run.trials["trial"]) == [1, 2, 3, 4]
    assert list(run.summary["trials"]) == [2], "medians are over the complete trials"
    assert list(run.summary["violations"]) == [2]
    assert (list(run.summary["verdict"]), len(run.violations)) == (["UNSAFE"], 2)
    assert resumed.starts().keys() == {(cell().id, 1), (cell().id, 2)}


def test_cells_of_any_name_keep_their_own_trials(folder):
    names = ["a/b", "../up", "x" * 400, 'quote"', "tab\t", "mutex", "Mutex"]
    for name in names:
        folder.add_trial(record(replace(cell(), id=name)))
    run = folder.finish("complete")
    assert sorted(run.summary["cell"]) == sorted(names)


def test_the_summary_comes_in_the_order_of_the_matrix(folder):
    folder.update_manifest(cells=[{"id": cell(name).id} for name in ("none", "naive", "mutex")])
    for block, name in enumerate(("mutex", "none", "naive"), start=1):
        folder.add_trial(record(cell(name), block=block))
    assert list(folder.finish("complete").summary["strategy"]) == ["none", "naive", "mutex"]


def test_n_a_is_null_in_parquet_and_empty_in_csv(folder):
    folder.add_trial(record(result=FakeResult(totals=totals(grants=0), histograms=[])))
    run = folder.finish("complete")
    row = pq.read_table(folder.path / "trials.parquet").to_pylist()[0]
    assert row["acquire_p50_us"] is None
    assert row["attempts_per_grant"] is None
    assert row["arrivals"] is None
    line = dict(zip(*(text.split(",") for text in (folder.path / "summary.csv").read_text().splitlines()), strict=True))
    assert line["acquire_p50_us"] == ""
    assert line["args"] == ""
    assert pd.isna(run.summary["acquire_p50_us"][0])


def test_arrivals_are_recorded_of_open_loops(folder):
    folder.add_trial(
        record(
            cell(rate_per_s=1000.0, arrival_process="poisson", max_in_flight=64),
            result=FakeResult(totals=totals(arrivals=2_100, drops=7)),
        )
    )
    assert load(folder.path).trials[["arrivals", "drops"]].to_numpy().tolist() == [[2_100, 7]]


def test_histograms_are_added_up_over_trials(folder):
    for trial in (1, 2):
        folder.add_trial(record(trial=trial))
    values, counts = load(folder.path).histogram(cell().id, "response", "granted")
    assert int(counts.sum()) == 4_000
    assert list(values) == sorted(values)
    assert load(folder.path).histogram(cell().id, "response", "timeout").counts.sum() == 0


@pytest.mark.parametrize("controls", [MISSED, [], [*CAUGHT, *MISSED]])
def test_without_a_caught_control_every_row_is_void(folder, controls):
    folder.add_trial(record())
    folder.update_manifest(control=controls)
    run = folder.finish("complete")
    assert list(run.trials["verdict"]) == ["VOID"]
    assert list(run.summary["verdict"]) == ["VOID"]
    assert run.summary[["safe_grants_per_s", "bound_per_million"]].isna().all(axis=None)


def test_a_control_that_is_caught_after_a_resume_lifts_the_void(folder):
    folder.add_trial(record())
    folder.update_manifest(control=[])
    folder.finish("interrupted")
    folder.update_manifest(control=CAUGHT)
    assert list(folder.finish("complete").summary["verdict"]) == ["SAFE"]


def test_to_save_a_trial_costs_the_same_however_many_there_are(folder):
    one = record()
    keys = [(f"mutex concurrency={n % 20}", n // 20 + 1) for n in range(100)]

    def files() -> set[tuple[Path, int, int]]:
        stats = ((path, path.stat()) for path in folder.path.rglob("*") if path.is_file())
        return {(path, stat.st_mtime_ns, stat.st_ino) for path, stat in stats}

    written = []
    for c, t in keys:
        before = files()
        folder.add_trial(replace(one, cell=c, trial=t, row={**one.row, "cell": c, "trial": t}))
        assert before <= files(), "what was saved is not written again"
        written.append(len(files() - before))
    assert set(written) == {written[0]}
    assert len(folder.finish("complete").trials) == len(keys)


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RecordError, match="not empty") as raised:
        RunFolder.create(tmp_path, manifest())
    assert "--out" in raised.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_that_holds_a_run_is_not_begun_again(folder):
    with pytest.raises(RecordError, match="already contains a run") as raised:
        RunFolder.create(folder.path, manifest())
    assert "--resume" in raised.value.hint


def test_an_empty_folder_may_exist(tmp_path):
    assert RunFolder.create(tmp_path, manifest()).path == tmp_path


@pytest.mark.parametrize("path", ["a-file", "a-file/below"])
def test_a_file_in_the_way_is_named(tmp_path, path):
    (tmp_path / "a-file").write_text("")
    with pytest.raises(RecordError, match="a file blocks this path"):
        RunFolder.create(tmp_path / path, manifest())


def test_a_full_disk_is_said_and_leaves_the_trials_before_whole(folder, monkeypatch):
    folder.add_trial(record(trial=1))

    def full(path, data):
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(RecordError, match="no space is left") as raised:
            folder.add_trial(record(trial=2))
        with pytest.raises(RecordError, match="no space is left"):
            folder.finish("complete")
    assert "free some space" in raised.value.hint
    assert list(load(folder.path).trials["trial"]) == [1]
    assert not list(folder.path.rglob("*.tmp"))


def test_a_folder_that_cannot_be_written_is_said(folder, monkeypatch):
    def read_only(path, data):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_bytes", read_only)
    with pytest.raises(RecordError, match="Read-only file system") as raised:
        folder.add_trial(record())
    assert "saved so far are intact" in raised.value.hint


def test_a_folder_that_vanishes_is_said_and_not_made_again(folder):
    shutil.rmtree(folder.path)
    with pytest.raises(RecordError, match="no longer exists"):
        folder.add_trial(record())
    with pytest.raises(RecordError, match="no longer exists"):
        folder.update_manifest(status="complete")
    assert not folder.path.exists()


def test_a_folder_that_is_claimed_is_nobody_elses(folder):
    folder.claim()
    other = RunFolder.open(folder.path)
    with pytest.raises(RecordError, match="another process is writing to the run folder") as raised:
        other.claim()
    assert raised.value.hint
    folder.update_manifest(status="interrupted")
    folder.release()
    other.claim()
    assert other.manifest["status"] == "interrupted", "what the other wrote meanwhile is read"
    other.release()


@pytest.mark.parametrize("existed", [True, False])
def test_a_folder_that_could_not_be_begun_is_as_it_was_before(tmp_path, monkeypatch, existed):
    path = tmp_path / "run"
    if existed:
        path.mkdir()

    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(RecordError, match="no space is left") as raised:
            RunFolder.create(path, manifest())
    assert "--out" in raised.value.hint
    assert path.exists() == existed
    RunFolder.create(path, manifest())


def test_what_a_killed_writer_left_is_removed_and_never_read(folder):
    folder.add_trial(record())
    (part,) = (folder.path / "parts").iterdir()
    (part.parent / f".{part.name}.1.tmp").write_bytes(b"half")
    (folder.path / ".trials.parquet.1.tmp").write_bytes(b"half")
    folder.finish("complete")
    assert not [path for path in folder.path.rglob("*") if path.suffix == ".tmp"]
