"""The servers of one trial: its keys or table there, and the CPU time and calls of the servers during the trial.

Promises: clearing removes everything that the trial created on a server, and nothing else.
Does not do: running the trial; see `runner`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from pybench.errors import LocksGone, ServerError
from pybench.matrix.places import parts_of_place
from pybench.planning.trial_spec import session_settings
from pybench.servers import RedisSampler, Server, difference, keys_gone, read_figures, remove_keys, remove_locks
from pybench.servers.connection import ANSWER_S
from pybench.servers.redis.cleanup import CLEANUP_S
from pybench.servers.redis.refusals import refused_calls
from pybench.strategies import CATALOGUE, Judge

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pybench.core_specs import PostgresServerSpec, RedisServerSpec
    from pybench.matrix.backends import Backend
    from pybench.matrix.cells import Cell
    from pybench.servers import AnyServer, ServerFigures
    from pybench.servers.postgres import Effects, PostgresFigures, PostgresServer, Samples
    from pybench.servers.postgres.connecting import Session
    from pybench.servers.sampling import Sample

ROWS_A_SECOND = 50_000
"""Every database creates, reads or drops at least so many rows a second; timeouts of large tables use this rate."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The usage of a server and its replicas in a trial."""

    cpu_us: float | None
    """CPU time in microseconds; None where unknown."""
    calls: Mapping[str, int] | None
    """Calls by command, as counted by the server; None for a server without such counts."""
    series: Sequence[Sample] = ()
    """What the server did while the trial ran; empty where it was not watched."""
    is_unread: bool = False
    """Whether the usage could not be read after the trial, or cannot be told, because a fault ended the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSpent(Spent):
    """The usage of a database in a trial, with its final rows."""

    figures: PostgresFigures | None
    """None where a fault ended the server."""
    samples: Samples
    effects: Effects | None
    """The effects in the table; None for a lock without a table."""
    final_values: NDArray[np.uint64] | None
    """The final value of each row; None for a lock that is not judged by its writes."""

    def record(self) -> dict[str, Any] | None:
        """The usage for the record: counters, and the shares of time that sessions waited, by cause."""
        if self.figures is None:
            return None
        looks = {"taken": self.samples.taken, "most_sessions": self.samples.most_sessions}
        error = {} if self.samples.error is None else {"error": self.samples.error}
        return {**self.figures.counters(), "waits": self.samples.shares(), "looks": {**looks, **error}}


class Side(Protocol):
    """One server of a trial."""

    @property
    def server(self) -> AnyServer:
        """The server as it was when the trial began."""

    @property
    def client_names(self) -> str:
        """The names of the connections of the trial begin so."""

    @property
    def disturbance(self) -> str | None:
        """A disturbance of the server that the lock must survive, as a clause for the user; None without one."""

    def prepare(self) -> None:
        """Create what the trial needs on the server. Raises ServerError."""

    def spec(self) -> RedisServerSpec | PostgresServerSpec:
        """The server in the form of the core."""

    def begin(self) -> None:
        """Read the usage so far. Raises ServerError."""

    def watch(self) -> None:
        """Take samples of what the server does from now on, until `end`. Raises nothing."""

    def end(self) -> Spent:
        """The usage since `begin`. Raises ServerError, also for an event that makes the trial invalid."""

    def clear(self, *, seconds: float | None = None) -> int | None:
        """Remove everything that the trial created. Raises ServerError, within `seconds` if given.

        Returns how many locks were left as keys; None for a server whose locks are not keys.
        """

    def refused(self, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
        """The error for a server that refused `calls` of a trial of `strategy`; `first` is its first reply."""


def sides_of(
    cell: Cell,
    servers: Sequence[AnyServer],
    backends: Mapping[str, Backend],
    *,
    run_id: str,
    trial: int,
    ending: Collection[int] = (),
) -> list[Side]:
    """One side for each of `servers`, in the order in which the lock of `cell` numbers them.

    `ending` are the places of those that faults end.
    """
    keys_may_go = CATALOGUE[cell.strategy].judged_by is Judge.GUARD
    return [
        RedisSide(server, f"pybench:{run_id}:{trial}:", keys_may_go=keys_may_go, ends=place in ending)
        if isinstance(server, Server)
        else PostgresSide(server, cell, backends[parts_of_place(cell.backend)[-1]], run_id, trial, ends=place in ending)
        for place, server in enumerate(servers)
    ]


class RedisSide:
    """A Redis server. Clients create keys with the trial's prefix, and `clear` removes these keys.

    `keys_may_go` is set for a lock that is judged by its guard, since such a lock must survive the loss of keys.
    `ends` is set where a fault ends the server: its counters then begin anew.
    """

    client_names = "pybench-"

    def __init__(self, server: Server, prefix: str, *, keys_may_go: bool = False, ends: bool = False) -> None:
        self.server = server
        self.ends = ends
        self.prefix = prefix
        self.keys_may_go = keys_may_go
        self._sampler = RedisSampler(server)
        self._sampler.opens_again = ends
        self._before: list[ServerFigures] = []
        self._spent: ServerFigures | None = None

    def prepare(self) -> None:
        """Nothing to do: clients create keys when they need them."""

    def spec(self) -> RedisServerSpec:
        """The server in the form of the core."""
        return self.server.core_spec()

    def begin(self) -> None:
        """Read the usage of the server and its replicas so far. Raises ServerError."""
        self._before = [read_figures(server) for server in self._all]

    def watch(self) -> None:
        """Take samples of the server, without its replicas, from now on."""
        self._sampler.__enter__()

    def end(self) -> Spent:
        """The usage since `begin`. Raises ServerError, also after a restart and after a forbidden loss of keys."""
        self._sampler.stop()
        if self.ends:
            return Spent(None, None, self._sampler.series, is_unread=True)
        try:
            after = [read_figures(server) for server in self._all]
        except ServerError as error:
            raise _unread(error, self.server) from None
        pairs = zip(self._before, after, strict=True)
        spent = [difference(*pair, keys_may_go=self.keys_may_go) for pair in pairs]
        self._spent = spent[0]
        # A replica repeats the commands of its primary: its CPU time counts, but not its calls.
        return Spent(sum(figures.cpu_us for figures in spent), spent[0].calls, self._sampler.series)

    def clear(self, *, seconds: float | None = None) -> int:
        """Remove the keys; returns how many of them were locks. Raises ServerError."""
        self._sampler.stop()
        return remove_locks(self.server, self.prefix, seconds=CLEANUP_S if seconds is None else seconds).locks

    def refused(self, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
        """The error for a server that refused `calls` of a trial."""
        return refused_calls(self.server.endpoint, calls, code, first, strategy=strategy)

    @property
    def disturbance(self) -> str | None:
        """A flush or an eviction of keys, as a clause."""
        gone = None if self._spent is None else keys_gone(self._spent)
        return None if gone is None else gone.what

    @property
    def _all(self) -> list[Server]:
        return [self.server, *self.server.replicas]


class PostgresSide:
    """A Postgres server. The trial has a table in its own schema, created before the trial and dropped after it.

    `ends` is set where a fault ends the server: its counters then begin anew.
    """

    disturbance = None
    """Every disturbance of a database makes the trial invalid, and is raised by `end`."""

    def __init__(
        self, server: PostgresServer, cell: Cell, backend: Backend, run_id: str, trial: int, *, ends: bool = False
    ) -> None:
        from pybench.servers import postgres

        self.ends = ends
        self._postgres = postgres
        self.server = server
        self.cell = cell
        self.prepares = backend.prepare
        self.schema = postgres.schema_name(run_id, trial)
        self._sampler = postgres.Sampler(server, self.schema)
        self._sampler.opens_again = ends
        self._before: PostgresFigures | None = None

    @property
    def client_names(self) -> str:
        """See `Side`."""
        return self.schema

    @property
    def _uses_rows(self) -> bool:
        return CATALOGUE[self.cell.strategy].uses_rows

    @property
    def _writes(self) -> bool:
        return self._uses_rows and CATALOGUE[self.cell.strategy].judged_by is not Judge.BELIEF

    @property
    def _table_s(self) -> float:
        """The timeout in seconds for statements about the whole table."""
        return ANSWER_S + self.cell.keys / ROWS_A_SECOND

    def prepare(self) -> None:
        """Create the table with a row for each key, if the lock uses a table. Raises ServerError."""
        if self._uses_rows:
            with self.server.session(seconds=self._table_s) as session:
                self._postgres.prepare_schema(session, self.schema, self.cell.keys)

    def spec(self) -> PostgresServerSpec:
        """The server in the form of the core. The sessions of a trial are named after its schema."""
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
        """Read the usage so far, and begin to sample the waits of sessions. Raises ServerError."""
        self._before = self._postgres.read_figures(self.server)
        self._sampler.__enter__()

    def watch(self) -> None:
        """Nothing to do: what sessions wait for is a part of the usage, and sampled since `begin`."""

    def end(self) -> DatabaseSpent:
        """The usage since `begin`, and the final rows. Raises ServerError, also after a restart."""
        assert self._before is not None, "a trial begins before it ends"
        self._sampler.stop()
        try:
            with self.server.session(seconds=self._table_s) as session:
                self._end_sessions(session)
                effects = self._postgres.read_effects(session, self.schema) if self._uses_rows else None
                values = self._postgres.read_values(session, self.schema, self.cell.keys) if self._writes else None
            after = None if self.ends else self._postgres.read_figures(self.server)
        except ServerError as error:
            raise _unread(error, self.server) from None
        spent = None if after is None else self._postgres.difference(self._before, after)
        return DatabaseSpent(
            None if spent is None else spent.cpu_us,
            None,
            self._sampler.series,
            figures=spent,
            samples=self._sampler.samples,
            effects=effects,
            final_values=values,
        )

    def clear(self, *, seconds: float | None = None) -> None:
        """Drop the schema. Raises ServerError."""
        self._sampler.stop()
        if not self._uses_rows:
            return
        timeout_s = self._table_s if seconds is None else seconds
        with self.server.session(seconds=timeout_s) as session:
            self._postgres.drop_schema(session, self.schema, seconds=timeout_s / 2)

    def refused(self, calls: str, code: str, first: str, *, strategy: str) -> ServerError:
        """The error for a server that refused `calls` of a trial."""
        from pybench.servers.postgres.refusals import refused_calls as refused_statements

        return refused_statements(self.server.endpoint, calls, code, first, strategy=strategy)

    def _end_sessions(self, session: Session) -> None:
        """Wait until the sessions of the trial have ended, and so are counted. A pooler keeps its sessions."""
        if not self.server.facts.pooled and self._postgres.await_sessions_gone(session, self.schema):
            self._postgres.end_sessions(session, self.schema)


def _unread(error: ServerError, server: AnyServer) -> ServerError:
    """The error for a failed reading: a given server may have been restarted without its locks, a started one not."""
    return error if server.started_by_us else LocksGone.unread(error)


UNREAD = Spent(None, None, is_unread=True)
"""The usage of a server whose figures could not be read after a trial."""


def clear_run(server: AnyServer, prefix: str) -> None:
    """Remove all keys or tables of the run with the key prefix `prefix` from `server`. Raises ServerError."""
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
    """Drop the schemas of runs that have certainly ended from a given database.

    Returns a sentence for each dropped schema, and for each schema whose run may still be active. Keys of Redis are
    left alone: they end with their leases, and their run is not known. Raises ServerError.
    """
    if isinstance(server, Server) or server.started_by_us:
        return []
    from pybench.servers.postgres import clear_schemas

    with server.session(seconds=CLEANUP_S) as session:
        dropped, unknown = clear_schemas(session)
    return [
        *(f"dropped a schema of a killed run: {schema}" for schema in dropped),
        *(f"found a schema of another run, to be dropped if that run has ended: {schema}" for schema in unknown),
    ]


def spent_cpu_us(spent: Sequence[Spent]) -> float | None:
    """The CPU time of all servers together; None where that of one server is unknown."""
    known = [one.cpu_us for one in spent if one.cpu_us is not None]
    return sum(known) if len(known) == len(spent) else None


def spent_calls(spent: Sequence[Spent]) -> Counter[str] | None:
    """Calls by command, summed over all servers that count them; None without counts, or where a reading failed."""
    if any(one.is_unread for one in spent):
        return None
    counted = [Counter(one.calls) for one in spent if one.calls is not None]
    return sum(counted, Counter()) if counted else None
