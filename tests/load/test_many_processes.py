"""A master and two workers: the verdict is made of what both workers counted, and only the master judges."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pybench.servers.supervised import free_port
from tests.load.commands import LOCUSTFILES, Ended, ended, environment, locust_command
from tests.service.running import Running

WORKERS = 2


def run_of(folder: Path, name: str, host: str, *options: str) -> tuple[Ended, list[Ended]]:
    """The master and its workers, after a headless run."""
    port = str(free_port())
    folders = [folder / role for role in ("master", *map(str, range(WORKERS)))]
    for one in folders:
        one.mkdir()
    leads = ["--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port, "-H", host, *options]
    master = locust_command(name, "--headless", "--only-summary", "--expect-workers", str(WORKERS), *leads)
    worker = locust_command(name, "--worker", "--master-port", port)
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(ended, [master, *[worker] * WORKERS], folders))
    return done[0], done[1:]


def test_fifty_buyers_of_two_workers_race_without_a_lock(service: Running, tmp_path: Path):
    master, workers = run_of(tmp_path, "oversell", f"http://127.0.0.1:{service.port}", "--lock-strategy", "none")
    assert master.code == 1, master.out + master.err
    metrics = master.summary["metrics"]
    assert metrics["answers"] == metrics["requests"] == 50
    assert metrics["sold"] == 50 - metrics["refused"] > 1
    assert master.summary["conclusion"] == f"{metrics['sold']} of 50 buyers got the only item."
    for worker in workers:
        assert worker.code == 0, worker.out + worker.err
        assert worker.summary is None
        assert "threshold" not in worker.out


GATE = """
from types import SimpleNamespace
from locust import events
from _scenario import Scenario
gate = Scenario("a_scenario", users={"full": 1, "short": 1}).gate
print(gate.is_set())
events.spawning_complete.fire(user_count=1)
print(gate.is_set())
events.test_start.fire(environment=SimpleNamespace(runner=None))
print(gate.is_set())
"""


def test_the_gate_opens_when_all_users_are_there_and_closes_for_the_next_run():
    variables = environment(PYTHONPATH=str(LOCUSTFILES))
    done = subprocess.run([sys.executable, "-c", GATE], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
