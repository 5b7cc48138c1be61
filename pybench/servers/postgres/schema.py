"""The table that the locks of a trial use, in a schema of the trial's own.

Promises: touches no other schema. A schema of a run that was killed is removed only where it is proved that the run is
over; see `ownership`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from psycopg import errors, sql

from pybench.errors import ServerError
from pybench.numbers import format_seconds, plural
from pybench.servers.postgres import ownership
from pybench.servers.postgres.connecting import Session

if TYPE_CHECKING:
    from numpy.typing import NDArray

PREFIX = "pybench_"

TABLE = "locks"

FILLFACTOR = 50
"""Percent of a page that rows take at first. The rest is for their new versions: an update that finds room on its page
touches no index, and the next access to the page removes the old version."""

MANY_KEYS = 100_000
FILLFACTOR_OF_MANY = 90
"""Of many keys few have several versions at once, and a million rows have to fit into the memory of the server."""

DROP_S = 5.0
"""Time for sessions of the trial to release the table."""

_NAME = re.compile(r"pybench_[0-9a-f]{1,32}_[0-9a-z]{1,16}")


@dataclass(frozen=True, slots=True)
class Effects:
    """What the work of a trial left in the table, summed over its rows."""

    keys: int
    values: int
    """Sum of `value`: the number of updates that were not lost."""
    versions: int
    fences: int
    owned: int
    """Rows that still have an owner."""


@dataclass(frozen=True, slots=True)
class LeftLock:
    """A lock that a session of a trial holds or waits for."""

    pid: int
    kind: str
    """`advisory`, `tuple`, or `relation` for a transaction that is still open on the table."""
    mode: str
    granted: bool
    state: str | None
    """Of the session: `active`, `idle`, `idle in transaction`."""


def schema_name(run: str, trial: int | str) -> str:
    """The name for a trial: short enough to be the `application_name` of its sessions, too."""
    name = f"{PREFIX}{run}_{trial}"
    assert _NAME.fullmatch(name), f"{name} is no name of a schema of ours"
    return name


def table_name(schema: str) -> str:
    """The table of a schema, as statements say it."""
    return f'"{schema}"."{TABLE}"'


def prepare_schema(session: Session, name: str, keys: int, *, value: int = 0, is_constrained: bool = False) -> None:
    """Make the schema `name` with one row for each key, 0 to `keys` - 1, each with this `value`.

    `is_constrained` adds a constraint that refuses values below 0.

    Raises errors of psycopg; nothing of it is left then.
    """
    assert _NAME.fullmatch(name), f"{name} is no name of a schema of ours"
    schema, table = sql.Identifier(name), sql.Identifier(name, TABLE)
    with session.transaction():
        session.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
        session.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, ownership.note()))
        # Without autovacuum, which comes once a minute, to some trials and not to others. Nothing is missed: a new
        # version of a row finds room on its page, and dead ones are pruned there as soon as nobody can see them.
        session.execute(
            sql.SQL(
                "CREATE TABLE {} (id int, fence bigint NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 0,"
                " value bigint NOT NULL DEFAULT 0{}, owner uuid, expires_at timestamptz NOT NULL DEFAULT '-infinity')"
                " WITH (fillfactor = {}, autovacuum_enabled = off)"
            ).format(
                table,
                sql.SQL(" CHECK (value >= 0)" if is_constrained else ""),
                FILLFACTOR if keys <= MANY_KEYS else FILLFACTOR_OF_MANY,
            )
        )
        session.execute(
            sql.SQL("INSERT INTO {} (id, value) SELECT generate_series(0, {}), {}").format(
                table, sql.Literal(keys - 1), sql.Literal(value)
            )
        )
        # After the rows: a million keys take 2 s in this order, and 3 s in the other.
        session.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id)").format(table))
    session.execute(sql.SQL("ANALYZE {}").format(table))


def read_effects(session: Session, name: str) -> Effects:
    """The sums over all rows. Raises errors of psycopg."""
    row = session.execute(
        sql.SQL(
            "SELECT count(*), coalesce(sum(value), 0)::bigint, coalesce(sum(version), 0)::bigint,"
            " coalesce(sum(fence), 0)::bigint, count(owner) FROM {}"
        ).format(sql.Identifier(name, TABLE))
    ).fetchone()
    assert row is not None, "sums without groups are one row"
    return Effects(*row)


def read_values(session: Session, name: str, keys: int) -> NDArray[np.uint64]:
    """The value of each of the `keys` rows; 0 for a row that is gone. Raises errors of psycopg.

    One stream: a million rows take one or two seconds, and no Python object for each row.
    """
    values = np.zeros(keys, dtype=np.uint64)
    query = sql.SQL("COPY (SELECT id, greatest(value, 0) FROM {} WHERE value <> 0) TO STDOUT")
    with session.cursor() as cursor, cursor.copy(query.format(sql.Identifier(name, TABLE))) as rows:
        numbers = np.array(b"".join(bytes(part) for part in rows).split(), dtype=np.uint64).reshape(-1, 2)
    known = numbers[numbers[:, 0] < keys]
    values[known[:, 0].astype(np.intp)] = known[:, 1]
    return values


def read_guarded(session: Session, name: str, keys: int) -> NDArray[np.int64] | None:
    """The value of each of the `keys` rows, also below 0; None where a row is gone. Raises errors of psycopg."""
    query = sql.SQL("COPY (SELECT value FROM {} WHERE id BETWEEN 0 AND {} ORDER BY id) TO STDOUT")
    with (
        session.cursor() as cursor,
        cursor.copy(query.format(sql.Identifier(name, TABLE), sql.Literal(keys - 1))) as rows,
    ):
        values = np.array(b"".join(bytes(part) for part in rows).split(), dtype=np.int64)
    return values if len(values) == keys else None


def locks_left(session: Session, name: str, application: str) -> list[LeftLock]:
    """The locks of sessions whose `application_name` begins with `application`; empty once a trial is over."""
    rows = session.execute(
        "SELECT l.pid, l.locktype, l.mode, l.granted, a.state FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE starts_with(a.application_name, %s) AND l.pid <> pg_backend_pid()"
        " AND (l.locktype IN ('advisory', 'tuple') OR l.locktype = 'relation' AND l.relation = to_regclass(%s))"
        " ORDER BY l.pid, l.locktype, l.mode",
        [application, f"{name}.{TABLE}"],
    )
    return [LeftLock(*row) for row in rows]


def end_sessions(session: Session, application: str) -> int:
    """End the sessions whose `application_name` begins with `application`; how many there were."""
    assert application, "an empty name would end what is not ours"
    rows = session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, %s)"
        " AND datname = current_database() AND pid <> pg_backend_pid()",
        [application],
    )
    return len(rows.fetchall())


def drop_schema(session: Session, name: str, *, seconds: float = DROP_S) -> None:
    """Remove the schema with all that is in it; harmless when it is gone.

    Raises errors of psycopg, and ServerError when a session keeps the table locked for `seconds`.
    """
    assert _NAME.fullmatch(name), f"{name} is no name of a schema of ours"
    try:
        with session.transaction():
            session.execute(f"SET LOCAL lock_timeout = {max(1, round(seconds * 1000))}".encode())
            # No notice about a schema that is missing, or about the table that is dropped with it.
            session.execute(b"SET LOCAL client_min_messages = warning")
            session.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
    except errors.LockNotAvailable:
        holders = session.execute(
            "SELECT array_agg(DISTINCT pid) FROM pg_locks WHERE relation = to_regclass(%s) AND granted",
            [f"{name}.{TABLE}"],
        ).fetchone()
        pids = (holders and holders[0]) or []
        raise ServerError(
            f"schema {name} cannot be dropped: after {format_seconds(seconds)} its table is still locked by "
            f"{plural(len(pids), 'session')} (process {', '.join(map(str, pids))})",
            hint=f'end them, then: DROP SCHEMA "{name}" CASCADE',
        ) from None


@dataclass(frozen=True, slots=True)
class LeftSchema:
    """A schema of another run, or of an earlier part of this one."""

    name: str
    over: bool | None
    """Whether its run is over; None: not known."""
    told: str | None
    """Who made it, as far as is known."""

    def __str__(self) -> str:
        return self.name + (f", made by {self.told}" if self.told else "")


def left_schemas(session: Session) -> list[LeftSchema]:
    """Every schema that is named like one of pybench, whoever made it. Raises errors of psycopg."""
    rows = session.execute(
        "SELECT nspname, obj_description(oid, 'pg_namespace'), pg_has_role(nspowner, 'MEMBER') FROM pg_namespace"
        " WHERE starts_with(nspname, %s) ORDER BY nspname",
        [PREFIX],
    ).fetchall()
    found = []
    for name, comment, is_ours in rows:
        if _NAME.fullmatch(name):
            maker = ownership.read(comment)
            over = maker.is_over() if maker is not None and is_ours else None
            found.append(LeftSchema(name, over, None if maker is None else maker.told()))
    return found


def clear_schemas(session: Session) -> tuple[list[LeftSchema], list[LeftSchema]]:
    """Drop the schemas of runs that are over. Returns these, and those of runs that may still go on.

    Raises errors of psycopg, ServerError.
    """
    left = left_schemas(session)
    for schema in left:
        if schema.over:
            drop_schema(session, schema.name)
    return [schema for schema in left if schema.over], [schema for schema in left if schema.over is None]
