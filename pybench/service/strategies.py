"""The strategies that requests name: which servers each takes, and its lock client.

Promises: the clients are bounded in number, whatever texts requests send; the one that was used longest ago is closed
to make room, if nobody uses it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pybench.errors import InputError
from pybench.lock_client import LockClient, MeasuredLockClient
from pybench.notation import parse_call
from pybench.service.answers import Problem, busy, invalid, refused_input
from pybench.service.breaker import Breaker
from pybench.service.models import MOST_STRATEGY
from pybench.service.settings import Place, Settings
from pybench.strategies import CATALOGUE, Arguments, Scalar, ServerKind, parse_strategy, strategy_text

if TYPE_CHECKING:
    from pybench.service.calls import Call

MOST_CLIENTS: Final = 32
"""In one process. Each has a thread, and a connection to each of its servers."""
ALIASES: Final = {"safe": "mutex", "simple": "mutex"}
"""Names of the public contract."""
ATOMIC: Final = "atomic"
"""A purchase without a lock, which checks and writes in one step."""

_TEXTS_KEPT = 1_000
_NO_LOCK = {
    "pg-optimistic": "it keeps nobody out: it repeats the work, and a request does its work once",
    "pg-serializable": "it keeps nobody out: it repeats the work, and a request does its work once",
}


class Watched(Protocol):
    """What locks need to know of a server."""

    @property
    def is_up(self) -> bool:
        """Whether it answers."""


class Server(NamedTuple):
    """A server of the service."""

    place: Place
    watched: Watched


class Strategy:
    """A strategy with its servers, its client, and the requests that wait for its locks."""

    def __init__(
        self,
        text: str,
        name: str,
        servers: Mapping[ServerKind, Sequence[Server]],
        *,
        needed: int,
        connections: int,
        breaker: Breaker,
    ) -> None:
        self.text: Final = text
        self.name: Final = name
        self.servers: Final = tuple(server.watched for some in servers.values() for server in some)
        self.needed: Final = needed
        """How many of its servers have to answer."""
        self.breaker: Final = breaker
        self.waiting: Final[set[Call]] = set()
        self.room: Final = asyncio.Semaphore(connections) if CATALOGUE[name].owns_connection else None
        """A place for each connection of a strategy that needs one for each lock; None: it shares connections."""
        self.holding = 0
        self.client: LockClient | None = None
        self._connections = connections
        self._urls = {kind: [server.place.url for server in some] for kind, some in servers.items()}

    @property
    def takes_lock(self) -> bool:
        """False for `none`."""
        return bool(self.servers)

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for its locks or holds one."""
        return not self.waiting and not self.holding

    @property
    def up(self) -> int:
        """How many of its servers answer."""
        return sum(server.is_up for server in self.servers)

    def new_client(self, table: str | None) -> LockClient:
        """A client of its servers; `table` is that of locks that are rows. Raises ValueError."""
        redis, postgres = self._urls.get(ServerKind.REDIS), self._urls.get(ServerKind.POSTGRES)
        return MeasuredLockClient(
            self.text,
            redis=redis,
            postgres=postgres[0] if postgres else None,
            connections=self._connections,
            table=table if CATALOGUE[self.name].uses_rows else None,
        )


