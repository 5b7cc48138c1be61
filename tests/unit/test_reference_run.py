"""The run in results/reference: what was once recorded is read for ever, and gives the same summary.

A change that fails here changes the record: read the old one as before, or raise the schema number and say so.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import pybench
from pybench.analysis.verdicts import Verdict
from pybench.matrix import load_matrix
from pybench.records import Run, RunFolder
from pybench.report import write_report

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "results" / "reference"
KILOBYTE = 1_000


@pytest.fixture(scope="module")
def run() -> Run:
    return pybench.load(REFERENCE)


def test_it_is_a_complete_run_that_is_read_under_the_present_schema(run):
    assert run.manifest["schema"] == 7
    assert run.manifest["status"] == "complete"
    assert set(run.trials["status"]) == {"complete"}
    assert all(entry["caught"] for entry in run.manifest["control"])


def test_it_has_every_trial_that_its_manifest_asks_for(run):
    cells = {cell["id"] for cell in run.manifest["cells"]}
    asked = {(cell, trial) for cell in cells for trial in range(1, 1 + run.manifest["matrix"]["expanded"]["trials"])}
    assert set(zip(run.trials["cell"], run.trials["trial"], strict=True)) == asked


def test_its_summary_is_computed_again_as_it_was_written(run):
    computed = run.summary
    # Truth values are objects where a cell has none.
    figures = {name: [""] for name, kind in computed.dtypes.items() if kind in ("float64", "object")}
    # The one text that a cell may lack: a closed loop has no arrivals.
    figures["arrival_process"] = [""]
    names = pd.read_csv(REFERENCE / "summary.csv", nrows=0).columns
    types = {name: kind for name, kind in computed.dtypes.items() if name in names}
    na_values = {name: na for name, na in figures.items() if name in types}
    written = pd.read_csv(REFERENCE / "summary.csv", dtype=types, keep_default_na=False, na_values=na_values)
    assert len(written) == len(run.manifest["cells"])
    # Columns may have been added since, and none taken away.
    shown = computed[list(written.columns)]
    objects = [name for name in written.columns if computed[name].dtype == "object"]
    assert written[objects].map(lambda value: None if pd.isna(value) else str(value) == "True").equals(shown[objects])
    pd.testing.assert_frame_equal(written.drop(columns=objects), shown.drop(columns=objects), rtol=1e-8)


def test_its_verdicts_are_what_the_locks_promise(run):
    verdicts = {(row.strategy, row.concurrency): row.verdict for row in run.summary.itertuples()}
    assert verdicts["none", 64] == Verdict.UNSAFE
    assert {verdicts[name, clients] for name in ("naive", "mutex") for clients in (1, 16, 64)} == {Verdict.SAFE}


def test_its_histograms_hold_the_grants_of_its_trials(run):
    for row in run.summary.itertuples():
        _, counts = run.histogram(row.cell, "response")
        # A grant of the window that was due in the warm-up counts, and its wait is no sample: at most one a client.
        assert 0 <= row.grants - counts.sum() <= row.concurrency * row.trials


def test_its_quantiles_as_a_frame_are_those_of_each_cell(run):
    frame = run.quantiles(0.5, 0.999, phase="hold")
    assert list(frame.columns) == ["p50_us", "p99.9_us"]
    assert list(frame.index) == list(run.summary["cell"])
    for cell, (half, most) in frame.iterrows():
        assert half == run.quantile(cell, 0.5, "hold")
        assert pd.isna(most) if run.quantile(cell, 0.999, "hold") is None else most == run.quantile(cell, 0.999, "hold")
    assert list(run.quantiles().columns) == ["p50_us", "p90_us", "p99_us", "p99.9_us"]


def test_its_violations_are_those_that_were_counted_up_to_a_hundred_a_trial(run):
    counted = run.trials[run.trials["violations"] > 0].set_index(["cell", "trial"])["violations"].clip(upper=100)
    told = run.violations.groupby(["cell", "trial"]).size()
    assert dict(told) == dict(counted)


def test_its_time_line_is_there_for_every_trial(run):
    assert set(run.timeline["cell"]) == set(run.trials["cell"])


def test_its_matrix_is_one_that_is_still_read(run, tmp_path):
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(run.manifest["matrix"]["given"], encoding="utf-8")
    assert load_matrix(matrix).name == run.manifest["name"]


def test_its_reports_can_be_made_again_and_are_those_of_the_end_of_a_run(tmp_path):
    folder = Path(shutil.copytree(REFERENCE, tmp_path / "reference"))
    for name in ("report.html", "report.md"):
        (folder / name).unlink(missing_ok=True)
    again = [path.read_bytes() for path in write_report(pybench.load(folder))]
    assert all(b"mutex" in report and b"UNSAFE" in report for report in again)
    finished = RunFolder.open(folder).finish("complete")
    # Only the time at which the run was finished differs.
    finished.manifest["finished_at"] = pybench.load(REFERENCE).manifest["finished_at"]
    assert [path.read_bytes() for path in write_report(finished)] == again


def test_it_says_nothing_of_the_machine_but_what_a_reader_needs():
    for path in REFERENCE.glob("*.json*"):
        text = path.read_text(encoding="utf-8")
        assert [place for place in ("/home", "/root", "/tmp", "/work", "/Users") if place in text] == []
    command = json.loads((REFERENCE / "manifest.json").read_text(encoding="utf-8"))["command"]
    assert command == ["pybench", "run", "examples/quickstart.yaml"]


def test_it_stays_small():
    kept = [path for path in REFERENCE.iterdir() if path.name != "report.html"]
    # Three quarters are the violations of no lock at all, which git packs to a tenth.
    assert sum(path.stat().st_size for path in kept) < 1_200 * KILOBYTE
