"""The schemas of a service in Postgres: made before its processes start, dropped at its end.

Their comments name this process, as those of a run do: what a killed service leaves is found and dropped later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from pybench import _core
from pybench.servers.postgres import drop_schema, ownership, prepare_schema

DROP_S = 15.0
"""Time to drop them; a session that still uses a table keeps it locked."""

if TYPE_CHECKING:
    from pybench.servers.postgres import PostgresServer
    from pybench.service.settings import Settings


def create_stock_schema(server: PostgresServer, settings: Settings) -> None:
    """Make the tables of the stock. Raises ServerError."""
    schema = settings.schema
    check = sql.SQL(" CHECK (stock >= 0)" if settings.constraint else "")
    with server.session() as session, session.transaction():
        session.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        session.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(schema), ownership.note()))
        session.execute(
            sql.SQL("CREATE TABLE {} (product text PRIMARY KEY, stock bigint NOT NULL{})").format(
                sql.Identifier(schema, "stock"), check
            )
        )
        session.execute(
            sql.SQL("CREATE TABLE {} (key text PRIMARY KEY, mark bytea NOT NULL, ends_at timestamptz NOT NULL)").format(
                sql.Identifier(schema, "repeats")
            )
        )


def create_lock_schema(server: PostgresServer, settings: Settings) -> None:
    """Make the table of locks that are rows. Raises ServerError."""
    with server.session() as session:
        prepare_schema(session, settings.lock_schema, _core.lock_rows)


def drop_schemas(server: PostgresServer, settings: Settings) -> None:
    """Drop both, if they are there. Raises ServerError."""
    with server.session(seconds=DROP_S) as session:
        for schema in (settings.schema, settings.lock_schema):
            drop_schema(session, schema)
