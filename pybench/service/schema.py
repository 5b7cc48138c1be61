"""The schema of a stock in Postgres: made before the processes of a service start, dropped at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from pybench.servers.postgres import drop_schema as drop
from pybench.servers.postgres import ownership

if TYPE_CHECKING:
    from pybench.servers.postgres import PostgresServer
    from pybench.service.settings import Settings


def create_schema(server: PostgresServer, settings: Settings) -> None:
    """Make the schema with its tables. Its comment names this process, as that of a run does. Raises ServerError."""
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


def drop_schema(server: PostgresServer, schema: str) -> None:
    """Drop it with its tables. Raises ServerError."""
    with server.session() as session:
        drop(session, schema)
