"""Runs whose cells are spread over worker processes: what is recorded of them, and how they end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.matrix.cells import Cell
from pybench.planning.control import control_cells
from pybench.records import judging
from pybench.report.run_facts import control_rows
from pybench.running import job
from pybench.running.job import Job, Outcome
from pybench.running.watch import Running, Silent, Slot
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("quick")


def run(folder: Path, watch: Silent | None = None, *, history: bool = False, **options: str) -> Outcome:
    usual = {"strategy": "mutex", "trials": "1", "warmup": "50ms", "concurrency": "8", "processes": "2"}
    matrix = matrix_from_options(**{**usual, **options})
    return job.carry_out(Job(matrix, command=[], out=folder, history=history), watch=watch)


def test_a_run_records_what_a_killed_process_left_and_its_history_has_the_same_verdict(tmp_path: Path):
    plan = "pause process[1] at 150ms for 100ms, kill process[0] at 300ms"
    # With three keys a client hardly anybody waits for a stopped process, so that the killed clients hold some keys.
    load = {"keys": "24", "hold": "40ms", "ttl": "400ms", "duration": "1200ms", "faults": plan}
    outcome = run(tmp_path / "run", history=True, **load)
    assert outcome.error is None
    [row] = outcome.run.trials.to_dict("records")
    assert (row["status"], row["promise_broken"], row["processes"]) == ("complete", False, 2)
    assert row["findings"] == row["double_grants"] == 0
    assert row["orphans"] >= 1
    assert 100 < row["time_to_free_ms"] < 1_100
    assert row["grants_after_per_s"] > 0
    assert outcome.run.faults["name"].tolist() == ["pause process[1]", "kill process[0]"]
    assert outcome.run.faults["error"].isna().all()
    assert len(outcome.run.clients) == 8
    clients = outcome.run.clients
    assert clients["grants"].sum() == row["grants"]
    assert (clients["grants"] > 0).all(), "also those that were killed later"
    assert clients["attempts"].isna().tolist() == [True] * 4 + [False] * 4
    assert (clients["wait_mean_us"] > 0).all()
    assert outcome.run.timeline["grants"].sum() == row["grants"]
    [judged] = judging.judge_paths([tmp_path / "run"])
    assert judged.counts["lease_overruns"] == row["lease_overruns"]
    assert judged.counts["findings"] == 0
    assert not list((tmp_path / "run").rglob("*.recording"))


def test_clients_that_died_before_they_were_granted_anything_have_not_starved(tmp_path: Path):
    load = {"hold": "60ms", "ttl": "150ms", "duration": "500ms", "faults": "kill process[1] at 10ms"}
    outcome = run(tmp_path / "run", **load)
    assert outcome.error is None
    alive, dead = outcome.run.clients.loc[:3], outcome.run.clients.loc[4:]
    assert dead["attempts"].isna().all()
    assert (dead["grants"] == 0).any()
    assert (dead["longest_wait_us"].isna() == (dead["grants"] == 0)).all()
    [row] = outcome.run.trials.to_dict("records")
    assert row["starved_clients"] == (alive["grants"] == 0).sum()


def test_the_lock_of_a_killed_session_is_granted_again_at_once_which_is_no_double_grant(tmp_path: Path):
    load = {"strategy": "pg-advisory", "keys": "4", "hold": "40ms", "duration": "700ms"}
    outcome = run(tmp_path / "run", faults="kill process[0] at 200ms", **load)
    assert outcome.error is None
    [row] = outcome.run.trials.to_dict("records")
    assert (row["status"], row["promise_broken"]) == ("complete", False)
    assert (row["double_grants"], row["sessions_lost"], row["findings"], row["orphans"]) == (0, 0, 0, 0)
    assert row["grants_after_per_s"] > 0


class Interrupting(Silent):
    """Sends Ctrl-C once a trial of the plan has grants."""

    def trial_begins(self, slot: Slot, trial: Running) -> None:
        def interrupt() -> None:
            wait_until(lambda: trial.progress().grants > 10, "locks are granted")
            os.kill(os.getpid(), signal.SIGINT)

        if slot.number:
            threading.Thread(target=interrupt, daemon=True).start()


def test_an_interrupted_run_keeps_what_its_processes_counted(tmp_path: Path):
    outcome = run(tmp_path / "run", Interrupting(), duration="20s", hold="1ms")
    assert outcome.exit is Exit.INTERRUPTED
    [row] = outcome.run.trials.to_dict("records")
    assert (row["status"], row["grants"] > 10, row["violations"]) == ("interrupted", True, 0)
    assert row["window_s"] < 20


def test_cells_of_one_process_and_cells_of_several_have_a_control_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    outcome = run(tmp_path / "run", duration="100ms", processes="0,2")
    assert outcome.error is None
    controls = [entry for entry in outcome.run.manifest["control"] if "kind" not in entry]
    assert [(entry["id"], entry["processes"], entry["caught"]) for entry in controls] == [
        ("control of redis", 0, True),
        ("control of redis in worker processes", 2, True),
    ]
    assert [where for where, _, _ in control_rows(outcome.run.manifest)] == ["redis", "redis in 2 worker processes"]

    def alone(cells: Iterable[Cell]) -> list[Cell]:
        return [cell if cell.processes else replace(cell, concurrency=1) for cell in control_cells(cells)]

    monkeypatch.setattr("pybench.planning.control.control_cells", alone)
    void = run(tmp_path / "void", duration="100ms", processes="0,2").run
    assert set(void.trials["verdict"]) == {"VOID"}, "the checker of one process is not proven by that of several"
