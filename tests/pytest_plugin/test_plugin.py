"""The plugin under the real commands: pytest with pytest-benchmark, in a project of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUICK = 'hold="200us", duration="100ms", warmup="20ms"'
TESTS = f"""
import pytest

@pytest.mark.benchmark(group="locks")
@pytest.mark.parametrize("strategy", ["mutex", "redlock(nodes=3)"])
def test_lock(lock_benchmark, strategy):
    run = lock_benchmark(strategy, concurrency=8, keys=8, trials=5, {QUICK})
    assert run.summary["verdict"].iloc[0] == "SAFE"
"""
UNSAFE = f"""
def test_none(lock_benchmark):
    lock_benchmark("none", concurrency=8, {QUICK})

def test_two_loads(lock_benchmark):
    lock_benchmark("mutex", concurrency="1,2", {QUICK})

def test_misspelt_lock(lock_benchmark):
    lock_benchmark("mutx")

def test_misspelt_option(lock_benchmark):
    lock_benchmark("mutex", concurency=2)

def test_no_server(lock_benchmark):
    lock_benchmark("mutex", redis="redis://127.0.0.1:1")

def test_twice(lock_benchmark):
    lock_benchmark("mutex", trials=1, {QUICK})
    lock_benchmark("mutex", trials=1, {QUICK})
"""


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_locks.py").write_text(TESTS)
    return tmp_path


def run_pytest(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYBENCH_", "PYTEST_"))}
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = ["-p", "no:valkey", "-p", "no:cacheprovider", f"--basetemp={project / 'tmp'}"]
    command = [sys.executable, "-m", "pytest", "-q", *own, *options]
    return subprocess.run(
        command, cwd=project, env={**kept, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )


def test_trials_are_saved_compared_and_gated(project):
    first = run_pytest(project, "--benchmark-autosave")
    assert first.returncode == 0, first.stdout
    (saved,) = project.glob(".benchmarks/*/*.json")
    found = {one["name"]: one for one in json.loads(saved.read_text())["benchmarks"]}
    mutex = found["test_lock[mutex]"]
    assert mutex["group"] == "locks"
    assert mutex["stats"]["rounds"] == 5
    assert mutex["options"]["timer"].endswith("time_per_grant")
    assert mutex["extra_info"]["verdict"] == "SAFE"
    assert mutex["extra_info"]["unit"] == "s"
    assert mutex["extra_info"]["grants_per_s"] * mutex["stats"]["median"] == pytest.approx(1)
    assert found["test_lock[redlock(nodes=3)]"]["extra_info"]["args"] == "nodes=3"
    # A base a thousand times as fast: every change is a regression.
    base = json.loads(saved.read_text())
    for one in base["benchmarks"]:
        for name in ("min", "max", "mean", "median", "q1", "q3"):
            one["stats"][name] /= 1_000
    saved.write_text(json.dumps(base))
    gated = run_pytest(project, "--benchmark-compare", "--benchmark-compare-fail=mean:10%", "-k", "mutex")
    assert gated.returncode != 0
    assert "Performance has regressed" in gated.stdout + gated.stderr


def test_an_unsafe_lock_and_what_cannot_be_measured_fail_with_a_sentence(project):
    (project / "test_locks.py").write_text(UNSAFE)
    done = run_pytest(project)
    assert done.returncode == 1
    assert "none is UNSAFE: " in done.stdout
    assert "double grants" in done.stdout
    assert "lock_benchmark measures one lock at one load\n  hint: give one value for each axis" in done.stdout
    assert 'there is no strategy "mutx"\n  hint: did you mean mutex?' in done.stdout
    assert "a matrix has no option concurency: did you mean concurrency?" in done.stdout
    assert "redis://127.0.0.1:1/0 refuses connections: nothing listens there\n  hint: " in done.stdout
    assert "lock_benchmark measures one lock in a test: use pytest.mark.parametrize" in done.stdout
    assert "Traceback" not in done.stdout
    assert "measuring.py" not in done.stdout


def test_under_xdist_each_lock_is_still_judged(project):
    (project / "test_locks.py").write_text(TESTS + UNSAFE.split("\n\n")[0])
    done = run_pytest(project, "-n", "2")
    assert done.returncode == 1
    assert "2 passed" in done.stdout
    assert "none is UNSAFE: " in done.stdout
    assert not list(project.glob(".benchmarks/*/*.json"))


def test_without_pytest_benchmark_it_says_what_is_missing(project):
    done = run_pytest(project, "-p", "no:benchmark", "-k", "mutex")
    assert done.returncode == 1
    assert "lock_benchmark needs pytest-benchmark: pip install 'pybench[pytest]'" in done.stdout


def test_a_project_that_measures_nothing_loads_nothing_of_pybench(project):
    (project / "test_locks.py").write_text(
        "import sys\ndef test_it():\n    assert {one for one in sys.modules if one.startswith('pybench')} <= "
        "{'pybench', 'pybench.pytest_plugin'}\n    assert not {'pandas', 'pyarrow', 'redis'} & sys.modules.keys()\n"
    )
    assert run_pytest(project).returncode == 0
