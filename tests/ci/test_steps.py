"""Each script of a workflow is carried out, in a workspace laid out as the actions before it would lay it out.

Here are those that take seconds. A gate is made short: its environment adds few trials to the command line. What
builds, installs or tests a whole checkout is in `test_slow_steps.py`.
"""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.records import load
from pybench.servers.redis import binaries, supervisor
from tests.ci.checkouts import built, environment
from tests.ci.workflows import Runner, ours, shown
from tools.workflows import ROOT

SHORT = ["--trials", "2", "--duration", "40ms", "--warmup", "10ms"]
MATRIX = "name: locks\naxes: {strategy: mutex, concurrency: 4}\nfixed: {hold: 100us}\n"
NOT_SLOWER = {0, 21}
"""So few trials may leave the gate undecided, and may not blame anybody."""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    workspace, temporary = tmp_path / "workspace", tmp_path / "temporary"
    workspace.mkdir()
    temporary.mkdir()
    return Runner(workspace, temporary)


@pytest.fixture
def two_servers() -> Iterator[list[str]]:
    """The addresses of two servers as containers of the job would offer them."""
    servers = [supervisor.start(binaries.find("auto"), transport="tcp")[0] for _ in range(2)]
    yield [f"redis://{server.endpoint.host}:{server.endpoint.port}" for server in servers]
    for server in servers:
        server.stop()


def require_outputs(runner: Runner) -> None:
    """What the upload names, and the job summary, are there."""
    assert runner.summary.read_text().lstrip().startswith("#")
    assert (runner.workspace / "gate.html").read_text().startswith("<!doctype html>")
    cases = ET.parse(runner.workspace / "gate.xml").getroot().iter("testcase")
    assert any("mutex" in case.attrib["name"] for case in cases)
    folders = [path for path in (runner.workspace / "gate").iterdir() if path.is_dir()]
    assert len(folders) >= 2
    assert all(len(load(folder).trials) for folder in folders)


def test_the_benchmark_of_a_pull_request_measures_and_reports_both_sides(runner: Runner):
    steps = ours()["benchmark.yml"].steps("gate")
    for side in ("base", "head"):
        built(runner.workspace / side, gate=SHORT)
    runner.variables["MATRIX"] = "short.yaml"
    (runner.workspace / "short.yaml").write_text(MATRIX)
    measured = runner.run(steps["Measure both"])
    assert measured.returncode in NOT_SLOWER, measured.stdout
    reported = runner.run(steps["Write the report of each side"])
    assert reported.returncode == 0, reported.stdout
    require_outputs(runner)
    assert all((folder / "report.html").exists() for folder in (runner.workspace / "gate").iterdir())


def test_the_matrix_of_our_own_gate_can_be_planned(runner: Runner):
    from pybench.matrix import load_matrix
    from pybench.planning.plan import make_plan

    job = ours()["benchmark.yml"].tree["jobs"]["gate"]
    plan = make_plan(load_matrix(ROOT / job["env"]["MATRIX"].removeprefix("head/")))
    assert plan.cells
    assert not plan.refused


def test_a_users_gate_compares_the_matrices_and_environments_of_both_sides(runner: Runner):
    steps = shown()["Locks"].steps("gate")
    for side in ("base", "head"):
        environment(runner.workspace / side / ".venv", ROOT, gate=SHORT)
        (runner.workspace / side / "locks.yaml").write_text(MATRIX)
    measured = runner.run(steps["Measure both"])
    assert measured.returncode in NOT_SLOWER, measured.stdout
    require_outputs(runner)


def test_a_users_gate_stops_a_lock_that_became_unsafe(runner: Runner):
    steps = shown()["Locks"].steps("gate")
    for side, hold in (("base", "100us"), ("head", "3ms")):
        environment(runner.workspace / side / ".venv", ROOT, gate=SHORT)
        unsafe = f"name: locks\naxes: {{strategy: naive, concurrency: 4}}\nfixed: {{hold: {hold}, ttl: 10ms}}\n"
        (runner.workspace / side / "locks.yaml").write_text(unsafe)
    measured = runner.run(steps["Measure both"])
    assert measured.returncode not in NOT_SLOWER, measured.stdout


def test_a_users_gate_of_a_new_server_measures_on_both_servers(runner: Runner, two_servers: list[str]):
    steps = shown()["Server"].steps("gate")
    environment(runner.workspace / ".venv", ROOT, gate=SHORT)
    (runner.workspace / "locks.yaml").write_text(MATRIX)
    runner.variables |= dict(zip(("PRESENT", "NEXT"), two_servers, strict=True))
    measured = runner.run(steps["Measure both"])
    assert measured.returncode in NOT_SLOWER, measured.stdout
    require_outputs(runner)


def test_users_benchmarks_compare_the_pull_request_with_its_base(runner: Runner):
    steps = shown()["Benchmarks"].steps("benchmarks")
    environment(runner.workspace / ".venv", ROOT)
    for side in ("base", "head"):
        folder = runner.workspace / side / "benchmarks"
        folder.mkdir(parents=True)
        (folder / "test_locks.py").write_text(
            "def test_mutex(lock_benchmark):\n"
            "    lock_benchmark('mutex', concurrency=4, hold='100us', trials=2, duration='100ms', warmup='20ms')\n"
        )
    base = runner.run(steps["Measure the base"])
    assert base.returncode == 0, base.stdout
    shutil.rmtree(runner.workspace / "base")
    head = runner.run(steps["Measure the pull request"])
    # The limit is the user's, and a busy machine may miss it.
    assert head.returncode in (0, 1), head.stdout
    assert "0001_base" in head.stdout
    assert {path.name.split("_")[1] for path in (runner.workspace / "saved").rglob("*.json")} == {
        "base.json",
        "head.json",
    }
