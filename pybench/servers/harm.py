"""What a fault does to a server: how it begins, and how the server becomes healthy again.

Promises: after `end` the server is healthy: it runs, and it replies. After `settle` its replicas follow it. Only
servers that the pool started are ended or stopped. Errors are ServerErrors.
Does not do: choosing the moments; see `running.faults`.
"""

from __future__ import annotations

import shutil
import signal
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

from pybench.errors import ServerError
from pybench.servers.connection import ANSWER_S
from pybench.servers.redis.conversation import fields
from pybench.servers.redis.server import Server
from pybench.servers.supervised import LOOPBACK

if TYPE_CHECKING:
    from pathlib import Path

    from pybench.servers import AnyServer, ServerPool
    from pybench.servers.pool import StartedServer
    from pybench.servers.redis.conversation import Conversation
    from pybench.servers.redis.supervisor import SupervisedServer

_BUSY = "for _ = 1, tonumber(ARGV[1]) do end return 1"
"""Lua that counts. Meanwhile the server, which has one thread for commands, serves nobody. Redis gives it no clock."""
_FIRST_COUNT = 200_000
"""Takes a millisecond or so; how fast it went tells how far to count next."""
_MOST_LONGER = 16
"""The second script counts at most so many times as far: the first milliseconds of Lua are the fastest, and a script
whose length followed from them alone would take twice its time."""
_SURPLUS = 1.25
"""So much further: a machine is not always equally fast, and between two scripts the server serves everybody."""

_PROBE, _PROBE_MS = "pybench:clock", 60_000
"""A key whose end tells by which time the server counts, and its lease."""
_NEAR_MS = 100.0
"""The most by which the time of a server that has looked at its clock is behind."""
SNAPSHOT, APPENDED = "dump.rdb", "appendonlydir"
"""Where a Redis server keeps its data, in its folder."""


class Harm(ABC):
    """One fault of one server."""

    @abstractmethod
    def begin(self) -> None:
        """Do it. Raises ServerError."""

    def end(self) -> None:  # noqa: B027 - nothing is to be undone after some faults
        """Make the server healthy again. Raises ServerError."""

    def settle(self) -> None:  # noqa: B027 - most faults leave nothing to wait for
        """Wait, after the last fault, until the server has its replicas again. Raises ServerError."""


class Kill(Harm):
    """The server and all its processes end at once, without a word. What was only in its memory is lost."""

    def __init__(self, pool: ServerPool, server: AnyServer) -> None:
        self._pool = pool
        self._process: StartedServer = pool.process_of(server)

    def begin(self) -> None:
        """See `Harm`."""
        self._process.kill()

    def end(self) -> None:
        """See `Harm`."""
        self._pool.start_again(self._process)

    def settle(self) -> None:
        """See `Harm`."""
        self._pool.await_replicas(self._process)


class Restart(Kill):
    """The server is shut down in good order. It comes back with its data, or as an empty server."""

    def __init__(self, pool: ServerPool, server: AnyServer, *, keeps_data: bool) -> None:
        super().__init__(pool, server)
        self._server, self._keeps_data = server, keeps_data

    def begin(self) -> None:
        """See `Harm`."""
        if isinstance(self._server, Server) and self._keeps_data:
            _save_and_end(self._server, self._process)
        else:
            self._process.ask_to_end()
        self._process.await_end()
        if not self._keeps_data:
            _remove_data(self._process.folder)

    def end(self) -> None:
        """See `Harm`."""
        super().end()
        # Otherwise a later kill would bring this data back.
        (self._process.folder / SNAPSHOT).unlink(missing_ok=True)


