"""The k6 scripts beside the locustfiles: the same verdicts, and summaries with the same names.

k6 is built from its source by the Go tool chain, into a folder of the checkout that git ignores.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.load.commands import PATIENT, ROOT, Ended, ended, headless
from tests.service.running import Running

VERSION = "v1.8.1"
PLACE = ROOT / ".tools"
THRESHOLDS_MISSED = 99
SCRIPT_FAILED = 107

# The first build takes some minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]


@pytest.fixture(scope="module")
def k6() -> str:
    """The binary of the version that the scripts are written for."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go on PATH to build k6 with")
    binary = PLACE / "k6"
    if not (binary.exists() and VERSION in subprocess.check_output([binary, "version"], text=True)):
        place = {**os.environ, "GOBIN": str(PLACE)}
        subprocess.run([go, "install", f"go.k6.io/k6@{VERSION}"], cwd="/", env=place, check=True)
    return str(binary)


def run_of(k6: str, folder: Path, script: str, host: str, **variables: str) -> Ended:
    """A script in its short form."""
    options = ["run", "--quiet", "--no-usage-report", "--address", "127.0.0.1:0"]
    return ended([k6, *options, str(ROOT / "load-tests" / f"{script}.js")], folder, BASE_URL=host, **variables)


@pytest.mark.parametrize("script", ["oversell", "high-load", "retry-comparison", "lock-api"])
def test_a_script_passes_and_its_summary_has_the_names_of_the_locustfile(
    k6: str, service: Running, tmp_path: Path, script: str
):
    host = f"http://127.0.0.1:{service.port}"
    run = run_of(k6, tmp_path, script, host, **PATIENT)
    assert run.code == 0, run.out + run.err
    other = headless(tmp_path / "locust", script.replace("-", "_"), host, **PATIENT)
    assert other.code == 0, other.out + other.err
    ours, theirs = run.summary, other.summary
    assert (ours["tool"], theirs["tool"]) == ("k6", "locust")
    assert list(ours) == list(theirs)
    for field in ("schema", "scenario", "form", "service", "settings", "passed"):
        assert ours[field] == theirs[field], field
    assert list(ours["metrics"]) == list(theirs["metrics"])
    assert {name: list(group) for name, group in ours["groups"].items()} == {
        name: list(group) for name, group in theirs["groups"].items()
    }
    conditions = [[(one["metric"], one["limit"]) for one in summary["thresholds"]] for summary in (ours, theirs)]
    assert conditions[0] == conditions[1]
    assert ours["conclusion"] in run.out


def test_without_a_lock_the_race_exits_with_the_code_of_missed_thresholds(k6: str, service: Running, tmp_path: Path):
    run = run_of(k6, tmp_path, "oversell", f"http://127.0.0.1:{service.port}", PYBENCH_LOCK_STRATEGY="none")
    assert run.code == THRESHOLDS_MISSED, run.out + run.err
    assert run.summary["metrics"]["sold"] > 1
    assert not run.threshold("sold")
    assert run.summary["conclusion"] == f"{run.summary['metrics']['sold']} of 50 buyers got the only item."


def test_high_load_fails_on_the_same_limits(k6: str, service: Running, tmp_path: Path):
    limits = {"PYBENCH_P95_MS": "0.01", "PYBENCH_LOCK_STRATEGY": "none", "PYBENCH_USERS": "40"}
    run = run_of(k6, tmp_path, "high-load", f"http://127.0.0.1:{service.port}", **limits)
    assert run.code == THRESHOLDS_MISSED, run.out + run.err
    assert [run.threshold(metric) for metric in ("p95_ms", "error_rate", "lost_updates")] == [False, True, False]


def test_a_script_without_a_service_says_so(k6: str, tmp_path: Path):
    run = run_of(k6, tmp_path, "oversell", "http://user:s3cret@127.0.0.1:1")
    assert run.code == SCRIPT_FAILED, run.out + run.err
    assert "http://127.0.0.1:1 does not answer: start it with pybench serve" in run.err
    assert run.summary["passed"] is False
