"""The stage of an experiment: servers, lock clients, processes, names and time.

Promises: leaving a stage ends every process, closes every client, stops every server that it started, and removes the
keys and schemas of its experiments from servers that were given. Not for use by several threads.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from pybench.errors import OutOfTime, ServerError
from pybench.lab.actors import Actor
from pybench.lab.failing import explained
from pybench.lock_client import LockClient, MeasuredLockClient
from pybench.numbers import format_seconds, plural
from pybench.servers import Endpoint, ServerPool, remove_keys
from pybench.service.hosting import Group as _Group
from pybench.strategies import ServerKind

if TYPE_CHECKING:
    from pydantic import SecretStr

    from pybench.lab.experiment import Value
    from pybench.lab.locks import ChosenLock
    from pybench.servers import AnyServer, Server
    from pybench.servers.postgres import PostgresServer
    from pybench.servers.postgres.endpoint import PostgresEndpoint
    from pybench.servers.postgres.supervisor import SupervisedPostgres
    from pybench.servers.programs import Source
    from pybench.servers.redis.config import AppendFsync

T = TypeVar("T")

SESSIONS: Final = 300
"""Of a Postgres that pybench starts for the lab: each is a process."""
SPARE_MS: Final = 10_000
"""How much longer than the work a lease is that must not end."""
BEYOND_S: Final = 1.0
"""A wait that is cut short ends surely after its case, and so blames no lock: a client gives up early where the pause
before its next attempt would outlast its wait."""
TIME_LIMIT_S: Final = 60.0
"""For one case of an experiment, unless the user says."""


@dataclass(frozen=True, slots=True)
class Given:
    """The servers that a user named; of a kind that has none, pybench starts its own."""

    redis: Sequence[SecretStr] = ()
    postgres: SecretStr | None = None
    source: Source = "auto"
    """Where the binaries of servers to start are looked for."""


@dataclass(frozen=True, slots=True)
class ClientSpec:
    """A lock client that another process can open too: JSON goes to it over a pipe, with passwords."""

    strategy: str
    redis: list[str] | None
    postgres: str | None
    connections: int
    table: str | None

    def open(self) -> LockClient:
        """The client. The caller closes it."""
        return MeasuredLockClient(
            self.strategy,
            redis=self.redis,
            postgres=self.postgres,
            connections=self.connections,
            table=self.table,
        )


class Stage:
    """A context manager. `set_for` begins an experiment; several may follow each other on the same servers."""

    def __init__(
        self,
        given: Given,
        *,
        note: Callable[[str], None] = lambda _: None,
        consent: Callable[[Sequence[AnyServer]], None] = lambda _: None,
        time_limit_s: float = TIME_LIMIT_S,
    ) -> None:
        """`consent` is asked about given servers on another machine before their first use; it raises InputError."""
        self.given: Final = given
        self.note: Final = note
        """Told what happens now, in a few words."""
        self.pool: Final = ServerPool()
        self.locks: Sequence[ChosenLock] = ()
        """Those that take part in the experiment, controls first."""
        self.prefix = ""
        """Of every key of the experiment on Redis."""
        self._consent: Final = consent
        self._agreed: set[str] = set()
        self._time_limit_s = time_limit_s
        self._ends_at = 0.0
        self._values: Mapping[str, Value] = {}
        self._open = ExitStack()
        self._labels: dict[str, None] = {}
        self._schemas: dict[str, str] = {}
        self._own = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.close()

    @contextmanager
    def set_for(self, name: str, values: Mapping[str, Value]) -> Iterator[None]:
        """An experiment on this stage: names and time begin anew, and what it opened is closed at the end.

        Raises ServerError, also for an error of a lock client that the experiment did not expect, and OutOfTime.
        """
        own = secrets.token_hex(4)
        self.prefix = f"pybench:lab-{own}:"
        self._values, self.locks = values, ()
        self._labels, self._schemas = {}, {}
        self.allow_time()
        with explained(name, self.pool, self.require_time), ExitStack() as self._open:
            yield

    # parameters

    def count(self, name: str) -> int:
        """The value of a parameter that is a whole number."""
        return cast("int", self._values[name])

    def seconds(self, name: str) -> float:
        """The value of a parameter that is a time."""
        return self.count(name) / 1e9

    def length(self, name: str) -> str:
        """The value of a parameter that is a time, as a lock client takes it."""
        from pybench.matrix.durations import format_duration

        return format_duration(self.count(name))

    def lease_beyond(self, *names: str) -> str:
        """A lease that ends under no holder who takes as long as the times of these parameters together."""
        from pybench.matrix.durations import MS, format_lease

        return format_lease(SPARE_MS + -(-sum(map(self.count, names)) // MS))

    def word(self, name: str) -> str:
        """The value of a parameter that is a choice of words."""
        return cast("str", self._values[name])

    def flag(self, name: str) -> bool:
        """Whether a flag was given."""
        return bool(self._values[name])

    # time

    def allow_time(self) -> None:
        """Let the time limit begin anew: each case has its own."""
        self._ends_at = time.monotonic() + self._time_limit_s

    @property
    def left_s(self) -> float:
        """Seconds until the case has to be over. Raises OutOfTime when there are none."""
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise self._out_of_time()
        return left

    def at_most(self, seconds: float) -> float:
        """So many seconds, or till shortly after the case: for a wait that nothing else ends. Raises OutOfTime."""
        return min(seconds, self.left_s + BEYOND_S)

    def require_time(self) -> None:
        """Raise OutOfTime if the case has taken longer than it may."""
        _ = self.left_s

    def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine. Raises OutOfTime if it takes longer than the case has."""

        async def limited() -> T:
            async with asyncio.timeout(self._ends_at - time.monotonic()) as limit:
                try:
                    return await work
                except TimeoutError:
                    if not limit.expired():
                        raise
                    raise self._out_of_time() from None

        try:
            return asyncio.run(limited())
        except TimeoutError:
            raise self._out_of_time() from None

    def wait_until(self, condition: Callable[[], bool], *, what: str, every_s: float = 0.005) -> float:
        """Wait until `condition` holds; the seconds it took. Raises OutOfTime that says `what` did not happen."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() > self._ends_at:
                raise OutOfTime(f"it did not happen within the time limit that {what}", hint="raise --time-limit")
            time.sleep(every_s)
        return time.monotonic() - began

    def _out_of_time(self) -> OutOfTime:
        took = format_seconds(self._time_limit_s)
        hint = "raise --time-limit, or give the experiment less to do"
        return OutOfTime(f"a case of the experiment did not end within {took}", hint=hint)

    # servers

    @property
    def server_labels(self) -> tuple[str, ...]:
        """The servers that the experiment used: product, version and source."""
        return tuple(self._labels)

    def redis(self, servers: int = 1, *, replicas: int = 0) -> list[Server]:
        """Servers, given or started; the first has the product too. Raises ServerError, InputError."""
        found = self.pool.redis(
            _Group("redis", self.given.redis, self.given.source), servers=servers, replicas=replicas
        )
        return self._noted(found)

    def own_redis(
        self, servers: int = 1, *, replicas: int = 0, appendfsync: AppendFsync = "off", moves_clock: bool = False
    ) -> list[Server]:
        """New servers of this experiment alone, which it may break: never given ones. Raises ServerError.

        `pool.process_of` has the process of each. With `moves_clock` their wall clocks can be moved. They are stopped
        at the end of the experiment.
        """
        self._own += 1
        group = _Group(f"own-{self._own}", (), self.given.source)
        settings = {"servers": servers, "replicas": replicas}
        found = self.pool.redis(group, appendfsync, **settings, moves_clock=moves_clock)
        self._open.callback(self.pool.stop, found)
        return self._noted(found)

    def postgres(self) -> PostgresServer:
        """The database, given or started. Raises ServerError, InputError."""
        url = self.given.postgres
        group = _Group("postgres", () if url is None else (url,), self.given.source)
        found = self.pool.postgres(group, sessions=0 if url is not None else SESSIONS)
        return self._noted([found])[0]

    def own_postgres(self) -> PostgresEndpoint:
        """The private socket of a database that pybench starts, never of a given one. Raises ServerError."""
        server = self.pool.postgres(_Group("own-postgres", (), self.given.source), sessions=SESSIONS)
        return cast("SupervisedPostgres", self.pool.process_of(self._noted([server])[0])).private

    def _noted(self, servers: list[T]) -> list[T]:
        self._agree(cast("list[Server]", servers))
        for server in cast("list[Server]", servers):
            self._labels[f"{server.label} ({server.source})"] = None
            if not server.started_by_us and hasattr(server, "replicas"):
                # At the first use, so that the removal runs after the clients are closed.
                self._remove_at_end(server)
        return servers

    def _agree(self, servers: Sequence[AnyServer]) -> None:
        new = {str(one.endpoint): one for one in servers if str(one.endpoint) not in self._agreed}
        elsewhere = [one for one in new.values() if not one.started_by_us and not one.is_local()]
        if elsewhere:
            self._consent(elsewhere)
            # Whoever was asked may have taken a while.
            self.allow_time()
        self._agreed.update(new)

    def _remove_at_end(self, server: Server) -> None:
        mark = f"keys of {server.endpoint}"
        if mark not in self._schemas:
            self._schemas[mark] = ""
            prefix = self.prefix
            self._cleaned(lambda: remove_keys(server, prefix))

    def _cleaned(self, work: Callable[[], object]) -> None:
        """Have `work` done at the end. Its failure hides no earlier one: a server that is lost cannot be cleaned."""

        def done(kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
            with suppress(*(() if kind is None else (ServerError,))):
                work()

        self._open.push(done)

    # locks and processes

    def shortage(self, lock: ChosenLock) -> str:
        """Why the given servers are not enough for `lock`, as a clause; empty where they are."""
        entry = lock.entry
        if entry is None or not self.given.redis:
            return ""
        needed = entry.servers_of_kind(ServerKind.REDIS, lock.arguments)
        if needed > len(self.given.redis):
            there = plural(len(self.given.redis), "was", "were")
            return f"it needs {plural(needed, 'Redis server')}, and {there} given"
        replicas = entry.replicas(lock.arguments)
        connected = (self.redis()[0].facts.replicas or 0) if replicas else 0
        if replicas > connected:
            return f"it needs {plural(replicas, 'replica')}, and the given server has {connected or 'none'}"
        return ""

    def refusal(self, lock: ChosenLock) -> str:
        """Why a client of `lock` does not take the parameter `ttl`, as a clause; empty where it does.

        Starts or probes the servers of the lock. Raises ServerError, InputError.
        """
        client = self.client(lock)
        try:
            # Nothing is sent before the lock is entered.
            client.lock("lease", ttl=self.length("ttl") if "ttl" in self._values else "10s")
        except ValueError as error:
            # Its hint is for programs.
            return str(error).partition("\n")[0]
        return ""

    def client_spec(self, lock: ChosenLock, *, connections: int = 8) -> ClientSpec:
        """How to open a client of `lock`. Raises ServerError, InputError."""
        entry = lock.entry
        assert entry is not None, "only a lock of the catalogue has a client"
        redis: list[str] | None = None
        postgres: str | None = None
        kinds = entry.server_kinds or (ServerKind.REDIS,)
        if ServerKind.REDIS in kinds:
            needed = max(1, entry.servers_of_kind(ServerKind.REDIS, lock.arguments))
            replicas = 0 if self.given.redis else entry.replicas(lock.arguments)
            redis = [self.url(server) for server in self.redis(needed, replicas=replicas)]
        if ServerKind.POSTGRES in kinds:
            postgres = self.url(self.postgres())
        table = self._lock_table() if entry.uses_rows else None
        return ClientSpec(lock.text, redis, postgres, connections, table)

    def client(self, lock: ChosenLock, *, connections: int = 8) -> LockClient:
        """A client of `lock`, closed when the experiment ends. `connections` as in `LockClient`."""
        client = self.client_spec(lock, connections=connections).open()
        self._open.callback(client.close)
        return client

    def actor(self, role: Callable[..., None], order: Mapping[str, Any]) -> Actor:
        """A process of its own that plays `role`, a function of a module, with `order`; killed at the end at latest."""
        actor = Actor(role, order, left_s=lambda: self.left_s)
        self._open.callback(actor.end)
        return actor

    def url(self, server: Server | PostgresServer) -> str:
        """Of a server, with its password: for clients only, never to be shown."""
        endpoint = server.endpoint
        if isinstance(endpoint, Endpoint):
            return endpoint.url.get_secret_value()
        return str(endpoint) if self.given.postgres is None else self.given.postgres.get_secret_value()

    def at_end(self, work: Callable[[], object]) -> None:
        """Have `work` done when the experiment ends, before what was set up earlier is taken down."""
        self._open.callback(work)

    def new_schema(self, use: str) -> str:
        """The name of a schema of the experiment that is dropped at its end: `use` is a short word."""
        from pybench.servers.postgres import drop_schema, schema_name

        name = schema_name(self.prefix.removeprefix("pybench:lab-").rstrip(":"), use)
        server = self.postgres()

        def drop() -> None:
            with server.session() as session:
                drop_schema(session, name)

        self._cleaned(drop)
        return name

    def lock_schema(self) -> str:
        """The schema with the table of locks that are rows, made at the first call. Raises ServerError."""
        from pybench import _core
        from pybench.servers.postgres import prepare_schema

        if "locks" not in self._schemas:
            name = self._schemas["locks"] = self.new_schema("locks")
            with self.postgres().session() as session:
                prepare_schema(session, name, _core.lock_rows)
        return self._schemas["locks"]

    def _lock_table(self) -> str:
        from pybench.servers.postgres import table_name

        return table_name(self.lock_schema())