class Strategies:
    """All strategies that requests have named, by their texts."""

    def __init__(self, settings: Settings, watched: Mapping[str, Sequence[Watched]]) -> None:
        """`watched` has the servers of each role: `redis`, `redlock`, `postgres`."""
        places = {
            "redis": [] if settings.redis is None else [settings.redis],
            "redlock": settings.redlock,
            "postgres": [] if settings.postgres is None else [settings.postgres],
        }
        self._servers = {role: list(map(Server, some, watched[role])) for role, some in places.items()}
        self._table = settings.table
        self._breaker_after = settings.breaker
        self._connections = settings.connections
        self._texts: dict[str, Strategy] = {}
        self._strategies: dict[str, Strategy] = {}
        self._open: dict[Strategy, None] = {}
        self._closing: set[asyncio.Future[None]] = set()
        self.is_stopping = False
        """Whether the service ends: nobody waits for a lock any more."""

    @property
    def open(self) -> Iterator[Strategy]:
        """Those that have a client."""
        return iter(tuple(self._open))

    def named(self, text: str) -> Strategy:
        """The strategy that a request names. Raises Problem."""
        known = self._texts.get(text)
        if known is None:
            known = self._parsed(text)
            if len(self._texts) >= _TEXTS_KEPT:
                self._texts.clear()
            self._texts[text] = known
        return known

    def client_of(self, strategy: Strategy) -> LockClient:
        """The client of a strategy, made now if there is none. Raises Problem."""
        client = strategy.client
        if client is None:
            self._make_room()
            try:
                client = strategy.client = strategy.new_client(self._table)
            except ValueError as error:
                raise invalid(str(error)) from None
        else:
            del self._open[strategy]
        # The one used last is the last.
        self._open[strategy] = None
        return client

    async def close(self) -> None:
        """Release all locks and close all clients."""
        clients = [strategy.client for strategy in self._open if strategy.client is not None]
        self._open.clear()
        await asyncio.gather(*(asyncio.to_thread(client.close) for client in clients), *self._closing)

    def _make_room(self) -> None:
        if len(self._open) < MOST_CLIENTS:
            return
        idle = next((strategy for strategy in self._open if strategy.is_idle), None)
        if idle is None:
            raise busy(f"{MOST_CLIENTS} strategies are in use already")
        del self._open[idle]
        client, idle.client = idle.client, None
        if client is not None:
            # It waits for a server that is silent.
            closing = asyncio.ensure_future(asyncio.to_thread(client.close))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _parsed(self, text: str) -> Strategy:
        if len(text) > MOST_STRATEGY:
            raise invalid(f"a strategy has at most {MOST_STRATEGY} characters")
        if text == ATOMIC:
            raise Problem(422, "Strategy refused", f"{ATOMIC} takes no lock: it is a way to write, for purchases")
        try:
            name, arguments = parse_strategy(ALIASES.get(text, text))
        except InputError as problem:
            raise refused_input(problem) from None
        if name in _NO_LOCK:
            raise Problem(422, "Strategy refused", f"{name} is no lock for a request: {_NO_LOCK[name]}")
        entry = CATALOGUE[name]
        # The default number of servers is that of the service.
        nodes = entry.argument("nodes", arguments) if "nodes" in parse_call(text).named else None
        servers = {kind: self._servers_of(name, kind, arguments, nodes) for kind in entry.server_kinds}
        count = sum(map(len, servers.values()))
        if entry.argument("nodes", arguments) is not None:
            arguments = tuple(sorted({**dict(arguments), "nodes": count}.items()))
        full = strategy_text(name, arguments)
        known = self._strategies.get(full)
        if known is None:
            # A lock of several servers that is no quorum, such as one of Redis and Postgres, needs them all.
            needed = count if entry.argument("nodes", arguments) is None else count // 2 + 1
            known = Strategy(
                full,
                name,
                servers,
                needed=needed,
                connections=self._connections,
                breaker=Breaker(self._breaker_after),
            )
            if len(self._strategies) >= _TEXTS_KEPT:
                self._strategies = {one.text: one for one in self._open}
            self._strategies[full] = known
        return known

    def _servers_of(self, name: str, kind: ServerKind, arguments: Arguments, nodes: Scalar | None) -> list[Server]:
        """The servers of a kind that a strategy uses, `nodes` of them or all. Raises Problem if there are too few."""
        entry = CATALOGUE[name]
        role, needed = kind.value, 1
        if kind is ServerKind.REDIS and entry.argument("nodes", arguments) is not None and not entry.spreads_keys:
            role = "redlock"
            needed = int(nodes) if nodes is not None else max(1, len(self._servers[role]))
        servers = self._servers[role]
        if len(servers) < needed:
            message = f"{name} needs {needed} server{'s' if needed > 1 else ''}, and the service has {len(servers)}"
            raise Problem(422, "Strategy refused", f"{message}: start it with --{role}")
        if entry.uses_rows and kind is ServerKind.POSTGRES and self._table is None:
            raise Problem(422, "Strategy refused", f"{name} needs a table, and the service may not make one")
        if entry.replicas(arguments) > servers[0].place.replicas:
            message = f"{name} needs replicas of its server, which had {servers[0].place.replicas} at the start"
            raise Problem(422, "Strategy refused", message)
        return servers[:needed]
