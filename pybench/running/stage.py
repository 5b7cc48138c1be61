"""What one trial stands on: its servers, the keys or the table that it has there, and what they spend while it runs.

Promises: whatever a trial made on a server is removed when its stage is cleared, and nothing else is touched.
Does not do: running the trial; see `runner`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from pybench.errors import LocksGone, ServerError
from pybench.matrix.places import parts_of_place
from pybench.planning.trial_spec import session_settings
from pybench.servers import Server, difference, keys_gone, read_figures, remove_keys, remove_locks
from pybench.servers.connection import ANSWER_S
from pybench.servers.redis.cleanup import CLEANUP_S
from pybench.servers.redis.refusals import refused_calls
from pybench.strategies import CATALOGUE, Judge

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pybench._core import PostgresServerSpec, RedisServerSpec
    from pybench.matrix.backends import Backend
    from pybench.matrix.cells import Cell
    from pybench.servers import AnyServer, ServerFigures
    from pybench.servers.postgres import Effects, PostgresFigures, PostgresServer, Samples
    from pybench.servers.postgres.connecting import Session

ROWS_A_SECOND = 50_000
"""That any database makes, reads or drops, for a bound on how long a table of many keys may take."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a server, with its replicas, came to in a trial."""

    cpu_us: float | None
    """None where it cannot be known."""
    calls: Mapping[str, int] | None
    """Commands by name, as the server counts them; None of one that does not."""


@dataclass(frozen=True, slots=True)
class DatabaseSpent(Spent):
    """What a database came to in a trial."""

    figures: PostgresFigures
    samples: Samples
    effects: Effects | None
    """What the work left in the table; None where the lock has none."""
    final_values: NDArray[np.uint64] | None
    """What the work wrote to each row; None where the lock is not judged by that."""

    def record(self) -> dict[str, Any]:
        """What is kept of it, as JSON can hold it: counters, and what sessions waited for, as shares."""
        looks = {"taken": self.samples.taken, "most_sessions": self.samples.most_sessions}
        error = {} if self.samples.error is None else {"error": self.samples.error}
        return {**self.figures.counters(), "waits": self.samples.shares(), "looks": {**looks, **error}}