class Failover(Harm):
    """A replica takes the place of its primary, without what the primary was told since their link was cut.

    The link is cut and the replica takes writes of its own (`REPLICAOF NO ONE`). After `lag_s` the primary is killed.
    Then a server with the data of the replica runs at the address of the primary, as behind a virtual address; this
    replica, and all others, follow it afterwards.
    """

    def __init__(self, pool: ServerPool, server: Server, lag_s: float, *, cut_replicas: int | None = None) -> None:
        """`cut_replicas`: how many replicas lose their link, the promoted one first; None: all."""
        self._pool, self._server, self._lag_s = pool, server, lag_s
        self._cut = server.replicas[:cut_replicas]
        self._primary = pool.process_of(server)
        self._promoted = pool.process_of(server.replicas[0])

    def begin(self) -> None:
        """See `Harm`."""
        self.cut()
        time.sleep(self._lag_s)
        self.take_over()

    def cut(self) -> None:
        """Cut the links to replicas. Raises ServerError."""
        for replica in self._cut:
            with replica.conversation() as conversation:
                conversation.ask("REPLICAOF", "NO", "ONE")

    def take_over(self) -> None:
        """Kill the primary, and put the data of the replica in its place. Raises ServerError."""
        self._primary.kill()
        _remove_data(self._primary.folder)
        self._save(self._server.replicas[0])
        for name, copy in ((SNAPSHOT, shutil.copy2), (APPENDED, shutil.copytree)):
            if (self._promoted.folder / name).exists():
                copy(self._promoted.folder / name, self._primary.folder / name)

    def end(self) -> None:
        """See `Harm`."""
        self._pool.start_again(self._primary)
        if not self._promoted.is_running():
            self._pool.start_again(self._promoted)
        for process in (self._primary, self._promoted):
            # Otherwise a later kill would bring this data back.
            (process.folder / SNAPSHOT).unlink(missing_ok=True)
        feeds = cast("SupervisedServer", self._primary).feeds
        assert feeds is not None, "a primary with replicas has a port for them"
        for replica in self._server.replicas:
            with replica.conversation() as conversation:
                conversation.ask("REPLICAOF", LOOPBACK, str(feeds.port))

    def settle(self) -> None:
        """See `Harm`."""
        self._pool.await_replicas(self._primary)

    def _save(self, replica: Server) -> None:
        """End the replica with all its data on disk."""
        with replica.conversation() as conversation:
            # After its first copy of the primary a replica writes a new file in the background.
            _await_background(conversation, "aof_rewrite_in_progress", "aof_rewrite_scheduled")
        _save_and_end(replica, self._promoted)


class Clock(Harm):
    """The wall clock of the server jumps by `by_ns`, and is true again at the end; leases follow it from then on."""

    def __init__(self, pool: ServerPool, server: Server, by_ns: int) -> None:
        self._server, self._by_ns = server, by_ns
        self._clock = cast("SupervisedServer", pool.process_of(server)).clock

    def begin(self) -> None:
        """See `Harm`."""
        self._move(self._by_ns)

    def end(self) -> None:
        """See `Harm`."""
        self._move(0)

    def _move(self, to_ns: int) -> None:
        """Move the clock, and wait until the server gives its keys ends by the new time: it reads the time in steps."""
        assert self._clock is not None, "a plan with this fault has such servers"
        self._clock.move(to_ns)
        near_ms = min(_NEAR_MS, abs(self._by_ns) / 2e6)
        deadline = time.monotonic() + ANSWER_S
        with self._server.conversation() as conversation:
            while time.monotonic() < deadline:
                sent = time.time()
                _, ends_at = conversation.ask_all([("SET", _PROBE, "", "PX", str(_PROBE_MS)), ("PEXPIRETIME", _PROBE)])
                took_ms = (time.time() - sent) * 1e3
                ahead_ms = float(str(ends_at)) - _PROBE_MS - sent * 1e3
                if -near_ms < ahead_ms - to_ns / 1e6 < near_ms + took_ms:
                    conversation.ask("DEL", _PROBE)
                    return
                time.sleep(0.001)
        raise ServerError(
            f"the clock of {self._server.endpoint} did not move", hint="pybench doctor tries to start another server"
        )


