"""The counters of a Postgres, and their increase between two readings.

A reading is a session with a few statements, which the counters include. A session adds to the counters once a second
and when it ends: read them after the end of the sessions of a trial (`await_sessions_gone`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import Any

from pybench.errors import LocksGone, ServerError
from pybench.servers.connection import ANSWER_S
from pybench.servers.postgres import cpu
from pybench.servers.postgres.connecting import Session
from pybench.servers.postgres.server import PostgresServer

_QUERY = """
SELECT extract(epoch FROM pg_postmaster_start_time())::text,
       coalesce(extract(epoch FROM d.stats_reset)::text, ''),
       d.xact_commit, d.xact_rollback, d.deadlocks, d.tup_returned, d.tup_fetched, d.tup_inserted, d.tup_updated,
       d.tup_deleted, d.blks_hit, d.blks_read, d.temp_files, d.temp_bytes,
       pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
FROM pg_stat_database d WHERE d.datname = current_database()
"""

_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, %s) AND pid <> pg_backend_pid()"


@dataclass(frozen=True, slots=True)
class PostgresFigures:
    """Counters of the database since they were reset, or their increase between two readings."""

    address: str
    """Of the server, without credentials."""
    run_id: str
    """When the server started."""
    reset_at: str
    commits: int
    rollbacks: int
    deadlocks: int
    rows_returned: int
    rows_fetched: int
    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    blocks_hit: int
    blocks_read: int
    temp_files: int
    temp_bytes: int
    wal_bytes: int
    """Of the whole server, as the next one."""
    cpu_us: int | None
    """CPU time of all its processes; None where these cannot be seen from here."""

    def counters(self) -> dict[str, int | None]:
        """The numbers alone, for a record."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _IDENTITY}


_IDENTITY = {"address", "run_id", "reset_at"}


def read_figures(server: PostgresServer, *, seconds: float = ANSWER_S) -> PostgresFigures:
    """Read them now. Raises ServerError, within `seconds` whatever the server does."""
    with server.session(seconds=seconds) as session:
        main = server.pid or cpu.postmaster_of(server, session)
        row = session.execute(_QUERY.encode()).fetchone()
        if row is None:
            raise ServerError(
                f"{server.endpoint} does not report its counters",
                hint="does its database still exist? its log may say why",
            )
        spent_ns = None if main is None else cpu.cpu_ns(main)
    cpu_us = None if spent_ns is None else spent_ns // 1000
    return PostgresFigures(*(server.endpoint.address, *row, cpu_us))


def difference(before: PostgresFigures, after: PostgresFigures) -> PostgresFigures:
    """The increase from `before` to `after`. Raises ServerError after a restart or a reset of the counters."""
    if before.run_id != after.run_id:
        raise LocksGone(
            f"{after.address} was restarted while it was being measured: locks that were held are gone",
            hint="keep it running, and see its log for why it ended",
            cuts_connections=True,
        )
    increases: dict[str, Any] = {
        name: None if count is None or (earlier := before.counters()[name]) is None else count - earlier
        for name, count in after.counters().items()
    }
    if increases["cpu_us"] is not None:
        # Below zero, where ticks were rounded down at the end of a process.
        increases["cpu_us"] = max(0, increases["cpu_us"])
    if before.reset_at != after.reset_at or any(count is not None and count < 0 for count in increases.values()):
        raise ServerError(
            f"the counters of {after.address} were reset while it was being measured",
            hint="give pybench a server of its own, where nobody calls pg_stat_reset()",
        )
    identity: dict[str, Any] = {name: getattr(after, name) for name in _IDENTITY}
    return PostgresFigures(**identity, **increases)


def await_sessions_gone(session: Session, application: str, *, seconds: float = ANSWER_S) -> int:
    """Wait, at most `seconds`, for the end of sessions whose `application_name` begins with `application`.

    Returns how many are left.

    Raises errors of psycopg.
    """
    deadline = time.monotonic() + seconds
    while True:
        row = session.execute(_SESSIONS, [application]).fetchone()
        left = int(row[0]) if row is not None else 0
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(0.005)
