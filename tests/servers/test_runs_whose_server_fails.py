"""Whole runs whose server fails in the middle of a trial: one error that says what, and nothing measured is lost."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.planning import trial_spec
from pybench.records import load
from pybench.running import job, trial_servers
from pybench.running.job import Job, Outcome
from pybench.running.resume import matrix_of, open_run
from pybench.servers import read_figures, supervised
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.supervisor import SupervisedServer
from tests.redis_client import connect
from tests.servers.meddling import Meddler

PASSWORD = "s3cret-w0rd"


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def given() -> Iterator[SupervisedServer]:
    process, _ = supervisor.start(binaries.find("auto"), transport="tcp", password=SecretStr(PASSWORD))
    yield process
    process.stop()


def carried_out(folder: Path, watch: Meddler, url: str | None, strategy: str = "mutex") -> Outcome:
    options = {"strategy": strategy, "concurrency": "4", "trials": "3", "warmup": "0", "duration": "400ms"}
    matrix = matrix_from_options(**options, redis=url)
    return job.carry_out(Job(matrix, command=[], out=folder), watch=watch)


def url_of(server: SupervisedServer) -> str:
    return f"redis://:{PASSWORD}@127.0.0.1:{server.endpoint.port}/0"


def failed(outcome: Outcome) -> str:
    """The message of a run that ended after its first trial, which it must have kept."""
    assert outcome.exit is Exit.SERVER_UNREACHABLE
    assert outcome.error is not None
    assert outcome.error.hint
    assert "DIR" not in outcome.error.hint
    assert PASSWORD not in str(outcome.error)
    kept = load(outcome.run.path).trials
    assert (kept["status"] == "complete").any()
    assert set(kept["status"]) <= {"complete", "disturbed"}
    assert (kept["status"] == "complete").sum() < 3
    assert not kept["promise_broken"].any(), "no lock is blamed for its server"
    assert outcome.run.manifest["status"] == "interrupted"
    return outcome.error.message


def commands(*all_of_them: tuple[str, ...]) -> Callable[[SupervisedServer], None]:
    def act(server: SupervisedServer) -> None:
        with connect(server.endpoint) as client, client.pipeline(transaction=False) as pipe:
            for words in all_of_them:
                pipe.execute_command(*words)
            pipe.execute()

    return act


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (
            commands(("CONFIG", "SET", "maxmemory", "1")),
            r"is out of memory, .*: it refused [\d,]+ acquire calls of mutex: \"OOM ",
        ),
        (commands(("REPLICAOF", "127.0.0.1", "1")), "is a replica"),
        (
            commands(("CONFIG", "SET", "min-replicas-to-write", "1")),
            "has fewer replicas in step than its min-replicas-to-write asks for, and takes no writes: .*NOREPLICAS",
        ),
        (commands(("ACL", "SETUSER", "default", "resetpass", ">other")), "refuses this user and password"),
        (
            commands(("ACL", "SETUSER", "default", "-set")),
            "do what mutex needs: it refused .*NOPERM",
        ),
        (
            commands(("CONFIG", "SET", "maxclients", "1"), ("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")),
            "has no connection left|max number of clients reached",
        ),
        (lambda server: os.kill(server.pid, signal.SIGKILL), "nothing listens there; it was valkey"),
        (lambda server: os.kill(server.pid, signal.SIGSTOP), "does not answer within 500 ms; it was valkey"),
    ],
    ids=[
        "out of memory",
        "made a replica",
        "too few replicas",
        "another password",
        "fewer rights",
        "no connections",
        "killed",
        "stopped",
    ],
)
def test_a_given_server_that_fails_is_named_with_the_reason(given: SupervisedServer, tmp_path: Path, act, told: str):
    outcome = carried_out(tmp_path / "run", Meddler(lambda: act(given)), url_of(given))
    message = failed(outcome)
    assert re.search(told, message)
    assert f"127.0.0.1:{given.endpoint.port}" in message


def test_channels_that_a_user_may_no_longer_hear_are_named(given: SupervisedServer, tmp_path: Path):
    forbid = Meddler(lambda: commands(("ACL", "SETUSER", "default", "resetchannels"))(given))
    message = failed(carried_out(tmp_path / "run", forbid, url_of(given), "notify"))
    assert re.search("does not let this user do what notify needs: it refused .*NOPERM", message)
    assert "channel" in message


def test_a_run_goes_on_when_its_server_has_memory_again_and_leaves_no_key(given: SupervisedServer, tmp_path: Path):
    short = Meddler(lambda: commands(("CONFIG", "SET", "maxmemory", "1"))(given))
    before = carried_out(tmp_path / "run", short, url_of(given)).run.trials
    with connect(given.endpoint) as client:
        assert client.dbsize() == 0
        client.config_set("maxmemory", "0")
    opened = open_run(tmp_path / "run")
    after = job.carry_out(Job(matrix_of(opened, {"redis": [url_of(given)]}), command=[], resume=opened)).run.trials
    assert len(after) == 3
    assert set(before[before["status"] == "complete"]["started_at"]) < set(after["started_at"])


def test_the_keys_of_a_trial_are_removed_also_when_the_run_fails_with_it(given: SupervisedServer, tmp_path: Path):
    strays: list[bytes] = []

    def forbid() -> None:
        prefix = json.loads((tmp_path / "run" / "manifest.json").read_text())["key_prefix"]
        with connect(given.endpoint) as client:
            # How many trials came before this one is the run's own affair: its prefix is that of a key that it holds.
            while not strays:
                held = client.keys(f"{prefix}*")
                strays.extend(key.split(b"{")[0] + b"stray" for key in held)
            # Its lease would last an hour.
            client.set(strays[0], "held", px=3_600_000)
            client.execute_command("ACL", "SETUSER", "default", "-info")

    assert "NOPERM" in failed(carried_out(tmp_path / "run", Meddler(forbid), url_of(given)))
    assert strays
    with connect(given.endpoint) as client:
        assert client.dbsize() == 0


def test_a_given_server_that_is_restarted_under_its_holders_is_no_measurement(given: SupervisedServer, tmp_path: Path):
    again: list[subprocess.Popen[bytes]] = []

    def restart() -> None:
        os.kill(given.pid, signal.SIGKILL)
        arguments = ["--port", str(given.endpoint.port), "--save", "", "--requirepass", PASSWORD, "--bind", "127.0.0.1"]
        while given.is_running():
            time.sleep(0.001)
        again.append(subprocess.Popen([given.binary.path, *arguments], stdout=subprocess.DEVNULL, cwd=tmp_path))
        for _ in range(1000):
            try:
                with connect(given.endpoint) as client:
                    client.ping()
                    return
            except OSError:
                time.sleep(0.005)

    try:
        message = failed(carried_out(tmp_path / "run", Meddler(restart), url_of(given)))
    finally:
        again[0].kill()
        again[0].wait()
    assert "was restarted while it was being measured" in message


def test_a_server_that_hangs_for_a_while_is_noted(given: SupervisedServer, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(trial_spec, "REPLY_TIMEOUT_NS", 50_000_000)
    # On a busy machine a server that goes on takes its time.
    monkeypatch.setattr(trial_servers, "read_figures", functools.partial(read_figures, seconds=10.0))

    def hang() -> None:
        # Longer than clients wait for an answer, and shorter than the trial.
        os.kill(given.pid, signal.SIGSTOP)
        time.sleep(0.08)
        os.kill(given.pid, signal.SIGCONT)

    watch = Meddler(hang)
    outcome = carried_out(tmp_path / "run", watch, url_of(given))
    assert outcome.error is None
    assert len(outcome.run.trials) == 3
    assert any("got no reply" in note for note in watch.notes)


@pytest.mark.parametrize(
    ("victim", "told"),
    [
        (lambda server: server.pid, "was killed by SIGKILL"),
        (lambda server: server._keeper.pid, "ended with its keeper, which was killed by SIGKILL"),
    ],
    ids=["server", "keeper"],
)
def test_a_started_server_that_is_killed_is_told_with_how_it_ended(tmp_path: Path, victim, told: str):
    others = set(supervised.running)  # Those of fixtures that serve a whole session.

    def kill() -> None:
        [ours] = supervised.running - others
        os.kill(victim(ours), signal.SIGKILL)

    assert told in failed(carried_out(tmp_path / "run", Meddler(kill), None))
