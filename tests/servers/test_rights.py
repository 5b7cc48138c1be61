"""Users with fewer rights: the listed ones are enough for each lock, and a missing one is named before any load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.doctor import Finding, Level
from pybench.doctor.locks import examine_locks
from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.running import job
from pybench.running.job import Job, Outcome
from pybench.running.preflight import try_locks
from pybench.servers import ServerPool
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.supervisor import SupervisedServer
from pybench.servers.rights import COMMANDS, redis_rights
from pybench.strategies import CATALOGUE, ServerKind
from tests.redis_client import connect
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("quick")

ON_REDIS = [name for name, strategy in CATALOGUE.items() if strategy.server_kinds == (ServerKind.REDIS,)]
ON_ONE_REDIS = [name for name in ON_REDIS if CATALOGUE[name].servers_of_kind(ServerKind.REDIS, ()) == 1]


@pytest.fixture(scope="module")
def given() -> Iterator[SupervisedServer]:
    process, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    yield process
    process.stop()


def run_as_user(given: SupervisedServer, rules: str, folder: Path, strategy: str) -> Outcome:
    with connect(given.endpoint) as client:
        client.execute_command("ACL", "SETUSER", "lab", "reset", "on", ">pw", *rules.split())
    url = f"redis://lab:pw@127.0.0.1:{given.endpoint.port}/0"
    options = {"concurrency": "2", "trials": "1", "warmup": "0", "duration": "300ms", "hold": "1ms"}
    matrix = matrix_from_options(strategy=strategy, redis=url, **options)
    return job.carry_out(Job(matrix, command=[], out=folder))


def test_the_rights_of_every_lock_on_redis_are_listed():
    assert set(COMMANDS) == {name for name, one in CATALOGUE.items() if ServerKind.REDIS in one.server_kinds} | {"none"}


@pytest.mark.parametrize("strategy", [name for name in ON_ONE_REDIS if name not in ("none", "replicated")])
def test_a_user_with_the_listed_rights_measures_the_lock(given: SupervisedServer, tmp_path: Path, strategy: str):
    outcome = run_as_user(given, redis_rights(strategy), tmp_path / "run", strategy)
    assert outcome.error is None
    assert outcome.run.trials["error_reply_count"].sum() == 0
    assert outcome.run.trials["grants"].sum() > 0
    with connect(given.endpoint) as client:
        assert client.dbsize() == 0


@pytest.mark.parametrize(
    ("strategy", "without", "phase"),
    [
        ("mutex", "-eval -evalsha", "release call"),
        ("watchdog", "-pexpire", "renewal call"),
        ("notify", "resetchannels", "call"),
        ("fenced", "-script|load", "SCRIPT LOAD"),
    ],
)
def test_a_right_that_is_missing_is_named_before_any_load(
    given: SupervisedServer, tmp_path: Path, strategy: str, without: str, phase: str
):
    outcome = run_as_user(given, f"{redis_rights(strategy)} {without}", tmp_path / "run", strategy)
    assert outcome.exit is Exit.SERVER_UNREACHABLE
    assert outcome.error is not None
    assert len(outcome.run.trials) == 0
    assert f"does not let this user do what {strategy} needs" in outcome.error.message
    assert phase in outcome.error.message
    assert "log-in" not in outcome.error.message
    assert outcome.error.hint == f"ACL SETUSER lab {redis_rights(strategy)}"


@pytest.mark.parametrize("missing", ["rename", "copy"])
def test_a_right_that_only_waiting_clients_need_is_named_and_costs_nobody_a_place(
    given: SupervisedServer, tmp_path: Path, missing: str
):
    """In a queue the refusal must not pass for a dead waiter."""
    rules = f"{redis_rights('fair-queue')} -{missing}"
    outcome = run_as_user(given, rules, tmp_path / "run", "fair-queue")
    assert outcome.exit is Exit.SERVER_UNREACHABLE
    assert outcome.error is not None
    assert "fair-queue" in outcome.error.message
    assert redis_rights("fair-queue") in (outcome.error.hint or "")


def test_the_doctor_says_which_locks_a_user_may_use_and_which_right_is_missing(given: SupervisedServer):
    url = f"redis://lab:pw@127.0.0.1:{given.endpoint.port}/0"

    def found(rules: str) -> list[Finding]:
        with connect(given.endpoint) as client:
            client.execute_command("ACL", "SETUSER", "lab", "reset", "on", ">pw", *rules.split())
        findings: list[Finding] = []

        def examined() -> bool:
            # A server that a busy machine keeps waiting is silent for longer than the doctor waits.
            findings[:] = examine_locks([url], [])
            return not any("does not answer within" in finding.what for finding in findings)

        wait_until(examined, "the server answers the doctor in time", seconds=60)
        with connect(given.endpoint) as client:
            assert client.dbsize() == 0
        return findings

    usable, first, *_, others = found("~pybench:* &* +@all -eval -evalsha")
    assert (usable.level, first.level, others.level) == (Level.OK, Level.WARN, Level.WARN)
    # A server that has a command of its own for it deletes a mutex without a script.
    assert "can be used on the given servers: naive" in usable.what
    assert "reentrant" not in usable.what
    assert "cannot be used: " in first.what
    assert "NOPERM" in first.what
    assert "+evalsha" in (first.hint or "")
    assert others.what.endswith(" cannot be used either")
    (all_of_them,) = found("~pybench:* &* +@all")
    assert all_of_them.level is Level.OK
    assert "fair-queue, notify" in all_of_them.what


def test_the_doctor_tries_no_lock_where_no_server_is_given_or_it_does_not_answer():
    assert list(examine_locks([], [])) == []
    assert list(examine_locks(["redis://127.0.0.1:1"], [])) == []


def test_a_plan_tries_each_of_its_locks_on_given_servers_alone(given: SupervisedServer):
    url = f"redis://127.0.0.1:{given.endpoint.port}/0"
    matrix = matrix_from_options(strategy="mutex,fenced,pg-row", redis=url)
    assert try_locks(matrix) == [("mutex", None), ("fenced", None)]
    assert try_locks(matrix_from_options(strategy="mutex")) == []


def test_a_plan_starts_no_server_for_a_guarded_resource(given: SupervisedServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(ServerPool, "postgres")
    url = f"redis://127.0.0.1:{given.endpoint.port}/0"
    matrix = matrix_from_options(strategy="mutex,atomic", guard="counter", guard_on="postgres", redis=url)
    assert try_locks(matrix) == [("mutex", None)]
