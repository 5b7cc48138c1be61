"""Sessions of the core with a real Postgres: how they begin, what is said in them, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pybench import _core
from tests.boundary import postgres_server
from tests.boundary.postgres_server import Postgres
from tests.core_trials import MS, fixed, trial_spec_of

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

REACHED_BY = ["unix", "tcp", "unnamed"]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with postgres_server.running(max_connections=40) as server:
        yield server


@pytest.fixture
def make_spec(postgres: Postgres, request: pytest.FixtureRequest) -> Any:
    """The trial on a table of its own, under keys that carry the test's name."""

    def make(keys: int = 4, server: dict[str, Any] | None = None, **fields: object) -> Any:
        postgres.make_table(keys)
        server = server or postgres.core_spec()
        return trial_spec_of([server], **{"key_prefix": f"{request.node.name}:", "keys": keys, **fields})

    return make


def in_background(trial: Any) -> threading.Thread:
    def run() -> None:
        trial.result = trial.run()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


class Watched:
    """A trial in the background, and how many sessions of it there are."""

    def __init__(self, postgres: Postgres, spec: Any) -> None:
        self.trial = _core.Trial(spec)
        self.postgres = postgres
        self.name = spec["client_name"]
        self.result: _core.TrialResult | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        self.result = self.trial.run()

    def finish(self) -> _core.TrialResult:
        self.thread.join()
        assert self.result is not None
        return self.result


@pytest.mark.parametrize("reached_by", REACHED_BY)
@pytest.mark.parametrize(("name", "args"), LOCKS)
def test_every_lock_is_granted_whatever_leads_to_the_server(make_spec, postgres, name, args, reached_by):
    server = postgres.core_spec(tcp=reached_by == "tcp", prepare="unnamed" if reached_by == "unnamed" else "named")
    result = _core.Trial(make_spec(server=server, strategy=name, args=args)).run()
    assert result.totals["grants"] > 20
    assert result.totals["errors"] == 0
    assert result.totals["unknown"] == 0
    assert result.totals["double_grants"] == 0
    with postgres.connect() as session:
        left = session.execute("SELECT count(*) FROM pg_locks WHERE locktype IN ('advisory', 'tuple')").fetchone()
    assert left == (0,)


def test_a_lock_of_the_database_behind_one_of_redis(server, postgres):
    postgres.make_table(4)
    servers = [{**server.core_spec(), "compare_and_delete": "script"}, postgres.core_spec()]
    spec = trial_spec_of(servers, strategy="layered", keys=4, key_prefix="layered:")
    result = _core.Trial(spec).run()
    assert result.totals["grants"] > 20
    assert result.totals["errors"] == 0


def test_clients_of_different_threads_exclude_each_other(make_spec):
    result = _core.Trial(make_spec(keys=1, strategy="pg-advisory", threads=2, hold=fixed(0.1))).run()
    assert result.totals["grants"] > 20
    assert result.totals["double_grants"] == 0


def test_a_name_becomes_the_number_that_others_use_for_it(make_spec, postgres):
    spec = make_spec(keys=1, strategy="pg-advisory", args={"wait": "try"}, concurrency=1, key_prefix="shop:")
    with postgres.connect() as session:
        number = "('x' || left(encode(sha256('shop:{0}'), 'hex'), 16))::bit(64)::bigint"
        session.execute(f"SELECT pg_advisory_lock({number})")
        assert _core.Trial(spec).run().totals["grants"] == 0
        session.execute(f"SELECT pg_advisory_unlock({number})")
    assert _core.Trial(spec).run().totals["grants"] > 0


def test_what_a_session_is_told_to_set_is_set(make_spec, postgres):
    server = postgres.core_spec(settings={"lock_timeout": "20ms", "application_name": "given"})
    spec = make_spec(keys=1, server=server, strategy="pg-row", concurrency=1, duration_ns=300 * MS)
    with postgres.connect() as session, session.transaction():
        session.execute(f"SELECT FROM {postgres_server.TABLE} WHERE id = 0 FOR UPDATE")
        result = _core.Trial(spec).run()
    assert result.totals["grants"] == 0
    assert result.totals["timeouts"] > 3


