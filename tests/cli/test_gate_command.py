"""`pybench gate` on real servers: what fails it, what does not, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from command_line import COMMAND, PASSWORD, ROOT, GivenServer, Pybench, environment

from pybench.records import load
from pybench.servers.proxy import Proxy
from tests.waiting import wait_until

MATRIX = "axes: {strategy: mutex}\nfixed: {concurrency: 8, hold: 1ms}\n"
SHORT = ["--duration", "100ms", "--warmup", "10ms"]
DELAY_S = 0.005
LONG_S = 240
"""A gate starts many processes, which takes long on a busy machine."""
SIDES = ("base", "head", "again")


class SlowServer(Proxy):
    """Every reply comes late."""

    def of_server(self, client, data):
        time.sleep(DELAY_S)
        super().of_server(client, data)


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    (tmp_path / "locks.yaml").write_text(MATRIX)
    return "locks.yaml"


@pytest.fixture
def slow(given_server: GivenServer) -> Iterator[str]:
    with SlowServer(given_server.process.endpoint) as proxy:
        yield proxy.url.replace("://", f"://:{PASSWORD}@")


def other_environment(folder: Path, *paths: str) -> str:
    """A virtual environment whose packages lie in `paths`."""
    venv.EnvBuilder(symlinks=True).create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "paths.pth").write_text("".join(f"{path}\n" for path in paths))
    return str(folder)


@pytest.mark.timeout(2 * LONG_S)
def test_a_pybench_is_gated_against_the_same_pybench_of_another_environment(pybench: Pybench, matrix, tmp_path):
    python = other_environment(tmp_path / "venv", str(ROOT), *site.getsitepackages())
    # A pybench in the working folder is neither side's.
    (tmp_path / "pybench").mkdir()
    answer = pybench(
        *("gate", matrix, "--base-python", python, "--trials", "4", *SHORT, "--out", "gated"),
        *("--junit", "gate.xml", "--md", "gate.md", "--html", "gate.html", "--summary"),
        seconds=LONG_S,
        GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"),
    )
    assert answer.code == 0, answer.err
    assert "pass: no regression in 1 cell" in answer.out
    runs = {side: load(tmp_path / "gated" / side) for side in SIDES}
    assert {run.manifest["status"] for run in runs.values()} == {"complete"}
    assert {tuple(sorted(run.trials["block"])) for run in runs.values()} == {(1, 2, 3, 4)}
    assert {verdict for run in runs.values() for verdict in run.trials["verdict"]} == {"SAFE"}
    assert all(entry["caught"] for run in runs.values() for entry in run.manifest["control"])
    (case,) = Xml.parse(tmp_path / "gate.xml").iter("testcase")
    assert case.find("failure") is None
    assert (tmp_path / "summary.md").read_text() == (tmp_path / "gate.md").read_text() + "\n"
    assert "✓ Pass: no regression in 1 cell" in (tmp_path / "gate.md").read_text()
    assert "mutex (base)" in (tmp_path / "gate.html").read_text()
    compared = pybench("compare", "gated/base", "gated/head", "--json")
    assert json.loads(compared.out)["paired"] is True


@pytest.mark.timeout(2 * LONG_S)
def test_a_slower_server_fails_the_gate_and_its_password_is_nowhere(
    pybench: Pybench, matrix, given_server: GivenServer, slow, tmp_path
):
    answer = pybench(
        *("gate", matrix, "--base-redis", given_server.url, "--redis", slow),
        *("--trials", "6", *SHORT, "--json", "--out", "gated", "--junit", "gate.xml"),
        seconds=LONG_S,
    )
    assert answer.code == 11, answer.err
    found = json.loads(answer.out)
    assert found["outcome"] == "regression"
    (cell,) = found["cells"]
    assert cell["result"] == "slower"
    for judged in (cell["first_round"], cell["confirming_round"]):
        assert judged["blocks"] == 6
        assert judged["high"] < 1 / (1 + judged["limit"])
    assert load(tmp_path / "gated" / "head").trials["block"].max() == 12
    assert len(list(Xml.parse(tmp_path / "gate.xml").iter("failure"))) == 1
    written = [path.read_bytes() for path in (tmp_path / "gated").rglob("*") if path.is_file()]
    assert not [data for data in [*written, answer.out.encode(), answer.err.encode()] if PASSWORD.encode() in data]


def test_a_lock_that_became_unsafe_fails_whatever_its_speed(pybench: Pybench, matrix, tmp_path):
    (tmp_path / "unlocked.yaml").write_text(MATRIX.replace("mutex", "none"))
    answer = pybench("gate", matrix, "--head", "unlocked.yaml", "--trials", "1", *SHORT)
    assert answer.code == 11, answer.err
    assert "regression: mutex -> none became unsafe" in answer.out
    assert "SAFE -> UNSAFE (regression)" in answer.out


def test_without_a_base_the_gate_cannot_tell(pybench_inside: Pybench, tmp_path):
    (tmp_path / "locks.yaml").write_text(MATRIX)
    answer = pybench_inside("gate", "locks.yaml", "--json", "--junit", "gate.xml", "--md", "gate.md")
    assert answer.code == 21
    assert json.loads(answer.out)["outcome"] == "can't tell"
    assert "--base-python" in answer.err
    assert len(list(Xml.parse(tmp_path / "gate.xml").iter("error"))) == 1
    assert "can't tell" in (tmp_path / "gate.md").read_text()


@pytest.mark.parametrize(
    ("package", "complaint"), [(None, "there is no pybench in"), ("", "it is too old, since it has no `pybench gate`")]
)
def test_an_environment_that_cannot_take_part_is_refused_before_anything_is_measured(
    pybench_inside: Pybench, tmp_path, package, complaint
):
    (tmp_path / "locks.yaml").write_text(MATRIX)
    if package is not None:
        (tmp_path / "old" / "pybench").mkdir(parents=True)
        (tmp_path / "old" / "pybench" / "__init__.py").write_text(package)
    python = other_environment(tmp_path / "venv", *([] if package is None else [str(tmp_path / "old")]))
    answer = pybench_inside("gate", "locks.yaml", "--base-python", python, "--out", "gated")
    assert answer.code == 40
    assert complaint in answer.err
    assert not (tmp_path / "gated").exists()


def test_loads_that_do_not_match_are_refused(pybench_inside: Pybench, tmp_path):
    (tmp_path / "locks.yaml").write_text(MATRIX)
    (tmp_path / "other.yaml").write_text(MATRIX.replace("1ms", "2ms"))
    answer = pybench_inside("gate", "locks.yaml", "--head", "other.yaml", "--plan")
    assert answer.code == 40
    assert "no load in common" in answer.err


def test_the_plan_says_trials_time_and_what_is_found(pybench_inside: Pybench, tmp_path):
    (tmp_path / "locks.yaml").write_text(MATRIX.replace("mutex", "[mutex, fenced]"))
    answer = pybench_inside("gate", "locks.yaml", "--plan", "--trials", "20", "--json")
    found = json.loads(answer.out)
    assert (found["cells"], found["blocks"], found["trials"], found["confirming_trials"]) == (2, 20, 120, 120)
    assert found["seconds"] > found["confirming_seconds"] > 120 * 2.5
    slowdowns = [one["slowdown"] for one in found["least_slowdowns"]]
    assert slowdowns == sorted(slowdowns)
    assert 0.03 < slowdowns[0] < 0.06


def test_the_plan_of_too_few_blocks_names_no_slowdown(pybench_inside: Pybench, tmp_path):
    (tmp_path / "locks.yaml").write_text(MATRIX)
    answer = pybench_inside("gate", "locks.yaml", "--plan", "--trials", "3")
    assert answer.code == 0, answer.err
    assert "slowdowns found: none with so few blocks; at least 4 are needed" in answer.out
    assert "9 of 10" not in answer.out


def started(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """A gate of which some trials are saved already."""
    process = subprocess.Popen(
        [*COMMAND, "gate", "locks.yaml", *arguments, "--trials", "200", *SHORT, "--out", "gated"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    parts = [tmp_path / "gated" / side / "parts" for side in SIDES]
    wait_until(
        lambda: process.poll() is not None or all(part.is_dir() and any(part.iterdir()) for part in parts),
        "every side has a trial",
        seconds=60,
    )
    return process


def test_an_interrupted_gate_leaves_whole_folders(matrix, tmp_path):
    python = other_environment(tmp_path / "venv", str(ROOT), *site.getsitepackages())
    process = started(tmp_path, "--base-python", python)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "pass:" not in out
    assert "a gate cannot be resumed" in err
    for side in SIDES:
        run = load(tmp_path / "gated" / side)
        assert run.manifest["status"] == "interrupted"
        assert len(run.trials)
        assert not (tmp_path / "gated" / side / "parts").exists()


def test_a_server_that_ends_ends_the_gate_and_keeps_its_trials(matrix, given_server: GivenServer, slow, tmp_path):
    process = started(tmp_path, "--base-redis", given_server.url, "--redis", slow)
    os.kill(given_server.process.pid, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 41, err
    assert PASSWORD not in err
    assert {load(tmp_path / "gated" / side).manifest["status"] for side in SIDES} == {"interrupted"}


def test_a_run_writes_junit_and_the_summary_of_a_job_and_its_folder_is_a_base(pybench: Pybench, matrix, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n\n")
    answer = pybench(
        *("run", matrix, "--trials", "1", *SHORT, "--threshold", "grants < 1", "--junit", "run.xml", "--summary"),
        *("--out", "before"),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert answer.code == 10, answer.err
    assert len(list(Xml.parse(tmp_path / "run.xml").iter("failure"))) == 1
    text = summary.read_text()
    assert text.startswith("before\n\n### ")
    assert "Thresholds: 0 met, 1 missed." in text
    (tmp_path / "other.yaml").write_text(MATRIX.replace("mutex", "fenced"))
    answer = pybench("gate", "before", "--head", "other.yaml", "--trials", "1", *SHORT, "--json", "--out", "gated")
    assert answer.code == 21, answer.err
    (cell,) = json.loads(answer.out)["cells"]
    assert (cell["lock"], cell["result"]) == ("mutex -> fenced", "can't tell")
    resumed = pybench("run", "--resume", "gated/head")
    assert resumed.code == 40
    assert "is a side of a gate" in resumed.err
