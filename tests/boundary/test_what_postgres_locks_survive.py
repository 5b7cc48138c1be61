"""What locks of a database must survive of a real server in the middle of a trial: sessions that end, waits that end
just as they are granted, rows that are locked crosswise. Each trial goes on until it has granted again."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pybench import _core
from pybench.servers.postgres import locks_left
from tests.boundary.databases import SCHEMA, TABLE, Database, Watched, number_of
from tests.core_trials import MS, fixed, run_for_grants, trial_spec_of
from tests.waiting import wait_until

BY_SESSION: list[tuple[str, dict[str, str]]] = [
    ("pg-advisory", {}),
    ("pg-advisory", {"wait": "try"}),
    ("pg-advisory", {"scope": "transaction"}),
    ("pg-row", {}),
]
IN_TRANSACTION: list[tuple[str, dict[str, str]]] = [
    ("pg-advisory", {"scope": "transaction"}),
    ("pg-row", {}),
    ("pg-row", {"wait": "skip-locked"}),
]

# Of those that hold, the row's by its open transaction.
HOLDERS = """
SELECT a.pid FROM pg_stat_activity a WHERE a.application_name = 'watched' AND (
    EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted)
    OR a.state = 'idle in transaction' AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory'))
"""


def handoffs(result: _core.TrialResult) -> int:
    """How many were measured: from the point at which a key was free to its next grant."""
    return sum(row.count for row in result.histograms if row.phase == "handoff")


def nothing_is_left(postgres: Database) -> bool:
    with postgres.connect() as session:
        return locks_left(session, SCHEMA, "watched") == [] and not postgres.advisory_locks()


@pytest.mark.parametrize(("name", "args"), BY_SESSION)
def test_a_holder_whose_session_is_terminated_is_told_and_another_has_the_lock(postgres: Database, name, args):
    # Whoever holds goes on for a minute, unless it is told: each grant but the first is owed to an end of a session.
    ended = 5
    asked: dict[str, Any] = {"strategy": name, "args": args, "keys": 1, "warmup_ns": 0}
    with Watched(postgres, **asked, hold=fixed(60_000), after_lease="stop") as watched, postgres.connect() as session:
        for grants in range(1, ended + 2):
            # Only who was answered is a holder: a session that ends before its answer is sent takes no grant with it.
            wait_until(lambda grants=grants: watched.trial.progress().grants == grants, "another has the lock")
            if grants <= ended:
                (pid,) = session.execute(HOLDERS).fetchone()
                assert session.execute("SELECT pg_terminate_backend(%s, 20000)", (pid,)).fetchone() == (True,)
        result = watched.finish()
    totals = result.totals
    assert totals["grants"] == ended + 1
    assert totals["lapsed"] == totals["reconnects"] == ended
    assert totals["double_grants"] == totals["errors"] == 0
    # How soon is measured, but where the next had it before the holder was told.
    assert handoffs(result) + totals["sessions_lost"] == ended
    wait_until(lambda: nothing_is_left(postgres), "no lock is left")


@pytest.mark.parametrize(("name", "args"), IN_TRANSACTION)
def test_a_transaction_that_is_idle_for_too_long_ends_the_hold_and_its_holder_is_told(postgres: Database, name, args):
    server = postgres.core_spec(settings={"idle_in_transaction_session_timeout": "20ms"})
    asked: dict[str, Any] = {"strategy": name, "args": args, "keys": 2, "warmup_ns": 0}
    with Watched(postgres, server=server, **asked, hold=fixed(60_000), after_lease="stop") as watched:
        watched.await_grants()
        totals = watched.totals()
    # All but those who hold at the end.
    assert totals["lapsed"] >= totals["all_grants"] - 2 > 0
    assert totals["double_grants"] == totals["errors"] == 0
    wait_until(lambda: nothing_is_left(postgres), "no lock is left")


def test_a_serializable_work_that_is_idle_for_too_long_is_lost_and_writes_nothing(postgres: Database):
    server = postgres.core_spec(settings={"idle_in_transaction_session_timeout": "20ms"})
    asked: dict[str, Any] = {"strategy": "pg-serializable", "warmup_ns": 0, "hold": fixed(100)}
    with Watched(postgres, server=server, **asked) as watched:
        wait_until(lambda: watched.trial.progress().reconnects > 16, "sessions end")
        totals = watched.totals()
    assert totals["lost"] > 8
    assert totals["grants"] == totals["errors"] == 0
    # The stop lets those write who are at work then.
    assert totals["acknowledged_writes"] <= postgres.effects().values <= 8


STRANGER: dict[str, str] = {
    "pg-advisory": f"BEGIN; SELECT pg_advisory_xact_lock({number_of('watched:{0}')}); COMMIT",
    "pg-row": f"BEGIN; SELECT FROM {TABLE} WHERE id = 0 FOR UPDATE; COMMIT",
}


@pytest.mark.parametrize(("name", "args"), [*BY_SESSION[::2], BY_SESSION[3]])
def test_a_wait_that_ends_just_as_it_is_granted_leaves_no_lock_that_nobody_holds(postgres: Database, name, args):
    # Whoever waits from the beginning of a hold gives up at its end. The one who is passed over would hold it for ever.
    server = postgres.core_spec(settings={"lock_timeout": "5ms"})
    asked: dict[str, Any] = {"strategy": name, "args": args, "keys": 1, "hold": fixed(5)}
    with Watched(postgres, server=server, **asked) as watched, postgres.connect() as stranger:
        stranger.execute("SET lock_timeout = '10s'")
        watched.await_grants()
        for _ in range(100):
            stranger.execute(STRANGER[name])
        totals = watched.totals()
    assert totals["timeouts"] > 50
    assert totals["double_grants"] == totals["errors"] == 0
    # A server that is late ends a transaction for its wait after it has said that the lock is granted, and tells so.
    assert totals["lost"] == totals["lapsed"]
    wait_until(lambda: nothing_is_left(postgres), "no lock is left")


CANCEL_WAITERS = """
SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'watched' AND wait_event_type = 'Lock'
"""


@pytest.mark.parametrize(("name", "args"), [*BY_SESSION[::2], BY_SESSION[3]])
def test_a_wait_that_somebody_cancels_is_over_and_no_error(postgres: Database, name, args):
    # What Postgres says, too, of a wait whose limit passes just as it is granted.
    asked: dict[str, Any] = {"strategy": name, "args": args, "keys": 1, "hold": fixed(20), "warmup_ns": 0}
    cancelled = 0
    with Watched(postgres, **asked) as watched, postgres.connect() as session:
        while cancelled < 50:
            cancelled += len(session.execute(CANCEL_WAITERS).fetchall())
            time.sleep(0.01)
        totals = watched.totals()
    # A signal may come when the wait it was meant for is over, and two that come before the first is handled are one.
    assert 10 < totals["timeouts"] <= cancelled
    assert totals["double_grants"] == totals["errors"] == 0
    wait_until(lambda: nothing_is_left(postgres), "no lock is left")


@pytest.mark.parametrize("order", ["random", "sorted"])
def test_rows_that_are_locked_crosswise_are_a_conflict_and_tried_again(postgres: Database, order):
    postgres.make_table(3)
    server = postgres.core_spec(settings={"deadlock_timeout": "5ms"})
    asked = {"strategy": "pg-row", "keys": 3, "keys_per_grant": 2, "key_order": order, "hold": fixed(1)}
    totals = _core.Trial(trial_spec_of([server], **asked, duration_ns=500 * MS)).run().totals
    assert totals["grants"] > 20
    assert totals["double_grants"] == totals["errors"] == totals["timeouts"] == totals["refused"] == 0
    assert (totals["conflicts"] > 0) == (order == "random")
    assert (totals["refused_attempts"] > 0) == (order == "random")


def test_two_clients_of_one_session_both_have_the_lock(postgres: Database):
    shared = {"strategy": "pg-advisory", "args": {"session": "shared", "wait": "try"}}
    spec = trial_spec_of([postgres.core_spec()], **shared, connections={"kind": "shared", "count": 1}, hold=fixed(1))
    assert run_for_grants(spec, 60).totals["double_grants"] > 20