def refused(spec: Any) -> str:
    with pytest.raises(_core.ConnectError) as caught:
        _core.Trial(spec).run()
    return str(caught.value)


def test_a_session_that_cannot_begin_is_refused_in_the_words_of_the_server(make_spec, postgres):
    def with_server(**fields: Any) -> Any:
        return make_spec(strategy="pg-row", server=postgres.core_spec(**fields))

    words = refused(with_server(tcp=True, password="wrong-word"))
    assert "password authentication failed" in words
    assert "28P01" in words
    assert "wrong-word" not in words
    assert "asks for a password, and none was given" in refused(with_server(tcp=True, password=None))
    assert "3D000" in refused(with_server(database="nowhere"))
    assert "28000" in refused(with_server(user="nobody-known"))
    assert 'unrecognized configuration parameter "no_such"' in refused(with_server(settings={"no_such": "1"}))
    words = refused(with_server(table='"test"."absent"'))
    assert 'prepare `SELECT id FROM "test"."absent"' in words
    assert "42P01" in words


def test_too_many_sessions_are_refused_with_the_reason(make_spec):
    words = refused(make_spec(strategy="pg-advisory", concurrency=60))
    assert "too many clients" in words
    assert "53300" in words


def test_a_hundred_sessions_come_to_stand_also_with_passwords():
    with postgres_server.running(max_connections=110) as postgres:
        postgres.make_table(8)
        server = postgres.core_spec(tcp=True)
        spec = trial_spec_of([server], strategy="pg-advisory", keys=8, key_prefix="many:", concurrency=100)
        for _ in range(2):  # the sessions of the first may still be ending when those of the second begin
            assert _core.Trial(spec).run().totals["grants"] > 100


def test_a_lock_is_given_no_server_of_the_other_kind(server, make_spec):
    redis = server.core_spec()
    with pytest.raises(ValueError, match="servers"):
        _core.Trial(make_spec(strategy="mutex"))
    with pytest.raises(ValueError, match="servers"):
        _core.Trial(make_spec(strategy="pg-row", server={**redis, "compare_and_delete": "script"}))


def wait_for(postgres: Postgres, name: str, count: int) -> list[int]:
    """The processes of the sessions of that name, once there are so many."""
    with postgres.connect() as session:
        while True:
            rows = session.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", [name]).fetchall()
            if len(rows) >= count:
                return [pid for (pid,) in rows]


def test_a_session_that_is_ended_from_outside_is_opened_again(make_spec, postgres):
    spec = make_spec(strategy="pg-advisory", client_name="ended", hold=fixed(1), duration_ns=600 * MS)
    watched = Watched(postgres, spec)
    victim = wait_for(postgres, "ended", 8)[0]
    with postgres.connect() as session:
        session.execute("SELECT pg_terminate_backend(%s, 5000)", [victim])
    pids = wait_for(postgres, "ended", 8)
    result = watched.finish()
    assert victim not in pids
    assert result.totals["reconnects"] == 1
    assert result.totals["grants"] > 50


def test_a_server_that_starts_again_is_found_again():
    with postgres_server.running() as postgres:
        postgres.make_table(4)
        spec = trial_spec_of(
            [postgres.core_spec()],
            strategy="pg-row",
            keys=4,
            key_prefix="again:",
            client_name="again",
            hold=fixed(1),
            duration_ns=3_000 * MS,
        )
        watched = Watched(postgres, spec)
        wait_for(postgres, "again", 8)
        postgres.stop("immediate")
        postgres.start()
        wait_for(postgres, "again", 8)
        result = watched.finish()
        assert result.totals["reconnects"] == 8
        assert result.totals["grants"] > 100


def test_sessions_end_as_the_protocol_has_it(make_spec, postgres):
    def abandoned() -> Any:
        with postgres.connect() as session:
            session.execute("SELECT pg_stat_clear_snapshot()")
            sql = "SELECT sessions_abandoned FROM pg_stat_database WHERE datname = 'postgres'"
            return session.execute(sql).fetchone()

    before = abandoned()
    _core.Trial(make_spec(strategy="pg-row")).run()
    while True:
        with postgres.connect() as session:
            [count] = session.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pybench-test'"
            ).fetchone() or [0]
        if count == 0:
            break
    assert abandoned() == before
