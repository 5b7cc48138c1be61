"""The case of `make perf` about native users of Locust: beside `pybench run` for the same cell, on one server."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pybench
from pybench.records import Run
from pybench.servers import Server
from tests.benchmarks.lock_client import url_of
from tests.benchmarks.sample import Case, Sample

ROOT = Path(__file__).parents[2]
SECONDS = 3
USERS, CLIENTS = 4, 64
PAIRS = 2
BEGIN_NS, STEPS = 500_000_000, 20
"""Of the window of each, so many steps are compared, from here on: then all users are there, and none has left yet."""


def native_users(server: Server) -> Iterator[Sample]:
    """Grants/s of `mutex` with 64 clients on 1,000 keys: users of Locust in one process, and a trial of a run."""
    for number in range(PAIRS):
        pair = [_locust, _run] if number % 2 else [_run, _locust]
        per_s = {measure: _per_s(_measured(server, measure)) for measure in pair}
        yield Sample(
            "native users of Locust / pybench run, 64 clients, 1,000 keys",
            per_s[_locust],
            per_s[_run],
            ("at least", 0.95),
        )


def _locust(url: str, folder: Path) -> list[str]:
    locustfile = str(ROOT / "locustfiles/native_locks.py")
    load = ["--headless", "--only-summary", "-u", str(USERS), "-r", str(USERS), "-t", f"{SECONDS}s"]
    return ["-m", "locust", "-f", locustfile, *load, "--redis", url, "--out", str(folder)]


def _run(url: str, folder: Path) -> list[str]:
    cell = ["--strategy", "mutex", "--clients", str(CLIENTS), "--keys", "1000"]
    load = ["--trials", "1", "--warmup", "0", "--duration", f"{SECONDS}s"]
    return ["-m", "pybench", "run", *cell, *load, "--redis", url, "--out", str(folder), "--yes"]


def _measured(server: Server, command: Callable[[str, Path], list[str]]) -> Run:
    """One run, in a process of its own that places itself on the cores as a user's does."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        subprocess.run(
            [sys.executable, *command(url_of(server), folder)],
            cwd=temporary,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            preexec_fn=lambda: os.sched_setaffinity(0, range(os.cpu_count() or 1)),
        )
        return pybench.load(folder)


def _per_s(run: Run) -> float:
    line = run.timeline[run.timeline["start_ns"] >= BEGIN_NS].head(STEPS)
    return float(line["grants"].sum()) / (len(line) * 0.1)


SWARM_CASES: tuple[Case, ...] = (native_users,)
