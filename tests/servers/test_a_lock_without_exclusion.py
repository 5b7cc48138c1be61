"""Whole runs of `mutex` before a server that a proxy changes the commands of: what is found, and what is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.report import write_report
from pybench.running import job
from pybench.running.job import Job, Outcome
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.supervisor import SupervisedServer
from tests.redis_client import connect
from tests.rewriting_proxy import RewritingProxy, Rule, without_nx, without_owner, without_release
from tests.servers.meddling import Meddler
from tests.waiting import wait_until


@pytest.fixture
def given() -> Iterator[SupervisedServer]:
    process, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    yield process
    process.stop()


@pytest.fixture
def again(given: SupervisedServer, tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """What `restart` has started."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def restart(server: SupervisedServer, again: list[subprocess.Popen[bytes]], folder: Path) -> None:
    """Kill `server`, and start another one without its data where it listened."""
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not server.is_running(), "the server ends")
    arguments = ["--port", str(server.endpoint.port), "--save", "", "--bind", "127.0.0.1"]
    again.append(subprocess.Popen([server.binary.path, *arguments], stdout=subprocess.DEVNULL, cwd=folder))

    def answers() -> bool:
        try:
            with connect(server.endpoint) as client:
                return bool(client.ping())
        except OSError:
            return False

    wait_until(answers, "the server answers again")


def run_at_the_terminal(folder: Path, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYBENCH_")}
    return subprocess.run(
        [sys.executable, "-m", "pybench", "run", "-s", "mutex", "--redis", url, "--quick", "--out", "run", *options],
        cwd=folder,
        env={**variables, "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("--concurrency", "8")], ids=["default", "contended"])
@pytest.mark.parametrize(
    ("rule", "kind"),
    [(without_nx, "double grant"), (without_owner, "double grant"), (without_release, "left-over key")],
)
def test_a_run_at_the_terminal_finds_a_server_that_does_not_do_what_a_lock_needs(
    given: SupervisedServer, tmp_path: Path, rule: Rule, kind: str, options: tuple[str, ...]
):
    with RewritingProxy(given.endpoint, rule) as proxy:
        proxy.is_on.set()
        done = run_at_the_terminal(tmp_path, proxy.url, *options)
    assert done.returncode == Exit.PROMISE_BROKEN, done.stdout + done.stderr
    assert kind in done.stdout + done.stderr
    [probe] = json.loads((tmp_path / "run" / "manifest.json").read_text())["probes"]
    assert (probe["verdict"], probe["promise_broken"]) == ("UNSAFE", True)
    assert kind in probe["reason"]
    report = (tmp_path / "run" / "report.md").read_text()
    assert "UNSAFE" in report
    assert kind in report


def carried_out(folder: Path, watch: Meddler, url: str) -> Outcome:
    """Three trials with contention, the lock honest until `watch` does something in the second one."""
    options = {"strategy": "mutex", "concurrency": "4", "trials": "3", "warmup": "0", "duration": "1s", "hold": "1ms"}
    return job.carry_out(Job(matrix_from_options(**options, redis=url), command=[], out=folder), watch=watch)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("befalls", ["restart", "end"])
def test_what_a_trial_proves_is_kept_when_its_server_fails_too(
    given: SupervisedServer, again: list[subprocess.Popen[bytes]], tmp_path: Path, befalls: str
):
    def act() -> None:
        proxy.is_on.set()
        # Until two have had one key: before the server fails, so that it cannot be the reason.
        time.sleep(0.2)
        if befalls == "restart":
            restart(given, again, tmp_path)
        else:
            os.kill(given.pid, signal.SIGKILL)

    with RewritingProxy(given.endpoint, without_nx) as proxy:
        outcome = carried_out(tmp_path / "run", Meddler(act), proxy.url)
    assert outcome.exit is Exit.PROMISE_BROKEN
    assert outcome.error is not None, "the error is told, too"
    trials = outcome.run.trials
    [disturbed] = [row for _, row in trials.iterrows() if row["status"] == "disturbed"]
    assert (disturbed["verdict"], disturbed["promise_broken"]) == ("UNSAFE", True)
    assert disturbed["double_grants"] > 0
    write_report(outcome.run)
    report = (tmp_path / "run" / "report.md").read_text()
    assert "double grant" in report
    assert f"The run ended early: {outcome.error.message}" in report
    recorded = (tmp_path / "run" / "violations.jsonl").read_text().splitlines()
    assert {json.loads(line)["kind"] for line in recorded} >= {"double-grant"}
