"""Swarms as users start them: processes of Locust with the locustfile of the repository."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
LOCUSTFILE = ROOT / "locustfiles/native_locks.py"
ENDS_WITHIN_S = 60.0


@dataclass
class Swarm:
    """A process of Locust in a folder of its own, with what it has logged."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def end(self) -> int:
        """Its exit code, once it has ended by itself."""
        return self.process.wait(ENDS_WITHIN_S)

    def await_text(self, text: str) -> None:
        def is_there() -> bool:
            assert self.process.poll() is None or text in self.said, self.said
            return text in self.said

        wait_until(is_there, f"it says {text!r}", seconds=ENDS_WITHIN_S)


@contextlib.contextmanager
def swarm(folder: Path, *options: str, name: str = "swarm") -> Iterator[Swarm]:
    """A process of Locust in `folder`, which has ended afterwards."""
    log = folder / f"{name}.log"
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYBENCH_", "LOCUST_"))}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), *options],
            cwd=folder,
            env={**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Swarm(process, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def headless(users: int, seconds: int) -> list[str]:
    """The options of a short run without a web page."""
    return ["--headless", "--only-summary", "-u", str(users), "-r", str(users), "-t", f"{seconds}s"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def master(port: int, workers: int) -> list[str]:
    return ["--master", "--master-bind-host=127.0.0.1", f"--master-bind-port={port}", f"--expect-workers={workers}"]


def worker(port: int) -> list[str]:
    return ["--worker", "--master-host=127.0.0.1", f"--master-port={port}"]


def requests_of(folder: Path, name: str) -> int:
    """The requests that Locust counted until its end, by its `--json-file`."""
    (entry,) = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert entry["name"] == "acquire"
    assert sum(entry["response_times"].values()) == entry["num_requests"]
    requests: int = entry["num_requests"]
    return requests
