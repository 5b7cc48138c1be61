"""A server that goes away under its clients and comes back: shut down and started again on its data, or all of its
sessions ended because one of its processes crashed. Each trial goes on until it has granted again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pybench.errors import ServerError
from tests.boundary import databases
from tests.boundary.databases import SCHEMA, Database, Watched, sessions_of
from tests.core_trials import fixed
from tests.waiting import wait_until

LOCKS = ["pg-advisory", "pg-row", "pg-lease", "pg-optimistic", "pg-serializable"]
TTL_MS = 300
"""A lease that was cut off in its hold is over soon."""
RECOVERS = "all server processes terminated; reinitializing"


@pytest.fixture(scope="module")
def restarted() -> Iterator[Database]:
    """One that these tests may stop, start and crash."""
    with databases.running() as database:
        yield database


def shut_down(database: Database) -> None:
    database.stop(signal.SIGINT)
    database.start()


def crash(database: Database) -> None:
    """One of the trial's processes: the server ends all others, too, and recovers by itself."""
    started = "SELECT pg_postmaster_start_time()"
    with database.connect() as session:
        before = session.execute(started).fetchone()
    recovered = database.log.count(RECOVERS)
    os.kill(min(sessions_of(database, "watched", until=bool)), signal.SIGKILL)
    wait_until(lambda: database.log.count(RECOVERS) > recovered, "the server recovers")
    wait_until(lambda: _answers(database), "the server takes sessions")
    with database.connect() as session:
        assert session.execute(started).fetchone() == before


def _answers(database: Database) -> bool:
    try:
        database.connect().close()
    except ServerError:
        return False
    return True


@pytest.mark.parametrize("goes", [shut_down, crash])
@pytest.mark.parametrize("name", LOCKS)
def test_a_trial_outlives_a_server_that_restarts_under_load(
    restarted: Database, name: str, goes: Callable[[Database], None]
):
    asked: dict[str, Any] = {"strategy": name, "keys": 2, "warmup_ns": 0, "hold": fixed(2), "ttl_ms": TTL_MS}
    with Watched(restarted, **asked) as watched:
        watched.await_grants()
        before = restarted.effects()
        goes(restarted)
        watched.await_grants()
        totals = watched.totals()
    after = restarted.effects()
    assert totals["reconnects"] > 0
    assert totals["double_grants"] == totals["stale_fences"] == 0
    # What was acknowledged outlasts the server, and fences begin where they were.
    assert totals["acknowledged_writes"] <= after.values <= totals["acknowledged_writes"] + totals["unknown_writes"]
    if name == "pg-lease":
        assert after.fences > before.fences > 0
        assert totals["all_grants"] <= after.fences <= totals["all_grants"] + totals["unknown"] + totals["lost_calls"]
    wait_until(lambda: not sessions_of(restarted, "watched", until=lambda _: True), "no session is left")
    assert restarted.advisory_locks() == 0
    with restarted.connect() as session:
        assert session.execute(f'SELECT count(*) FROM "{SCHEMA}"."locks"').fetchone() == (2,)
