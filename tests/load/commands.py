"""Load generators as users run them: the real `locust` and `k6`, and the summary that they write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
LOCUSTFILES = ROOT / "locustfiles"
PATIENT = {"PYBENCH_P95_MS": "20000", "PYBENCH_P99_MS": "30000"}
"""Limits that a busy machine does not miss, for runs that are to pass."""
SECONDS = 100
"""After which a command that hangs is killed."""


@dataclass(frozen=True)
class Ended:
    """A command that ended."""

    code: int
    out: str
    err: str
    summary: Any
    """Of the summary file; None where it was not written."""

    def threshold(self, metric: str) -> bool:
        """Whether the threshold of this metric was met."""
        (found,) = [one["passed"] for one in self.summary["thresholds"] if one["metric"] == metric]
        return bool(found)


def environment(**more: str) -> dict[str, str]:
    """That of a user in the checkout, without settings of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYBENCH_", "LOCUST_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "PYBENCH_LOAD": "short", **more}


def locust_command(name: str, *options: str) -> list[str]:
    """The command line for the locustfile of this name."""
    return [sys.executable, "-m", "locust", "-f", str(LOCUSTFILES / f"{name}.py"), *options]


def ended(command: Sequence[str], folder: Path, **variables: str) -> Ended:
    """Runs a command in `folder` to its end. It may name a summary file of its own."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(PYBENCH_SUMMARY="summary.json", **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    written = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")]
    summary = written[0] if written else None
    return Ended(done.returncode, done.stdout, done.stderr, summary)


def headless(folder: Path, name: str, host: str, *options: str, **variables: str) -> Ended:
    """One headless run of a locustfile against `host`."""
    folder.mkdir()
    return ended(locust_command(name, "--headless", "--only-summary", "-H", host, *options), folder, **variables)


def interrupted(folder: Path, number: signal.Signals, name: str, host: str) -> Ended:
    """A headless run that gets a signal when all of its users are there."""
    folder.mkdir()
    log, file = folder / "log", folder / "summary.json"
    command = locust_command(name, "--headless", "--only-summary", "-H", host)
    with log.open("w") as err:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(PYBENCH_SUMMARY=str(file), **PATIENT),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
        )
    try:
        wait_until(lambda: process.poll() is not None or "All users spawned" in log.read_text(), "all users are there")
        process.send_signal(number)
        out, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    return Ended(process.returncode, out, log.read_text(), json.loads(file.read_text()) if file.exists() else None)
