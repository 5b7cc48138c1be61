"""Each script of a workflow is carried out, in a workspace laid out as the actions before it would lay it out.

Here are those that take seconds. A gate is made short: its environment adds few trials to the command line. What
builds, installs or tests a whole checkout is in `test_slow_steps.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybench.exits import Exit
from pybench.servers.redis import binaries, supervisor
from tests.ci.checkouts import built, environment
from tests.ci.gates import MATRIX, NOT_SLOWER, SHORT, require_outputs
from tests.ci.workflows import Runner, ours, shown
from tools.workflows import ROOT

# On a busy machine the gates of a workflow take longer than other tests.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def two_servers() -> Iterator[list[str]]:
    """The addresses of two servers as containers of the job would offer them."""
    servers = [supervisor.start(binaries.find("auto"), transport="tcp")[0] for _ in range(2)]
    yield [f"redis://{server.endpoint.host}:{server.endpoint.port}" for server in servers]
    for server in servers:
        server.stop()


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


def test_a_users_gate_stops_a_lock_that_became_unsafe(runner: Runner):
    steps = shown()["Locks"].steps("gate")
    for side, lock in (("base", "mutex"), ("head", "none")):
        environment(runner.workspace / side / ".venv", ROOT, gate=SHORT)
        (runner.workspace / side / "locks.yaml").write_text(MATRIX.replace("mutex", lock))
    measured = runner.run(steps["Measure both"])
    assert measured.returncode == Exit.REGRESSION, measured.stdout
    require_outputs(runner, lock="none")


def test_a_users_gate_of_a_new_server_measures_on_both_servers(runner: Runner, two_servers: list[str]):
    steps = shown()["Server"].steps("gate")
    environment(runner.workspace / ".venv", ROOT, gate=SHORT)
    (runner.workspace / "locks.yaml").write_text(MATRIX)
    runner.variables |= dict(zip(("PRESENT", "NEXT"), two_servers, strict=True))
    measured = runner.run(steps["Measure both"])
    assert measured.returncode in NOT_SLOWER, measured.stdout
    require_outputs(runner)
