"""A master and two workers: the verdict is made of what both workers counted, and only the master judges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pybench.servers.supervised import free_port
from tests.load.commands import Ended, ended, locust_command
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
