"""Locks of a database behind a pooler that lends sessions by the transaction: which stay whole, and which do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pybench import _core
from pybench.servers.postgres.pooler import pooler
from tests.boundary import databases
from tests.boundary.databases import Database
from tests.core_trials import MS, fixed, run_for_grants, trial_spec_of
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pybench.core_specs import TrialSpec

KEYS = 2

WHOLE: list[tuple[str, dict[str, str]]] = [
    ("pg-advisory", {"scope": "transaction"}),
    ("pg-advisory", {"scope": "transaction", "wait": "try"}),
    ("pg-row", {}),
    ("pg-row", {"wait": "nowait"}),
    ("pg-row", {"wait": "skip-locked"}),
    ("pg-lease", {}),
    ("pg-optimistic", {}),
    ("pg-serializable", {}),
]


@pytest.fixture
def pooled() -> Iterator[tuple[Database, dict[str, Any]]]:
    """A server of its own, whose sessions the pooler keeps, and how the core reaches it."""
    with databases.running() as database, pooler(database.process.private) as endpoint:
        database.make_table(KEYS)
        yield database, database.core_spec(unix=endpoint.unix, port=endpoint.port, prepare="unnamed")


def spec_of(server: dict[str, Any], name: str, args: dict[str, str]) -> TrialSpec:
    return trial_spec_of([server], strategy=name, args=args, keys=KEYS, hold=fixed(1))


def totals_of(server: dict[str, Any], name: str, args: dict[str, str]) -> dict[str, int]:
    """Of as many grants as show something, however long they take."""
    return run_for_grants(spec_of(server, name, args), 40).totals


def test_a_lock_of_a_session_that_is_lent_excludes_nobody_is_not_held_and_stays(pooled):
    database, server = pooled
    spec = spec_of(server, "pg-advisory", {"wait": "try"}) | {"duration_ns": 500 * MS}
    totals: Counter[str] = Counter()

    def shown() -> bool:
        # Where a session that is no longer lent has kept both locks, nobody gets them: each trial begins with new ones.
        with database.connect() as session:
            session.execute("SELECT pg_terminate_backend(pid, 20000) FROM pg_locks WHERE locktype = 'advisory'")
        totals.update(_core.Trial(spec).run().totals)
        totals["stay"] += database.advisory_locks()
        # An unlock that went to another session: false, which is an error, and counted.
        return bool(totals["double_grants"] and totals["lost"] and totals["stay"])

    wait_until(shown, "it excludes nobody, is not held, and stays")
    assert totals["errors"] == totals["unknown"] == 0


def test_locks_of_transactions_and_of_rows_stay_whole(pooled):
    database, server = pooled
    for name, args in WHOLE:
        database.make_table(KEYS)
        totals = totals_of(server, name, args)
        told = f"{name} {args}: {totals}"
        assert totals["grants"] > 10, told
        wrong = ("double_grants", "stale_fences", "lost", "lapsed", "errors", "unknown", "lost_calls")
        assert not {kind: totals[kind] for kind in wrong if totals[kind]}, told
        # A stop waits for 100 ms. Where the machine had no time for the server then, clients were still at work.
        if not totals["abandoned"]:
            assert database.effects().values == totals["acknowledged_writes"], told
            assert database.effects().owned == 0, told
    wait_until(lambda: database.advisory_locks() == 0, "no lock is left")


def test_what_a_pooler_takes_from_no_session_is_refused_in_its_words(pooled):
    _, server = pooled
    for fields, words in (
        ({"settings": {"lock_timeout": "10"}}, "unsupported startup parameter: lock_timeout"),
        # By another client, in the session that is lent to this one now.
        ({"prepare": "named"}, 'prepared statement "0" already exists (42P05)'),
    ):
        with pytest.raises(_core.ConnectError) as refused:
            _core.Trial(spec_of({**server, **fields}, "pg-row", {})).run()
        assert words in str(refused.value)
