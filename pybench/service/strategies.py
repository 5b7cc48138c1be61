"""The strategies that requests name: which servers each takes, and its lock client.

Promises: the clients are bounded in number, whatever texts requests send; the one that was used longest ago is closed
to make room, if nobody uses it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from pybench.errors import InputError
from pybench.lock_client import LockClient
from pybench.service.answers import Problem, busy, invalid
from pybench.service.breaker import Breaker
from pybench.service.settings import Place, Settings
from pybench.strategies import CATALOGUE, Arguments, ServerKind, parse_strategy, strategy_text

if TYPE_CHECKING:
    from pybench.service.calls import Call

MOST_CLIENTS: Final = 32
"""In one process. Each has a thread, and a connection to each of its servers."""
CONNECTIONS: Final = 16
"""How many locks at once a strategy has that needs a connection for each."""
ALIASES: Final = {"safe": "mutex", "simple": "mutex"}
"""Names of the public contract."""

_TEXTS_KEPT = 1_000
_NO_LOCK = {
    "pg-optimistic": "it keeps nobody out: it repeats the work, and a request does its work once",
    "pg-serializable": "it keeps nobody out: it repeats the work, and a request does its work once",
    "layered": "it keeps nobody out by itself: it guards rows of its own table, and not the stock",
}


class Watched(Protocol):
    """A server, as far as locks look at it."""

    @property
    def is_up(self) -> bool:
        """Whether it answers."""


class Strategy:
    """A strategy with its servers, its client, and the requests that wait for its locks."""

    def __init__(
        self, text: str, name: str, places: Sequence[tuple[Place, Watched]], *, needed: int, breaker: Breaker
    ) -> None:
        self.text: Final = text
        self.name: Final = name
        self.servers: Final = tuple(watched for _, watched in places)
        self.needed: Final = needed
        """How many of its servers have to answer."""
        self.breaker: Final = breaker
        self.waiting: Final[set[Call]] = set()
        self.holding = 0
        self.client: LockClient | None = None
        self._urls = [place.url for place, _ in places]

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

    def new_client(self) -> LockClient:
        """A client of its servers. Raises ValueError for a strategy that a client does not take."""
        if CATALOGUE[self.name].server_kinds == (ServerKind.POSTGRES,):
            return LockClient(self.text, postgres=self._urls[0], connections=CONNECTIONS)
        return LockClient(self.text, redis=self._urls, connections=CONNECTIONS)


class Strategies:
    """All strategies that requests have named, by their texts."""

    def __init__(self, settings: Settings, watched: Mapping[str, Sequence[Watched]]) -> None:
        """`watched` has the servers of each role: `redis`, `redlock`, `postgres`."""
        self._places: dict[str, list[tuple[Place, Watched]]] = {
            "redis": [] if settings.redis is None else list(zip([settings.redis], watched["redis"], strict=True)),
            "redlock": list(zip(settings.redlock, watched["redlock"], strict=True)),
            "postgres": []
            if settings.postgres is None
            else list(zip([settings.postgres], watched["postgres"], strict=True)),
        }
        self._breaker_after = settings.breaker
        self._texts: dict[str, Strategy] = {}
        self._strategies: dict[str, Strategy] = {}
        self._open: dict[Strategy, None] = {}
        self._closing: set[asyncio.Future[None]] = set()

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
                client = strategy.client = strategy.new_client()
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
        try:
            name, arguments = parse_strategy(ALIASES.get(text, text))
        except InputError as problem:
            raise invalid(f"{problem.message}: {problem.hint}" if problem.hint else problem.message) from None
        if name in _NO_LOCK:
            raise Problem(422, "Strategy refused", f"{name} is no lock for a request: {_NO_LOCK[name]}")
        places = self._servers_of(name, arguments)
        entry = CATALOGUE[name]
        if entry.argument("nodes", arguments) is not None:
            arguments = tuple(sorted({**dict(arguments), "nodes": len(places)}.items()))
        full = strategy_text(name, arguments)
        known = self._strategies.get(full)
        if known is None:
            # A lock of several servers that is no quorum needs them all.
            needed = len(places) // 2 + 1 if "redlock" in name else len(places)
            known = Strategy(full, name, places, needed=needed, breaker=Breaker(self._breaker_after))
            if len(self._strategies) >= _TEXTS_KEPT:
                self._strategies = {one.text: one for one in self._open}
            self._strategies[full] = known
        return known

    def _servers_of(self, name: str, arguments: Arguments) -> list[tuple[Place, Watched]]:
        """The servers of a strategy. Raises Problem where the service has none, or too few."""
        entry = CATALOGUE[name]
        if not entry.server_kinds:
            return []
        if entry.server_kinds == (ServerKind.POSTGRES,):
            role, needed = "postgres", 1
        elif entry.argument("nodes", arguments) is None:
            role, needed = "redis", 1
        else:
            there = len(self._places["redlock"])
            role = "redlock"
            needed = entry.servers(arguments) if "nodes" in dict(arguments) else max(1, there)
        places = self._places[role]
        if len(places) < needed:
            message = f"{name} needs {needed} server{'s' if needed > 1 else ''}, and the service has {len(places)}"
            raise Problem(422, "Strategy refused", f"{message}: start it with --{role}")
        return places[:needed]
