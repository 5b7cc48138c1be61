"""The scripts of workflows that take minutes: what builds, installs or tests a whole checkout, and long measurements.

Not carried out: the actions of GitHub, the services and containers of a job, and a machine of another kind than this
one. The wheel for arm64 is built by the same command as the one for x86-64.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.ci.checkouts import check_out, environment
from tests.ci.gates import MATRIX, NOT_SLOWER, SHORT, require_outputs
from tests.ci.workflows import Runner, ours, shown
from tools.workflows import ROOT

# Each builds the core anew, unless cargo finds it in the folder that they share.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]
PATIENCE_S = 3_500


def test_a_users_gate_compares_the_matrices_and_environments_of_both_sides(runner: Runner):
    steps = shown()["Locks"].steps("gate")
    for side in ("base", "head"):
        environment(runner.workspace / side / ".venv", ROOT, gate=SHORT)
        (runner.workspace / side / "locks.yaml").write_text(MATRIX)
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


@pytest.fixture(scope="session")
def cargo_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for what cargo builds: the checkouts have the same sources. An own one may be warm."""
    own = os.environ.get("CARGO_TARGET_DIR")
    return Path(own) if own else tmp_path_factory.mktemp("target")


def carried_out(runner: Runner, job: str, step: str, workflow: str = "ci.yml") -> str:
    """The output of a step that must succeed."""
    done = runner.run(ours()[workflow].steps(job)[step], timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_checkout_passes_lint_and_a_part_of_its_tests(runner: Runner, cargo_target: Path):
    check_out(runner.workspace)
    # All tests within a test would go round in circles: .ci/run itself carries out the whole step. None of this part
    # calls pytest, which would take the same options.
    part = "tests/house/test_tidy.py tests/boundary"
    runner.variables |= {"CARGO_TARGET_DIR": str(cargo_target), "PYTEST_ADDOPTS": part}
    carried_out(runner, "lint", "Lint")
    assert " passed" in carried_out(runner, "test", "Test")


def test_the_workflows_pass_actionlint(runner: Runner):
    if shutil.which("go") is None:
        pytest.skip("no go on PATH to build actionlint with")
    check_out(runner.workspace)
    carried_out(runner, "workflows", "Lint the workflows")


def test_the_wheel_is_built_and_works_in_clean_environments_also_of_a_users_project(
    runner: Runner, cargo_target: Path, tmp_path: Path
):
    check_out(runner.workspace)
    runner.variables["CARGO_TARGET_DIR"] = str(cargo_target)
    carried_out(runner, "wheels", "Build the wheel")
    (wheel,) = (runner.workspace / "dist").iterdir()
    assert "-cp311-abi3-manylinux_2_28_" in wheel.name
    for job in ("wheels", "newest-python"):
        assert "mutex" in carried_out(runner, job, "Try the wheel in a clean environment")

    user = Runner(tmp_path / "project", runner.temporary, variables={"PIP_FIND_LINKS": str(wheel.parent)})
    for side in ("base", "head"):
        (user.workspace / side).mkdir(parents=True)
        (user.workspace / side / "requirements-locks.txt").write_text("pybench[embedded]==0.1.0\n")
    installed = user.run(shown()["Locks"].steps("gate")["Install the pybench of each side"], timeout=PATIENCE_S)
    assert installed.returncode == 0, installed.stdout
    assert (user.workspace / "base" / ".venv" / "bin" / "pybench").exists()
    for name, job, folder in (("Server", "gate", "."), ("Benchmarks", "benchmarks", "head")):
        (user.workspace / folder / "requirements-locks.txt").write_text("pybench[embedded,pytest]==0.1.0\n")
        installed = user.run(shown()[name].steps(job)["Install pybench"], timeout=PATIENCE_S)
        assert installed.returncode == 0, installed.stdout


def test_both_sides_of_a_pull_request_are_built(runner: Runner, cargo_target: Path):
    runner.variables["CARGO_TARGET_DIR"] = str(cargo_target)
    for side, step in (("base", "Build the base"), ("head", "Build the pull request")):
        check_out(runner.workspace / side)
        carried_out(runner, "gate", step, workflow="benchmark.yml")
        assert (runner.workspace / side / ".venv" / "bin" / "pybench").exists()
