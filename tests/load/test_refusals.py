"""Scenarios that cannot run: each ends with exit code 1 and one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from pybench.servers.supervised import free_port
from tests.load.commands import LOCUSTFILES, Ended, ended, headless, locust_command

NOBODY = f"http://127.0.0.1:{free_port()}"

CASES: dict[str, Callable[[Path], Ended]] = {
    "absent": lambda folder: headless(folder / "absent", "high_load", NOBODY),
    "address": lambda folder: headless(folder / "address", "oversell", "user:s3cret@127.0.0.1:8080"),
    "form": lambda folder: headless(folder / "form", "oversell", NOBODY, PYBENCH_LOAD="tiny"),
    "folder": lambda folder: headless(folder / "folder", "oversell", NOBODY, "--summary", "nowhere/summary.json"),
    "all": lambda folder: ended([*locust_command("oversell")[:3], "-f", str(LOCUSTFILES), "--headless"], folder),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Ended]]]:
    folder = tmp_path_factory.mktemp("refusals")
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(case, folder) for name, case in CASES.items()}


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("absent", f"{NOBODY} does not answer: start it with pybench serve, or name another service with --host"),
        ("address", "'127.0.0.1:8080' is no address of a service: use --host http://127.0.0.1:8080"),
        ("form", "PYBENCH_LOAD is 'tiny': use full or short"),
        ("folder", "--summary nowhere/summary.json: there is no folder nowhere"),
        ("all", ".py cannot run together: pass one of them with -f"),
    ],
)
def test_a_scenario_that_cannot_run_says_why(runs: dict[str, Future[Ended]], case: str, sentence: str):
    run = runs[case].result()
    assert run.code == 1, run.out + run.err
    assert sentence in run.out + run.err
    assert "Traceback" not in run.out + run.err
    assert "s3cret" not in run.out + run.err


def test_a_run_without_a_service_does_not_count_as_passed(runs: dict[str, Future[Ended]]):
    run = runs["absent"].result()
    assert run.summary["passed"] is False
    assert run.summary["metrics"]["requests"] == 0
    assert run.out.rstrip().endswith("failed: the run could not be judged")