class Pause(Harm):
    """All processes of the server are stopped, and go on later as if nothing had happened."""

    def __init__(self, pool: ServerPool, server: AnyServer) -> None:
        self._process: StartedServer = pool.process_of(server)

    def begin(self) -> None:
        """See `Harm`."""
        self._process.signal_all(signal.SIGSTOP)

    def end(self) -> None:
        """See `Harm`."""
        self._process.signal_all(signal.SIGCONT)


class ClientPause(Harm):
    """A server that pybench did not start holds back all commands for `seconds` (`CLIENT PAUSE`), then goes on."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._server, self._seconds = server, seconds

    def begin(self) -> None:
        """See `Harm`."""
        with self._server.conversation() as conversation:
            conversation.ask("CLIENT", "PAUSE", str(max(1, round(self._seconds * 1_000))), "ALL")

    def end(self) -> None:
        """Wait until the server itself has ended the pause: it would hold back a command that ends it, too."""
        with self._server.conversation(seconds=self._seconds + ANSWER_S) as conversation:
            conversation.ask("PING")


class Slow(Harm):
    """A script keeps the server busy for `seconds`; `begin` returns when it has ended, for no server can end it."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._server, self._seconds = server, seconds

    def begin(self) -> None:
        """See `Harm`."""
        over, count = time.monotonic() + self._seconds, _FIRST_COUNT
        with self._server.conversation(seconds=3 * self._seconds + ANSWER_S) as conversation:
            while (began := time.monotonic()) < over:
                conversation.ask("EVAL", _BUSY, "0", str(count))
                now = time.monotonic()
                longer = _SURPLUS * (over - now) / (now - began)
                if count == _FIRST_COUNT:
                    longer = min(longer, _MOST_LONGER)
                count = max(_FIRST_COUNT, round(count * longer))


class ScriptFlush(Harm):
    """The server forgets all scripts, as after a restart."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def begin(self) -> None:
        """See `Harm`."""
        with self._server.conversation() as conversation:
            conversation.ask("SCRIPT", "FLUSH")


class ClientKill(Harm):
    """The server closes all connections of the trial. It keeps its data, except what lives in a session.

    The names of these connections begin with `client_names`.
    """

    def __init__(self, server: AnyServer, client_names: str) -> None:
        self._server, self._client_names = server, client_names

    def begin(self) -> None:
        """See `Harm`."""
        if isinstance(self._server, Server):
            self._close(self._server)
            return
        # Imported here, because psycopg takes 0.1 s to load.
        from pybench.servers import postgres

        with self._server.session() as session:
            postgres.end_sessions(session, self._client_names)

    def _close(self, server: Server) -> None:
        with server.conversation() as conversation:
            told = conversation.ask("CLIENT", "LIST")
            lines = told.decode("utf-8", "replace").splitlines() if isinstance(told, bytes) else []
            entries = [dict(word.partition("=")[::2] for word in line.split()) for line in lines]
            ids = [entry["id"] for entry in entries if entry.get("name", "").startswith(self._client_names)]
            if ids:
                conversation.ask_all([("CLIENT", "KILL", "ID", one) for one in ids])


def _save_and_end(server: Server, process: StartedServer) -> None:
    """Shut `server` down in good order, with its data on disk; returns when its `process` has ended."""
    try:
        with server.conversation() as conversation:
            conversation.ask("SHUTDOWN", "SAVE")
    except ServerError:
        # The server ends without a reply. One that refuses to save, as on a full disk, still runs.
        if process.is_running():
            process.await_end(ANSWER_S)


def _await_background(conversation: Conversation, *names: str) -> None:
    """Wait until the work in the background with these `names` in INFO is done. Raises ServerError."""
    deadline = time.monotonic() + ANSWER_S
    while time.monotonic() < deadline:
        info = fields(conversation.ask("INFO", "persistence"))
        if all(info.get(name, "0") == "0" for name in names):
            return
        time.sleep(0.005)
    raise ServerError(
        "a replica that pybench started does not finish its file", hint="is the disk of this machine slow?"
    )


def _remove_data(folder: Path) -> None:
    (folder / SNAPSHOT).unlink(missing_ok=True)
    shutil.rmtree(folder / APPENDED, ignore_errors=True)
