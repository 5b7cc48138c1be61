"""The servers of one run: each is started or probed once, and all are ended together.

Promises: leaving the `with` block ends every server that the pool started, and touches no other.
Not for use by several threads, but for `start_again`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar, cast

from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.numbers import format_seconds
from pybench.servers.answered import GIVEN
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.config import AppendFsync
from pybench.servers.redis.conversation import Conversation, fields
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.probe import probe
from pybench.servers.redis.server import Server
from pybench.servers.redis.supervisor import SupervisedServer

if TYPE_CHECKING:
    from pybench.servers import AnyServer
    from pybench.servers.postgres import PostgresServer
    from pybench.servers.postgres.supervisor import SupervisedPostgres

    StartedServer: TypeAlias = SupervisedServer | SupervisedPostgres

AnyKind = TypeVar("AnyKind", bound="Server | PostgresServer")

REPLICAS_S = 10.0
"""Time until a primary counts all its replicas."""


class Backend(Protocol):
    """The part of a backend of the matrix that the pool needs."""

    @property
    def name(self) -> str:
        """Unique in its matrix."""

    @property
    def urls(self) -> Sequence[SecretStr]:
        """Given servers; none: start them."""

    @property
    def source(self) -> binaries.Source:
        """Where the binary to start is looked for."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What sets Redis servers of one backend apart."""

    appendfsync: AppendFsync
    replicas: int
    moves_clock: bool


class ServerPool:
    """Redis servers by backend and settings, a Postgres by its backend.

    A context manager; `close` may be called more than once.

    Those that it starts keep to `cores` where any are named.
    """

    def __init__(self) -> None:
        self.cores: Sequence[int] = ()
        self._servers: dict[tuple[str, Settings], list[Server]] = {}
        self._postgres: dict[str, PostgresServer] = {}
        self._supervised: list[StartedServer] = []
        self._renewing = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def redis(
        self,
        backend: Backend,
        appendfsync: AppendFsync = "off",
        *,
        servers: int = 1,
        replicas: int = 0,
        moves_clock: bool = False,
    ) -> list[Server]:
        """The first `servers` of the backend's servers, with these settings and so many replicas each.

        A later call for more servers gets the same ones first. Given servers keep the replicas that they have. With
        `moves_clock`, the wall clock of a server that pybench starts can be moved. Raises ServerError, InputError for a
        URL.
        """
        given = backend.urls
        assert not given or servers <= len(given), "a plan refuses cells that need more servers than are given"
        settings = Settings(appendfsync, replicas, moves_clock=moves_clock)
        known = self._servers.setdefault((backend.name, settings), [])
        while len(known) < servers:
            if given:
                known.append(self._connect(given[len(known)], appendfsync, known))
            else:
                known.append(self._start(backend, settings))
        return known[:servers]

    def postgres(self, backend: Backend, *, sessions: int = 0) -> PostgresServer:
        """The backend's one server. The facts of a given server say how many sessions it has free.

        A server that pybench starts has room for `sessions` of a trial, so the first call has to ask for the most.
        Raises ServerError, InputError for a URL.
        """
        # Imported here, because psycopg takes 0.1 s to load.
        from pybench.servers import postgres

        server = self._postgres.get(backend.name)
        if server is None and backend.urls:
            server = postgres.given(backend.urls[0])
        elif server is None:
            supervised, server = postgres.start(backend.source, sessions=sessions, cores=self.cores)
            self._supervised.append(supervised)
        assert backend.urls or postgres.room(server) >= sessions, "the first call asks for the most sessions"
        self._postgres[backend.name] = server
        return server

    def process_of(self, server: AnyServer) -> StartedServer:
        """The process of a server that the pool started."""
        return next(one for one in self._supervised if one.endpoint == server.endpoint)

    def start_again(self, process: StartedServer) -> None:
        """Start `process` if it has ended, wait until it is ready, and renew what is known of it. Raises ServerError.

        Several threads may call it, each for another process. `await_replicas` waits for the replicas of a primary.
        """
        process.start_again()
        facts = process.wait_until_ready()
        with self._renewing:
            for servers in self._servers.values():
                servers[:] = [_renewed(one, process, facts) for one in servers]
            self._postgres = {name: _renewed(one, process, facts) for name, one in self._postgres.items()}

    def await_replicas(self, process: StartedServer) -> None:
        """Wait until `process`, if it is a primary, counts all its replicas. Raises ServerError."""
        for server in (one for servers in self._servers.values() for one in servers):
            if server.endpoint == process.endpoint:
                _await_replicas(server)

    def check(self) -> None:
        """Raise ServerError, with what it logged, if a server that the pool started has ended by itself."""
        for one in self._supervised:
            end = one.end()
            if end is not None:
                tail = one.log_tail()
                raise ServerError(
                    f"in the middle of the run the server that pybench had started {end} ({one.binary.path})"
                    + (f"; its last log lines:\n{tail}" if tail else ""),
                    hint="the kernel kills a process that takes too much memory, and logs it: see dmesg"
                    if "SIGKILL" in end
                    else "pybench doctor tries to start another",
                )

    def stop(self, servers: Sequence[Server]) -> None:
        """End these servers, which the pool started, and their replicas; a later call for as many starts others."""
        stopped = [one for server in servers for one in (server, *server.replicas)]
        for process in [self.process_of(one) for one in stopped]:
            self._supervised.remove(process)
            process.stop()
        gone = {server.endpoint for server in stopped}
        for known in self._servers.values():
            known[:] = [server for server in known if server.endpoint not in gone]

    def close(self) -> None:
        """End every server that the pool started."""
        while self._supervised:
            self._supervised.pop().stop()
        self._servers.clear()
        self._postgres.clear()

    def _start(self, backend: Backend, settings: Settings) -> Server:
        binary = binaries.find(backend.source)
        supervised, facts = supervisor.start(
            binary,
            appendfsync=settings.appendfsync,
            cores=self.cores,
            takes_replicas=settings.replicas > 0,
            moves_clock=settings.moves_clock,
        )
        self._supervised.append(supervised)
        followers = tuple(self._follow(supervised, settings.appendfsync) for _ in range(settings.replicas))
        server = Server(supervised.endpoint, facts, binary.source, supervised.pid, followers)
        _await_replicas(server)
        return server

    def _follow(self, primary: SupervisedServer, appendfsync: AppendFsync) -> Server:
        """A replica of `primary`, which has its data already."""
        supervised, facts = supervisor.start(
            primary.binary, appendfsync=appendfsync, cores=self.cores, follows=primary.feeds
        )
        self._supervised.append(supervised)
        return Server(supervised.endpoint, facts, primary.binary.source, supervised.pid)

    def _connect(self, url: SecretStr, appendfsync: AppendFsync, others: Sequence[Server]) -> Server:
        endpoint = Endpoint.parse(url)
        facts = probe(endpoint)
        # "off" also stands for a cell without this axis. The record has the setting of the server.
        if appendfsync != "off" and facts.appendfsync not in (appendfsync, None):
            raise ServerError(
                f"{endpoint} runs with appendfsync {facts.appendfsync}, a cell asks for {appendfsync}",
                hint="pybench does not change the settings of a given server: change them, or drop the axis",
            )
        for other in others:
            if facts.run_id is not None and facts.run_id == other.facts.run_id:
                raise ServerError(
                    f"{other.endpoint} and {endpoint} are the same server",
                    hint="a lock of several servers needs each on its own: give others, or lower nodes",
                )
        return Server(endpoint, facts, GIVEN)


