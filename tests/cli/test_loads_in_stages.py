"""`pybench run` with a load in stages: from the option to the folder and the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import QUICK, Pybench

from pybench.exits import Exit
from pybench.records import load

CLIENTS = "2 -> 10 over 400ms, 10 for 200ms, 0 over 200ms"
ARRIVALS = "0/s -> 1000/s over 500ms, 200/s for 500ms"


OFFERED = {
    CLIENTS: [3, 5, 7, 9, 10, 10, 7.5, 2.5],
    ARRIVALS: [100, 300, 500, 700, 900, 200, 200, 200, 200, 200],
}
"""The mean load of each step of 100 ms."""


def test_one_run_measures_clients_and_arrivals_in_stages_beside_a_steady_load(pybench: Pybench, tmp_path: Path):
    path = tmp_path / "matrix.yaml"
    path.write_text(
        f"axes:\n  strategy: mutex\n  stages:\n    - {CLIENTS}\n    - none\n"
        f"include:\n  - {{strategy: mutex, concurrency: 8, stages: '{ARRIVALS}'}}\nfixed:\n  keys: 100\n"
    )
    answer = pybench("run", "matrix.yaml", *QUICK, "--out", "folder")
    # A busy machine may be late with arrivals, which is told and no fault of the stages.
    assert answer.code in (Exit.OK, Exit.GENERATOR_LATE), answer.err
    assert "duration 200ms or 800ms, 1s in stages" in " ".join(answer.out.split())
    run = load(tmp_path / "folder")
    rows = {row["stages"]: row for row in run.summary.to_dict("records")}
    assert {text: row["concurrency"] for text, row in rows.items()} == {CLIENTS: 10, "none": 1, ARRIVALS: 8}
    windows = run.trials.set_index("stages")["window_s"].to_dict()
    assert windows == pytest.approx({CLIENTS: 0.8, "none": 0.2, ARRIVALS: 1.0}, rel=1e-6)
    steps = run.timeline.merge(run.trials[["cell", "trial", "stages"]], on=["cell", "trial"]).sort_values("start_ns")
    by_stages = {text: rows["offered"].tolist() for text, rows in steps.groupby("stages")}
    assert by_stages[CLIENTS] == pytest.approx(OFFERED[CLIENTS], rel=1e-6)
    assert by_stages[ARRIVALS] == pytest.approx(OFFERED[ARRIVALS], rel=1e-6)
    assert steps[steps["stages"] == "none"]["offered"].isna().all()
    # The mean rate of the second is 350/s, and so many arrivals came, except perhaps for those at its ends.
    assert abs(int(run.trials.set_index("stages")["arrivals"][ARRIVALS]) - 350) <= 1
    report = (tmp_path / "folder" / "report.html").read_text(encoding="utf-8")
    assert "clients offered" in report
    assert "arrivals/s offered" in report


def test_a_plan_counts_the_stages_and_a_quick_one_shortens_them(pybench_inside: Pybench):
    stages = ["--stages", "0 -> 64 over 5s, 64 for 10s, 0 over 1s"]
    told = pybench_inside("plan", "-s", "mutex", *stages, "--stages", "none", "--trials", "2")
    assert told.code == 0
    assert "run: 2 cells, 2 trials each of 2s to 16s after 500ms of warm-up" in told.out
    assert "mutex stages=0 -> 64 over 5s, 64 for 10s, 0 over 1s" in told.out
    quick = pybench_inside("plan", "-s", "mutex", *stages, "--quick")
    assert "4 trials each of 2s after 100ms of warm-up" in quick.out


def test_clients_beside_stages_are_refused_with_what_to_do(pybench_inside: Pybench):
    told = pybench_inside("run", "-s", "mutex", "--concurrency", "8", "--stages", "0 -> 64 over 5s")
    assert told.code == Exit.BAD_INPUT
    assert "concurrency contradicts the stages 0 -> 64 over 5s" in " ".join(told.err.split())
    assert "leave concurrency out" in " ".join(told.err.split())
