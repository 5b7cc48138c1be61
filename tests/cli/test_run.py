"""`pybench run` on real servers, from options to exit code and folder."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from command_line import COMMAND, PASSWORD, QUICK, Answer, GivenServer, Pybench, answer_of, environment

from pybench.matrix.cells import Cell
from pybench.planning.control import control_cells
from pybench.records import load
from pybench.strategies import CATALOGUE, Exclusion
from tests.redis_client import connect

SMALL = ["-s", "none,mutex", "--concurrency", "8", "--hold", "200us", *QUICK]
LONG = [
    "-s",
    "mutex",
    "--concurrency",
    "1,8",
    "--hold",
    "200us",
    "--trials",
    "2",
    "--warmup",
    "0",
    "--duration",
    "3s",
]


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """A run in progress, with which the test can interfere."""
    return subprocess.Popen(
        [*COMMAND, "run", *arguments, "--out", "folder"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Wait until `process` prints `text` to stderr."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    pytest.fail(f"the process ended without printing {text!r}")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    """The folder and the output of a complete run, for tests that only read it."""
    here = tmp_path_factory.mktemp("finished")
    done = answer_of([*COMMAND, "run", *SMALL, "--out", "folder"], here)
    return here / "folder", done


def test_a_run_gives_a_ranked_table_a_folder_and_a_report(finished: tuple[Path, Answer]):
    folder, done = finished
    assert done.code == 0
    table = done.out.splitlines()
    # A row begins with its place; the answer above the table names the locks, too.
    rows = [re.match(r"[ =]*[x\d] +(\w+) ", line) for line in table]
    mutex, none = (next(i for i, row in enumerate(rows) if row and row[1] == name) for name in ("mutex", "none"))
    assert table[mutex].split()[0] == "1"
    assert table[none].split()[0] == "x"
    assert table[none].split()[1:3] == ["none", "UNSAFE"]
    assert mutex < none
    assert "[control] caught, " in done.err
    assert done.err.rstrip().endswith("report: folder/report.html")
    assert {"manifest.json", "summary.csv", "report.html", "report.md", "trials.parquet"} <= {
        path.name for path in folder.iterdir()
    }


def test_json_is_one_object_with_the_whole_run_and_nothing_else_is_on_stdout(pybench: Pybench, tmp_path: Path):
    answer = pybench("run", *SMALL, "--out", "folder", "--json")
    said = json.loads(answer.out)
    assert list(said) == ["schema", "run", "headline", "exit_code", "thresholds", "comparison", "limits", "cells"]
    assert said["exit_code"] == answer.code
    assert said["run"]["folder"] == str(tmp_path / "folder")
    assert said["headline"].startswith("Take mutex: no other lock of this run is ranked; mutex gives ")
    (load,) = said["comparison"]["loads"]
    assert {one["lock"]: (one["place"], one["rank"]) for one in load["locks"]} == {
        "mutex": ("alone", 1),
        "none": ("out", None),
    }
    rows = said["cells"]
    assert [(row["strategy"], row["verdict"]) for row in rows] == [("mutex", "SAFE"), ("none", "UNSAFE")]
    header = (tmp_path / "folder" / "summary.csv").read_text().splitlines()[0].split(",")
    assert list(rows[0]) == header
    assert rows[1]["safe_grants_per_s"] == 0
    assert rows[1]["bound_per_million"] is None


def test_the_command_that_repeats_a_run_is_not_in_the_way_of_its_folder(
    pybench: Pybench, finished: tuple[Path, Answer]
):
    command = load(finished[0]).manifest["command"]
    assert command == ["pybench", "run", *SMALL]
    assert pybench(*command[1:]).code == 0


def test_the_name_and_the_time_make_the_folder_when_none_is_given(pybench: Pybench, tmp_path: Path):
    pybench("run", *SMALL, "--name", "shop")
    (folder,) = (tmp_path / "results").iterdir()
    assert re.fullmatch(r"shop-\d{8}-\d{6}", folder.name)


def test_a_folder_that_holds_something_is_refused_before_anything_is_measured(pybench: Pybench, tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    answer = pybench("run", *SMALL, "--out", "folder")
    assert answer.code == 40
    assert "is not empty" in answer.err
    assert "[1/2]" not in answer.err


def test_a_missed_threshold_is_named_and_exits_10(pybench: Pybench):
    answer = pybench("run", *SMALL, "--threshold", "violations == 0", "--threshold", "grants_per_s > 1")
    assert answer.code == 10
    assert answer.err.count("Threshold missed") == 1
    assert "Threshold missed: violations == 0: " in answer.err
    assert answer.err.endswith("exit code 10: a threshold was missed\n")


def test_a_control_that_is_not_caught_makes_the_run_void_and_exits_22(
    pybench_inside: Pybench, monkeypatch: pytest.MonkeyPatch
):
    def alone(cells: Iterable[Cell]) -> list[Cell]:
        return [dataclasses.replace(cell, concurrency=1) for cell in control_cells(cells)]

    monkeypatch.setattr("pybench.planning.control.control_cells", alone)
    answer = pybench_inside("run", *SMALL)
    assert answer.code == 22
    assert "NOT CAUGHT" in answer.err
    assert "proves nothing" in answer.out
    assert "VOID" in answer.out
    assert " SAFE" not in answer.out


def test_a_strategy_that_breaks_its_promise_exits_20(pybench_inside: Pybench, monkeypatch: pytest.MonkeyPatch):
    boasting = dataclasses.replace(CATALOGUE["none"], exclusion=Exclusion.ALWAYS)
    monkeypatch.setitem(CATALOGUE, "none", boasting)
    answer = pybench_inside("run", *SMALL, "--threshold", "violations == 0")
    assert answer.code == 20
    assert "this breaks its promise" in " ".join(answer.out.split())


def test_a_terminal_that_cannot_encode_greek_still_shows_figures(pybench: Pybench):
    answer = pybench("run", *SMALL, PYTHONIOENCODING="ascii")
    assert answer.code == 0
    assert "mutex" in answer.out


def test_a_server_that_does_not_answer_exits_41(pybench: Pybench):
    answer = pybench("run", *SMALL, "--redis", "redis://127.0.0.1:1")
    assert answer.code == 41
    assert "hint: " in answer.err


def test_a_given_server_keeps_nothing_of_the_run_and_its_password_is_nowhere(
    pybench: Pybench, given_server: GivenServer, tmp_path: Path
):
    with connect(given_server.process.endpoint) as client:
        client.set("mine", "1")
    answer = pybench("run", *SMALL, "--out", "folder", PYBENCH_REDIS_URL=given_server.url)
    assert answer.code == 0
    assert "(given, redis://127.0.0.1:" in answer.out
    with connect(given_server.process.endpoint) as client:
        assert client.keys("*") == [b"mine"]
    assert PASSWORD not in answer.out + answer.err
    assert not any(PASSWORD.encode() in path.read_bytes() for path in (tmp_path / "folder").iterdir())


def test_the_servers_of_a_file_are_used_before_those_of_the_environment(pybench: Pybench, tmp_path: Path):
    (tmp_path / "m.yaml").write_text("backends: {own: {source: auto}}\naxes: {strategy: mutex}")
    answer = pybench("run", "m.yaml", *QUICK, PYBENCH_REDIS_URL="redis://127.0.0.1:1")
    assert answer.code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_the_trials_so_far_and_resume_continues(
    pybench: Pybench, tmp_path: Path, number: signal.Signals
):
    process = start(tmp_path, *LONG, "--duration", "700ms")
    wait_for(process, "[1/4]")
    time.sleep(0.3)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "mutex" in out
    assert "pybench run --resume folder" in err
    run = load(tmp_path / "folder")
    assert run.manifest["status"] == "interrupted"
    assert list(run.trials["status"]) == ["complete", "interrupted"]
    assert (tmp_path / "folder" / "report.html").exists()
    if number != signal.SIGINT:
        return  # All signals leave the same folder behind, so that one resumption is enough.

    resumed = pybench("run", "--resume", "folder")
    assert resumed.code == 0
    assert "run: 3 of 4 trials" in resumed.err
    after = load(tmp_path / "folder")
    assert after.manifest["status"] == "complete"
    assert list(after.trials["status"]) == ["complete"] * 4
    kept = run.trials.iloc[0]
    again = after.trials[(after.trials["cell"] == kept["cell"]) & (after.trials["trial"] == kept["trial"])].iloc[0]
    assert again["started_at"] == kept["started_at"]
    order = json.loads((tmp_path / "folder" / "manifest.json").read_text())["order"]
    cells = [cell["id"] for cell in after.manifest["cells"]]
    assert list(after.trials.sort_values("started_at")["cell"]) == [cells[i] for block in order for i in block]


def test_an_interrupt_leaves_nothing_under_the_prefix_of_its_trial_on_a_given_server(
    given_server: GivenServer, tmp_path: Path
):
    process = start(tmp_path, "-s", "mutex", "--hold", "5s", *QUICK, "--duration", "9s", "--redis", given_server.url)
    wait_for(process, "[control]")
    with connect(given_server.process.endpoint) as client:
        deadline = time.monotonic() + 20
        while not client.keys("pybench:*") and time.monotonic() < deadline:
            time.sleep(0.05)
        # The baseline also acquires locks, but holds none of them for so long: this key is the trial's.
        time.sleep(1.5)
        (held,) = client.keys("pybench:*")
        # A key that a lost lock or a bug would leave: the core itself releases the locks that it holds.
        client.set(b":".join([*held.split(b":")[:3], b"stray"]), "1")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert client.keys("*") == []


def test_a_second_interrupt_exits_at_once_and_still_stops_the_servers(tmp_path: Path):
    process = start(tmp_path, *LONG)
    wait_for(process, "[1/4]")
    ours = _servers_below(process.pid)
    assert ours
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    deadline = time.monotonic() + 5
    while any(map(_runs, ours)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_runs, ours))


def test_a_server_that_dies_in_the_middle_ends_the_run_with_41_and_keeps_the_trials_so_far(
    given_server: GivenServer, tmp_path: Path
):
    process = start(tmp_path, *LONG, "--duration", "700ms", "--redis", given_server.url)
    wait_for(process, "[2/4]")
    given_server.process.stop()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 41
    assert "\nerror: " in err
    assert "Traceback" not in err
    run = load(tmp_path / "folder")
    assert run.manifest["status"] == "interrupted"
    assert (run.trials["status"] == "complete").sum() >= 2


def test_a_started_server_that_is_killed_is_named_with_41(tmp_path: Path):
    process = start(tmp_path, *LONG, "--duration", "700ms")
    wait_for(process, "[1/4]")
    for pid in _servers_below(process.pid):
        os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 41
    assert "in the middle of the run the server that pybench had started was killed by SIGKILL" in err
    assert "--resume" in err


def test_a_complete_run_has_nothing_to_resume(pybench_inside: Pybench, finished: tuple[Path, Answer]):
    answer = pybench_inside("run", "--resume", str(finished[0]))
    assert answer.code == 40
    assert "no trial is left to run" in answer.err


def test_a_run_of_another_version_is_not_resumed(pybench: Pybench, finished: tuple[Path, Answer], tmp_path: Path):
    shutil.copytree(finished[0], tmp_path / "folder")
    path = tmp_path / "folder" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest |= {"status": "interrupted", "versions": manifest["versions"] | {"core": "0.0.1"}}
    path.write_text(json.dumps(manifest))
    answer = pybench("run", "--resume", "folder")
    assert answer.code == 40
    assert "core 0.0.1 began the run" in answer.err


def test_quick_shortens_trials_and_their_number(pybench_inside: Pybench):
    plan = json.loads(pybench_inside("plan", "-s", "mutex", "--quick", "--json").out)
    assert plan["trials"] == 4
    assert plan["seconds"] < 10


def test_reports_are_written_again_from_the_folder_alone(
    pybench_inside: Pybench, finished: tuple[Path, Answer], tmp_path: Path
):
    shutil.copytree(finished[0], tmp_path / "folder", ignore=shutil.ignore_patterns("report.*"))
    answer = pybench_inside("report", "folder")
    assert answer.out == "folder/report.html\n"
    assert (tmp_path / "folder" / "report.html").exists()


def _servers_below(pid: int) -> list[int]:
    """The processes of servers that the process `pid` keeps, through their keepers."""
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    below = [server for child in children for server in _servers_below(child)]
    name = Path(f"/proc/{pid}/comm").read_text()
    return [*below, pid] if "server" in name else below


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
