"""Sessions of the core with a real Postgres: how they begin, what is said in them, and how they end."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pybench import _core
from tests.boundary import databases
from tests.boundary.databases import TABLE, Database, Watched, number_of, sessions_of
from tests.core_trials import MS, fixed, run_for_grants, trial_spec_of
from tests.waiting import wait_until

MakeSpec = Callable[..., dict[str, Any]]

LOCKS: list[tuple[str, dict[str, str]]] = [
    ("pg-advisory", {}),
    ("pg-advisory", {"wait": "try"}),
    ("pg-advisory", {"scope": "transaction"}),
    ("pg-advisory", {"scope": "transaction", "wait": "try"}),
    ("pg-row", {}),
    ("pg-row", {"wait": "nowait"}),
    ("pg-row", {"wait": "skip-locked"}),
    ("pg-lease", {}),
    ("pg-optimistic", {}),
    ("pg-serializable", {}),
]

EXCLUDE_NOBODY = {"pg-optimistic", "pg-serializable"}

REACHED_BY = ["unix", "tcp", "unnamed"]


@pytest.fixture
def make_spec(postgres: Database, request: pytest.FixtureRequest) -> MakeSpec:
    """The trial on a table of its own, under keys that carry the test's name."""

    def make(keys: int = 4, server: dict[str, Any] | None = None, **fields: object) -> dict[str, Any]:
        postgres.make_table(keys)
        server = server or postgres.core_spec()
        return trial_spec_of([server], **{"key_prefix": f"{request.node.name}:", "keys": keys, **fields})

    return make


@pytest.mark.parametrize("reached_by", REACHED_BY)
@pytest.mark.parametrize(("name", "args"), LOCKS)
def test_every_lock_is_granted_whatever_leads_to_the_server(make_spec, postgres, name, args, reached_by):
    server = postgres.core_spec(tcp=reached_by == "tcp", prepare="unnamed" if reached_by == "unnamed" else "named")
    result = run_for_grants(make_spec(server=server, strategy=name, args=args), 20)
    assert result.totals["grants"] > 20
    assert result.totals["errors"] == 0
    assert result.totals["unknown"] == 0
    if name not in EXCLUDE_NOBODY:
        assert result.totals["double_grants"] == 0
    # Also those that waited for a lock when the trial ended: it is theirs next, and they see that nobody is left.
    sessions_of(postgres, "pybench-test", until=lambda pids: not pids)


def test_a_lock_of_the_database_behind_one_of_redis(server, postgres):
    postgres.make_table(4)
    servers = [{**server.core_spec(), "compare_and_delete": "script"}, postgres.core_spec()]
    spec = trial_spec_of(servers, strategy="layered", keys=4, key_prefix="layered:")
    result = run_for_grants(spec, 20)
    assert result.totals["grants"] > 20
    assert result.totals["errors"] == 0


def test_clients_of_different_threads_exclude_each_other(make_spec):
    result = run_for_grants(make_spec(keys=1, strategy="pg-advisory", threads=2, hold=fixed(0.1)), 20)
    assert result.totals["grants"] > 20
    assert result.totals["double_grants"] == 0


def test_a_name_becomes_the_number_that_others_use_for_it(make_spec, postgres):
    spec = make_spec(keys=1, strategy="pg-advisory", args={"wait": "try"}, concurrency=1, key_prefix="shop:")
    with postgres.connect() as session:
        number = number_of("shop:{0}")
        session.execute(f"SELECT pg_advisory_lock({number})")
        assert _core.Trial(spec).run().totals["grants"] == 0
        session.execute(f"SELECT pg_advisory_unlock({number})")
    assert run_for_grants(spec, 0).totals["grants"] > 0


def test_what_a_session_is_told_to_set_is_set(make_spec, postgres):
    server = postgres.core_spec(settings={"lock_timeout": "20ms", "application_name": "given"})
    spec = make_spec(keys=1, server=server, strategy="pg-row", concurrency=1, duration_ns=300 * MS)
    with postgres.connect() as session, session.transaction():
        session.execute(f"SELECT FROM {TABLE} WHERE id = 0 FOR UPDATE")
        result = _core.Trial(spec).run()
    assert result.totals["grants"] == 0
    assert result.totals["timeouts"] > 3


def refused(spec: dict[str, Any]) -> str:
    with pytest.raises(_core.ConnectError) as caught:
        _core.Trial(spec).run()
    return str(caught.value)