class Side(Protocol):
    """One server of a trial."""

    @property
    def befell(self) -> str | None:
        """What happened there in the trial that its lock has to survive, and whoever reads its figures has to know."""

    def prepare(self) -> None:
        """Make on it what the trial needs. Raises ServerError."""

    def spec(self) -> RedisServerSpec | PostgresServerSpec:
        """The server, as the core wants it."""

    def begin(self) -> None:
        """Read what it has spent so far. Raises ServerError."""

    def end(self) -> Spent:
        """What it has spent since. Raises ServerError, also where what happened there makes the trial worthless."""

    def clear(self, *, seconds: float | None = None) -> int | None:
        """Remove what the trial left. Raises ServerError, within `seconds` where they are given.

        Returns how many locks were there as keys of their own; None of a server that has no such keys.
        """

    def refused(self, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
        """What to tell of it when it refused `calls` of a trial of `strategy`, the first with the words `first`."""


def sides_of(
    cell: Cell, servers: Sequence[AnyServer], backends: Mapping[str, Backend], *, run_id: str, trial: int
) -> list[Side]:
    """One side for each of `servers`, in the order in which the lock of `cell` counts them."""
    return [
        RedisSide(server, f"pybench:{run_id}:{trial}:", keys_may_go=CATALOGUE[cell.strategy].judged_by is Judge.GUARD)
        if isinstance(server, Server)
        else PostgresSide(server, cell, backends[parts_of_place(cell.backend)[-1]], run_id, trial)
        for server in servers
    ]


class RedisSide:
    """A Redis server: the keys that begin with the trial's prefix are made by its clients, and removed at the end.

    Where a guard judges, `keys_may_go`: that they are gone is what it has to survive.
    """

    def __init__(self, server: Server, prefix: str, *, keys_may_go: bool = False) -> None:
        self.server = server
        self.prefix = prefix
        self.keys_may_go = keys_may_go
        self._before: list[ServerFigures] = []
        self._spent: ServerFigures | None = None

    def prepare(self) -> None:
        """Nothing: a key is made when it is needed."""

    def spec(self) -> RedisServerSpec:
        """The server, as the core wants it."""
        return self.server.core_spec()

    def begin(self) -> None:
        """Read what it and its replicas have spent so far. Raises ServerError."""
        self._before = [read_figures(server) for server in self._all]

    def end(self) -> Spent:
        """What they have spent since. Raises ServerError, also after a restart, and where keys may not have gone."""
        try:
            after = [read_figures(server) for server in self._all]
        except ServerError as error:
            raise _unread(error, self.server) from None
        pairs = zip(self._before, after, strict=True)
        spent = [difference(*pair, keys_may_go=self.keys_may_go) for pair in pairs]
        self._spent = spent[0]
        # What a replica carries out its primary was sent: it is a cost, and no command of a client.
        return Spent(sum(figures.cpu_us for figures in spent), spent[0].calls)

    def clear(self, *, seconds: float | None = None) -> int:
        """Remove the keys; how many of them were locks. Raises ServerError."""
        return remove_locks(self.server, self.prefix, seconds=CLEANUP_S if seconds is None else seconds).locks

    def refused(self, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
        """What to tell of it after a trial of which it refused `calls`."""
        return refused_calls(self.server.endpoint, calls, code, first, strategy=strategy)

    @property
    def befell(self) -> str | None:
        """That its keys were flushed or evicted."""
        gone = None if self._spent is None else keys_gone(self._spent)
        return None if gone is None else gone.what

    @property
    def _all(self) -> list[Server]:
        return [self.server, *self.server.replicas]


class PostgresSide:
    """A Postgres server: a table in a schema of the trial's own, made before it and dropped after it."""

    befell = None
    """What would befall it makes the trial worthless."""

    def __init__(self, server: PostgresServer, cell: Cell, backend: Backend, run_id: str, trial: int) -> None:
        from pybench.servers import postgres

        self._postgres = postgres
        self.server = server
        self.cell = cell
        self.prepares = backend.prepare
        self.schema = postgres.schema_name(run_id, trial)
        self._sampler = postgres.Sampler(server, self.schema)
        self._before: PostgresFigures | None = None

    @property
    def _uses_rows(self) -> bool:
        return CATALOGUE[self.cell.strategy].uses_rows

    @property
    def _writes(self) -> bool:
        return self._uses_rows and CATALOGUE[self.cell.strategy].judged_by is not Judge.BELIEF

    @property
    def _table_s(self) -> float:
        """How long statements about the whole table may take."""
        return ANSWER_S + self.cell.keys / ROWS_A_SECOND

    def prepare(self) -> None:
        """Make the table, with a row for each key, where the lock has one. Raises ServerError."""
        if self._uses_rows:
            with self.server.session(seconds=self._table_s) as session:
                self._postgres.prepare_schema(session, self.schema, self.cell.keys)

    def spec(self) -> PostgresServerSpec:
        """The server, as the core wants it. The sessions of a trial are named like its schema."""
        facts = self.server.facts
        pooled = facts.pooled or self.prepares == "unnamed"
        named = self.prepares == "named" or (self.prepares == "auto" and not facts.pooled)
        settings = session_settings(
            self.cell,
            client_name=self.schema,
            pooled=pooled,
            checks_connections="client_connection_check_interval_ms" in facts.settings,
        )
        spec = {
            **self.server.core_spec(),
            "kind": "postgres",
            "table": self._postgres.table_name(self.schema),
            "settings": settings,
            "prepare": "named" if named else "unnamed",
        }
        return cast("PostgresServerSpec", spec)

    def begin(self) -> None:
        """Read what it has spent so far, and begin to look at what sessions wait for. Raises ServerError."""
        self._before = self._postgres.read_figures(self.server)
        self._sampler.__enter__()

    def end(self) -> DatabaseSpent:
        """What it has spent since, and what the work left. Raises ServerError, also after a restart."""
        assert self._before is not None, "a trial begins before it ends"
        self._sampler.stop()
        try:
            with self.server.session(seconds=self._table_s) as session:
                self._end_sessions(session)
                effects = self._postgres.read_effects(session, self.schema) if self._uses_rows else None
                values = self._postgres.read_values(session, self.schema, self.cell.keys) if self._writes else None
            after = self._postgres.read_figures(self.server)
        except ServerError as error:
            raise _unread(error, self.server) from None
        spent = self._postgres.difference(self._before, after)
        return DatabaseSpent(spent.cpu_us, None, spent, self._sampler.samples, effects, values)

    def clear(self, *, seconds: float | None = None) -> None:
        """Drop the schema. Raises ServerError."""
        self._sampler.stop()
        if not self._uses_rows:
            return
        patience = self._table_s if seconds is None else seconds
        with self.server.session(seconds=patience) as session:
            self._postgres.drop_schema(session, self.schema, seconds=patience / 2)

    def refused(self, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
        """What to tell of it after a trial of which it refused `calls`."""
        from pybench.servers.postgres.refusals import refused_calls as refused_statements

        return refused_statements(self.server.endpoint, calls, code, first, strategy=strategy)

    def _end_sessions(self, session: Session) -> None:
        """Until those of the trial are gone: they add to the counters when they end. A pooler keeps them."""
        if not self.server.facts.pooled and self._postgres.await_sessions_gone(session, self.schema):
            self._postgres.end_sessions(session, self.schema)


def _unread(error: ServerError, server: AnyServer) -> ServerError:
    """What it means that a reading failed with `error`: a server that pybench started is never started again."""
    return error if server.started_by_us else LocksGone.unread(error)


UNREAD = Spent(None, None)
"""Of a server whose figures could not be read after a trial."""


def clear_run(server: AnyServer, prefix: str) -> None:
    """Remove what the trials of a run whose keys begin with `prefix` left on `server`. Raises ServerError."""
    if isinstance(server, Server):
        remove_keys(server, prefix)
        return
    from pybench.servers.postgres.schema import PREFIX, drop_schema, left_schemas

    _, run_id, _ = prefix.split(":")
    with server.session(seconds=CLEANUP_S) as session:
        for left in left_schemas(session):
            if left.name.startswith(f"{PREFIX}{run_id}_"):
                drop_schema(session, left.name)


def clear_killed_runs(server: AnyServer) -> list[str]:
    """Drop the schemas of runs that are certainly over from a database that was given.

    A sentence for each, and for those that may be of a run that goes on. Keys of Redis end with their leases, and do
    not say whose they are. Raises ServerError.
    """
    if isinstance(server, Server) or server.started_by_us:
        return []
    from pybench.servers.postgres import clear_schemas

    with server.session(seconds=CLEANUP_S) as session:
        dropped, unknown = clear_schemas(session)
    return [
        *(f"left by a run that was killed: schema {schema}" for schema in dropped),
        *(f"of another run, and to be dropped if that is over: schema {schema}" for schema in unknown),
    ]


def spent_cpu_us(spent: Sequence[Spent]) -> float | None:
    """Of all servers together; None where that of one is not known."""
    known = [one.cpu_us for one in spent if one.cpu_us is not None]
    return sum(known) if len(known) == len(spent) else None


def spent_calls(spent: Sequence[Spent]) -> Counter[str] | None:
    """Commands by name, of all servers that count them; None where none does, or one could not be read."""
    if UNREAD in spent:
        return None
    counted = [Counter(one.calls) for one in spent if one.calls is not None]
    return sum(counted, Counter()) if counted else None
