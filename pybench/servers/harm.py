"""What a fault does to a server: how it begins, and how the server becomes healthy again.

Promises: after `end` the server is healthy: it runs, and it replies. After `settle` its replicas follow it. Only
servers that the pool started are ended or stopped. Errors are ServerErrors.
Does not do: choosing the moments; see `running.faults`.
"""

from __future__ import annotations

import shutil
import signal
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pybench.errors import ServerError
from pybench.servers.connection import ANSWER_S
from pybench.servers.redis.server import Server

if TYPE_CHECKING:
    from pathlib import Path

    from pybench.servers import AnyServer, ServerPool
    from pybench.servers.pool import StartedServer

_BUSY = "local over = os.clock() + tonumber(ARGV[1]) while os.clock() < over do end return 1"
"""Lua that computes for so many seconds. Meanwhile the server, which has one thread for commands, serves nobody."""

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
            self._save_and_end(self._server)
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

    def _save_and_end(self, server: Server) -> None:
        try:
            with server.conversation() as conversation:
                conversation.ask("SHUTDOWN", "SAVE")
        except ServerError:
            # The server ends without a reply. One that refuses to save, as on a full disk, still runs.
            if self._process.is_running():
                self._process.await_end(ANSWER_S)


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


class Slow(Harm):
    """A script keeps the server busy for `seconds`; `begin` returns when it has ended, for no server can end it."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._server, self._seconds = server, seconds

    def begin(self) -> None:
        """See `Harm`."""
        with self._server.conversation(seconds=3 * self._seconds + ANSWER_S) as conversation:
            conversation.ask("EVAL", _BUSY, "0", str(self._seconds))


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


def _remove_data(folder: Path) -> None:
    (folder / SNAPSHOT).unlink(missing_ok=True)
    shutil.rmtree(folder / APPENDED, ignore_errors=True)