def test_a_session_that_cannot_begin_is_refused_in_the_words_of_the_server(make_spec, postgres):
    def with_server(**fields: object) -> dict[str, Any]:
        return make_spec(strategy="pg-row", server=postgres.core_spec(**fields))

    words = refused(with_server(tcp=True, password="wrong-word"))
    assert "password authentication failed" in words
    assert "28P01" in words
    assert "wrong-word" not in words
    assert "asks for a password, and none was given" in refused(with_server(tcp=True, password=None))
    assert "3D000" in refused(with_server(database="nowhere"))
    assert "28000" in refused(with_server(user="nobody-known"))
    assert 'unrecognized configuration parameter "no_such"' in refused(with_server(settings={"no_such": "1"}))
    words = refused(with_server(table='"nowhere"."locks"'))
    assert 'prepare `SELECT id FROM "nowhere"."locks"' in words
    assert "42P01" in words
    with pytest.raises(_core.ConnectError) as caught:
        _core.Trial(with_server(table='"nowhere"."locks"')).run()
    assert caught.value.refusal is not None
    assert caught.value.refusal[1].startswith("to prepare `SELECT id")
    assert caught.value.refusal[2] == "42P01"


@pytest.fixture
def few(postgres) -> Iterator[dict[str, Any]]:
    """The server for a user who may have no more than 12 sessions."""
    with postgres.connect() as session:
        session.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 12")
        yield postgres.core_spec(user="few")
        sessions_of(postgres, "pybench-test", until=lambda pids: not pids)
        session.execute("DROP ROLE few")


def test_too_many_sessions_are_refused_with_the_reason(make_spec, few):
    words = refused(make_spec(server=few, strategy="pg-advisory", concurrency=20))
    assert "too many connections" in words
    assert "53300" in words


def test_a_session_that_finds_no_room_waits_a_moment_for_it(postgres, few):
    refused_before = postgres.log.count("too many connections")
    address = {"host": str(Path(few["unix"]).parent), "port": few["port"], "user": "few", "dbname": few["database"]}
    with contextlib.ExitStack() as others:
        for _ in range(8):
            others.enter_context(psycopg.connect(**address))
        # Not `Watched`, which asks the server itself.
        trial = _core.Trial(trial_spec_of([few], strategy="pg-advisory", keys=4))
        totals: list[Any] = []
        thread = threading.Thread(target=lambda: totals.append(trial.run().totals))
        thread.start()
        wait_until(lambda: postgres.log.count("too many connections") > refused_before, "one finds no room")
    thread.join()
    assert totals[0]["all_grants"] > 0


def test_a_hundred_sessions_come_to_stand_also_with_passwords():
    with databases.running(sessions=100) as postgres:
        # Those of the first trial may still be ending when those of the second begin.
        for tcp in (False, True):
            server = postgres.core_spec(tcp=tcp)
            spec = trial_spec_of([server], strategy="pg-advisory", args={"wait": "try"}, keys=200, concurrency=100)
            assert run_for_grants(spec, 100).totals["grants"] > 100


def test_a_lock_is_given_no_server_of_the_other_kind(server, make_spec):
    redis = server.core_spec()
    with pytest.raises(ValueError, match="servers"):
        _core.Trial(make_spec(strategy="mutex"))
    with pytest.raises(ValueError, match="servers"):
        _core.Trial(make_spec(strategy="pg-row", server={**redis, "compare_and_delete": "script"}))


def test_a_session_that_is_ended_from_outside_is_opened_again(postgres):
    watched = Watched(postgres, strategy="pg-advisory")
    victim = min(watched.sessions())
    with postgres.connect() as session:
        session.execute("SELECT pg_terminate_backend(%s, 5000)", [victim])
    assert victim not in watched.sessions()
    result = watched.finish()
    assert result.totals["reconnects"] == 1
    assert result.totals["lost_calls"] <= 1


def test_a_server_that_starts_again_is_found_again():
    with databases.running() as postgres:
        watched = Watched(postgres, strategy="pg-row")
        before = watched.sessions()
        postgres.stop(signal.SIGQUIT)
        postgres.start()
        assert not before & watched.sessions()
        result = watched.finish()
    assert result.totals["reconnects"] == 8


def test_sessions_end_as_the_protocol_has_it():
    with databases.running() as postgres:
        postgres.make_table(4)
        server = postgres.core_spec()
        _core.Trial(trial_spec_of([server], strategy="pg-lease", keys=4)).run()
        postgres.stop()  # waits for all sessions, and writes what they counted
        postgres.start()
        with postgres.connect() as session:
            sql = "SELECT sessions, sessions_abandoned FROM pg_stat_database WHERE datname = 'postgres'"
            [sessions, abandoned] = session.execute(sql).fetchone() or [0, 0]
    assert sessions >= 2
    assert abandoned == 0
