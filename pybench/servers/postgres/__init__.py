"""Postgres servers: find, start, probe and read them, and leave nothing behind.

Imported only for runs with Postgres: psycopg takes 0.1 s to load.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import SecretStr

from pybench.servers.answered import GIVEN
from pybench.servers.postgres import binaries, supervisor
from pybench.servers.postgres.config import OWN_SESSIONS
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.servers.postgres.figures import PostgresFigures, await_sessions_gone, difference, read_figures
from pybench.servers.postgres.probe import PostgresFacts, probe
from pybench.servers.postgres.sampler import Sampler, Samples
from pybench.servers.postgres.schema import (
    Effects,
    clear_schemas,
    drop_schema,
    end_sessions,
    locks_left,
    prepare_schema,
    read_effects,
    read_guarded,
    read_values,
    schema_name,
    table_name,
)
from pybench.servers.postgres.server import PostgresServer
from pybench.servers.postgres.supervisor import SupervisedPostgres
from pybench.servers.programs import Source

__all__ = [
    "Effects",
    "PostgresEndpoint",
    "PostgresFacts",
    "PostgresFigures",
    "PostgresServer",
    "Sampler",
    "Samples",
    "await_sessions_gone",
    "clear_schemas",
    "difference",
    "drop_schema",
    "end_sessions",
    "given",
    "locks_left",
    "prepare_schema",
    "probe",
    "read_effects",
    "read_figures",
    "read_guarded",
    "read_values",
    "room",
    "schema_name",
    "start",
    "table_name",
]


def given(url: SecretStr) -> PostgresServer:
    """The server of a URL. Raises InputError for the URL, ServerError."""
    endpoint = PostgresEndpoint.parse(url)
    return PostgresServer(endpoint, probe(endpoint), GIVEN)


def start(source: Source, *, sessions: int = 0, cores: Sequence[int] = ()) -> tuple[SupervisedPostgres, PostgresServer]:
    """A new server with room for `sessions` of a trial, which keeps to `cores` where any are named.

    Raises ServerError.
    """
    binary = binaries.find(source)
    supervised, facts = supervisor.start(binary, sessions=sessions, cores=cores)
    return supervised, PostgresServer(supervised.endpoint, facts, binary.source, supervised.pid)


def room(server: PostgresServer) -> int:
    """How many sessions a trial may have on a server that `start` started."""
    return server.facts.max_connections - OWN_SESSIONS
