"""The guarded resources of one trial: made before it, read after it, and removed.

Promises: the values are those of the trial's own keys or table; a server that lost them is not taken for lost updates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pybench.planning.needs import guard_place_of
from pybench.servers import Server, remove_keys
from pybench.servers.connection import ANSWER_S
from pybench.servers.redis.cleanup import CLEANUP_S
from pybench.servers.redis.guarded import prepare_guarded, read_guarded
from pybench.servers.redis.refusals import refused_calls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pybench.core_specs import PostgresServerSpec, RedisServerSpec
    from pybench.errors import ServerError
    from pybench.matrix.backends import Backend
    from pybench.matrix.cells import Cell
    from pybench.servers import AnyServer
    from pybench.servers.postgres import PostgresServer

ROWS_A_SECOND = 50_000
"""As in `trial_servers`: every database creates, reads or drops at least so many rows a second."""


def guard_side(cell: Cell, server: AnyServer, backend: Backend, *, prefix: str, run_id: str, trial: int) -> GuardSide:
    """The guarded resources of a trial of `cell` on `server`, which is that of `guard_part_of`."""
    if isinstance(server, Server):
        return RedisGuard(cell, server, prefix, is_alone=guard_place_of(cell) is None)
    return PostgresGuard(cell, server, backend, run_id, trial)


class RedisGuard:
    """Resources that are keys below the trial's prefix.

    Unless the resource `is_alone` on its server, the keys are removed together with those of the lock.
    """

    client_names = "pybench-"

    def __init__(self, cell: Cell, server: Server, prefix: str, *, is_alone: bool) -> None:
        self.is_alone = is_alone
        self.server = server
        self.cell = cell
        self.prefix = prefix

    def prepare(self) -> None:
        """Set each resource to its first value. Raises ServerError."""
        prepare_guarded(self.server, self.prefix, self.cell.keys, self.cell.guard.initial)

    def spec(self) -> RedisServerSpec:
        """The server in the form of the core."""
        return self.server.core_spec()

    def values(self) -> NDArray[np.int64] | None:
        """The final value of each key; None where the server lost any. Raises ServerError."""
        return read_guarded(self.server, self.prefix, self.cell.keys)

    def clear(self, *, seconds: float | None = None) -> None:
        """Remove all keys of the trial from the server, if there are no others. Raises ServerError."""
        if self.is_alone:
            remove_keys(self.server, self.prefix, seconds=CLEANUP_S if seconds is None else seconds)

    def refused(self, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
        """The error for a server that refused `calls` of a trial."""
        return refused_calls(self.server.endpoint, calls, code, first, strategy=strategy)


class PostgresGuard:
    """Resources that are the rows of a table in a schema of their own."""

    def __init__(self, cell: Cell, server: PostgresServer, backend: Backend, run_id: str, trial: int) -> None:
        from pybench.servers import postgres

        self._postgres = postgres
        self.server = server
        self.cell = cell
        self.prepares = backend.prepare
        self.client_names = postgres.schema_name(run_id, f"{trial}g")
        """The name of the schema, and of the sessions."""

    @property
    def _table_s(self) -> float:
        return ANSWER_S + self.cell.keys / ROWS_A_SECOND

    def prepare(self) -> None:
        """Create the table with a row for each key. Raises ServerError."""
        guard = self.cell.guard
        with self.server.session(seconds=self._table_s) as session:
            self._postgres.prepare_schema(
                session, self.client_names, self.cell.keys, value=guard.initial, is_constrained=guard.constraint
            )

    def spec(self) -> PostgresServerSpec:
        """The server in the form of the core."""
        pooled = self.server.facts.pooled
        named = self.prepares == "named" or (self.prepares == "auto" and not pooled)
        spec = {
            **self.server.core_spec(),
            "kind": "postgres",
            "table": self._postgres.table_name(self.client_names),
            "settings": {"application_name": self.client_names},
            "prepare": "named" if named else "unnamed",
        }
        return cast("PostgresServerSpec", spec)

    def values(self) -> NDArray[np.int64] | None:
        """The final value of each key; None where a row is gone. Raises ServerError.

        Sessions of clients that have gone are ended first: a write of theirs may still wait for a row.
        """
        with self.server.session(seconds=self._table_s) as session:
            if not self.server.facts.pooled and self._postgres.await_sessions_gone(session, self.client_names):
                self._postgres.end_sessions(session, self.client_names)
            return self._postgres.read_guarded(session, self.client_names, self.cell.keys)

    def clear(self, *, seconds: float | None = None) -> None:
        """Drop the schema. Raises ServerError."""
        timeout_s = self._table_s if seconds is None else seconds
        with self.server.session(seconds=timeout_s) as session:
            self._postgres.drop_schema(session, self.client_names, seconds=timeout_s / 2)

    def refused(self, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
        """The error for a server that refused `calls` of a trial."""
        from pybench.servers.postgres.refusals import refused_calls as refused_statements

        return refused_statements(self.server.endpoint, calls, code, first, strategy=strategy)


GuardSide = RedisGuard | PostgresGuard