def _renewed(server: AnyKind, process: StartedServer, facts: object) -> AnyKind:
    """`server` with its new process and facts, if it is the one of `process`."""
    if server.endpoint != process.endpoint:
        return server
    return cast("AnyKind", replace(cast("Any", server), pid=process.pid, facts=facts))


def _await_replicas(primary: Server) -> None:
    """Wait until `primary` counts all its replicas: each from its first message on, up to 1 s after the link is up."""
    wanted = len(primary.replicas)
    if not wanted:
        return
    deadline = time.monotonic() + REPLICAS_S
    with primary.conversation(seconds=2 * REPLICAS_S + 1) as conversation:
        # Without a link, a write has no place in the stream of replication that WAIT could wait for.
        while _linked(conversation) < wanted and time.monotonic() < deadline:
            time.sleep(0.02)
        # WAIT waits only for writes of its own connection.
        conversation.ask("SET", "pybench:replicas", "1")
        conversation.ask("DEL", "pybench:replicas")
        there = conversation.ask("WAIT", str(wanted), str(int(REPLICAS_S * 1_000)))
    if not isinstance(there, int) or there < wanted:
        raise ServerError(
            f"not all of the {wanted} replicas that pybench started follow their primary after "
            f"{format_seconds(REPLICAS_S)}",
            hint="is this machine very busy? pybench doctor looks at it",
        )


def _linked(primary: Conversation) -> int:
    """How many replicas have a connection to the primary."""
    return int(fields(primary.ask("INFO", "replication"))["connected_slaves"])
