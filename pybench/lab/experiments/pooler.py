"""`pooler`: advisory locks of Postgres behind a pooler that lends a session for each transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from pybench.lab.clients import client_row
from pybench.lab.experiment import Experiment, Parameter
from pybench.lab.findings import Case, Expected, Figure
from pybench.strategies import Count

if TYPE_CHECKING:
    import psycopg

    from pybench.lab.stage import Stage
    from pybench.servers.postgres.endpoint import PostgresEndpoint

SESSION, TRANSACTION = "session", "transaction"
_TRY = {SESSION: "SELECT pg_try_advisory_lock(%s)", TRANSACTION: "SELECT pg_try_advisory_xact_lock(%s)"}
_EXPECTED = {SESSION: Expected.WRONG, TRANSACTION: Expected.RIGHT}


def _run(stage: Stage) -> Iterator[Case]:
    from pybench.errors import ServerError
    from pybench.lab.carrying_out import ToolMissing
    from pybench.servers.postgres import pooler

    try:
        pooler.find()
    except ServerError as error:
        raise ToolMissing(f"pybench lab pooler needs {pooler.PROGRAM}", hint=error.hint) from None
    server = stage.own_postgres()
    key = 0
    for scope in (SESSION, TRANSACTION):
        for case in (_together, _leaked):
            key += 1
            # Each case has a pooler of its own: sessions of the one before may keep locks.
            with pooler.pooler(server, sessions=stage.count("sessions")) as pooled:
                yield case(stage, scope, key, pooled, server)


def _together(stage: Stage, scope: str, key: int, pooled: PostgresEndpoint, server: PostgresEndpoint) -> Case:
    """Two clients ask for one lock through the pooler."""
    import time

    label = f"{scope}, two clients"
    stage.note(label)
    began = time.monotonic()
    with _connected(pooled) as first, _connected(pooled) as second, ExitStack() as transactions:
        if scope == TRANSACTION:
            transactions.enter_context(first.transaction())
            transactions.enter_context(second.transaction())
        granted = [_take(client, scope, key) for client in (first, second)]
        sessions = [_pid(client) for client in (first, second)]
    both = all(granted)
    rows = [client_row(began, locked=one, error=None if one else "Lock not acquired") for one in granted]
    return Case(
        label=label,
        strategy=None,
        expected=_EXPECTED[scope],
        went_wrong=both or not granted[0],
        sentence="the pooler lent both clients the same session, and a session gets its own lock again: both had it"
        if both
        else "each client had a session of its own until its transaction ended: the second was refused",
        figures=(
            Figure("first", "first client", _word(granted[0])),
            Figure("second", "second client", _word(granted[1])),
            Figure("sessions", "sessions that they used", len(set(sessions))),
            Figure("left", "lock left behind", _left(server, key)),
        ),
        clients=tuple(rows),
    )


def _leaked(stage: Stage, scope: str, key: int, pooled: PostgresEndpoint, server: PostgresEndpoint) -> Case:
    """A client closes its connection while it holds the lock."""
    import time

    label = f"{scope}, client gone"
    stage.note(label)
    began = time.monotonic()
    with _connected(pooled) as first, ExitStack() as transactions:
        if scope == TRANSACTION:
            transactions.enter_context(first.transaction())
        granted = _take(first, scope, key)
        first.close()
    is_free = lambda: _left(server, key) == "no"  # noqa: E731 - asked again and again
    if scope == TRANSACTION:
        stage.wait_until(is_free, what="the server ended the transaction of a client that is gone")
    left = _left(server, key)
    with _connected(server) as direct:
        next_has = _take(direct, SESSION, key)
    return Case(
        label=label,
        strategy=None,
        expected=_EXPECTED[scope],
        went_wrong=granted and not next_has,
        sentence="the client is gone, and its session lives on in the pooler with the lock: nobody gets it"
        if granted and not next_has
        else "with its connection the transaction of the client ended, and the lock was free",
        figures=(
            Figure("first", "first client", _word(granted)),
            Figure("second", "second client", _word(next_has)),
            Figure("left", "lock left behind", left),
        ),
        clients=(client_row(began, locked=granted), client_row(began, locked=next_has)),
    )


@contextmanager
def _connected(where: PostgresEndpoint) -> Iterator[psycopg.Connection[Any]]:
    import psycopg

    with psycopg.connect(
        host=where.folder,
        port=where.port,
        user=where.user,
        dbname=where.database,
        autocommit=True,
        # A statement that is prepared in one session is unknown in the next one.
        prepare_threshold=None,
    ) as connection:
        yield connection


def _take(client: psycopg.Connection[Any], scope: str, key: int) -> bool:
    row = client.execute(_TRY[scope].encode(), [key]).fetchone()
    return row is not None and bool(row[0])


def _pid(client: psycopg.Connection[Any]) -> int:
    row = client.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None, "a function has a result"
    return int(row[0])


def _left(server: PostgresEndpoint, key: int) -> str:
    """Whether a session of the server has the lock."""
    with _connected(server) as direct:
        found = direct.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s", [key]).fetchone()
    return "no" if found is None else "yes"


def _word(granted: bool) -> str:  # noqa: FBT001 - one fact, said in words
    return "held the lock" if granted else "refused"


POOLER = Experiment(
    name="pooler",
    summary="Advisory locks behind a pooler in transaction mode",
    steps=(
        "Clients reach Postgres through PgBouncer in transaction mode, which has {sessions} sessions for all of them.",
        "Two clients ask for one lock; then a client that holds it closes its connection.",
        "Session: pg_try_advisory_lock. Transaction: pg_try_advisory_xact_lock, within BEGIN.",
    ),
    learn="Behind a pooler in transaction mode a lock has to live in the transaction: the session is lent to others.",
    run=_run,
    harms_servers=True,
    parameters=(Parameter("sessions", Count(2, 100), "2", "Sessions of the pooler with the server."),),
)
