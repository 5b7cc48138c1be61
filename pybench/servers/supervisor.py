"""Start a real server for one run and make sure that it ends.

Promises: the server runs in a private folder, listens on a Unix socket there or on loopback, and is gone, folder and
all, after `stop`, at the interpreter's end, and when this process dies in any way (see `keeper`).
Signals are not caught here: whoever turns SIGTERM into an exception gets a tidy end, everybody else the keeper's.
"""

from __future__ import annotations

import atexit
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.servers import folder as folders
from pybench.servers import keeper, processes
from pybench.servers.binaries import Binary
from pybench.servers.config import FILES_WANTED, LOOPBACK, AppendFsync, Primary, config_text
from pybench.servers.endpoint import Endpoint
from pybench.servers.folder import ServerFolder
from pybench.servers.probe import Facts, Role, probe
from pybench.servers.processes import ProcessId

Transport = Literal["unix", "tcp"]

START_S = 15.0
"""Starting takes 0.1 s; a machine that swaps is given this long."""

LOOK_S = 0.5
"""For one look at whether it answers: in between it may have ended."""

STOP_S = keeper.PATIENCE_S + 4.0

PORT_TRIES = 5
_PORT_TAKEN = "Address already in use"


class SupervisedServer:
    """A server that `start` started. `stop` may be called more than once."""

    def __init__(
        self,
        binary: Binary,
        endpoint: Endpoint,
        folder: ServerFolder,
        process: subprocess.Popen[bytes],
        *,
        role: Role = "primary",
        feeds: Primary | None = None,
    ) -> None:
        self.binary = binary
        self.role = role
        self.feeds = feeds
        """What replicas follow it by; None: it takes none."""
        self.endpoint = endpoint
        self.pid = 0
        self._process: ProcessId | None = None
        self._folder = folder
        self._keeper = process
        self._said = b""
        self._logged_at_start = 0
        self._stopped = False
        _running.add(self)

    @property
    def folder(self) -> Path:
        """The private folder, which is gone after `stop`."""
        return self._folder.path

    def is_running(self) -> bool:
        """Whether the server still runs; costs one look at a pipe."""
        return not self._stopped and self.end() is None

    def end(self) -> str | None:
        """How the server ended by itself, such as `was killed by SIGKILL`; None while it runs."""
        words = self._words()
        if "exit" in words:
            return _told(int(words["exit"]))
        status = self._keeper.poll()
        return None if status is None else f"ended with its keeper, which {_told(status)}"

    def log_tail(self, lines: int = 10) -> str:
        """The last lines that the server printed, without its password; empty when there are none.

        Of one that was ready, only those that came after that.
        """
        try:
            with (self.folder / folders.LOG).open(encoding="utf-8", errors="replace") as log:
                log.seek(self._logged_at_start)
                tail = "".join(deque(log, lines)).strip()
        except OSError:
            return ""
        password = self.endpoint.password
        return tail if password is None else tail.replace(password.get_secret_value(), "***")

    def stop(self) -> None:
        """End the server and remove its folder. At most some seconds, even when the server hangs."""
        if self._stopped:
            return
        self._stopped = True
        _running.discard(self)
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        try:
            self._keeper.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        # With a keeper that was killed the kernel ends the server, but only on Linux.
        if self._process is not None:
            processes.end(self._process, self.folder)
        self._keeper.stdout.close()
        self._folder.remove()

    def forget(self) -> None:
        """Let go of it without ending it: in a child after a fork, whose parent goes on with the server."""
        self._stopped = True
        for pipe in (self._keeper.stdin, self._keeper.stdout):
            assert pipe is not None
            pipe.close()
        self._keeper.returncode = 0  # It is no child of this process, and not to be waited for.
        os.close(self._folder.lock)

    def wait_until_ready(self) -> Facts:
        """Until it answers. Raises ServerError with the end of its log when it does not."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            words = self._words()
            if "exit" in words or self._keeper.poll() is not None:
                raise self._did_not_start("ended at once")
            if not self.pid and "pid" in words:
                self._note_pid(int(words["pid"]))
            try:
                facts = probe(self.endpoint, role=self.role, seconds=LOOK_S)
            except ServerError:
                time.sleep(0.005)
                continue
            # On TCP something else may have taken the port first; ours then ends, as the next round sees.
            if self.pid and facts.process_id == self.pid:
                self._logged_at_start = (self.folder / folders.LOG).stat().st_size
                return facts
            time.sleep(0.005)
        raise self._did_not_start(f"does not answer after {START_S:g} s")

    def _note_pid(self, pid: int) -> None:
        self.pid = pid
        self._process = ProcessId.of(pid)
        if self._process is not None:
            self._folder.note_server(self._process)

    def _did_not_start(self, how: str) -> ServerError:
        tail = self.log_tail()
        said = f"; it said last:\n{tail}" if tail else ", and said nothing"
        return ServerError(f"{self.binary.path} {how}{said}", hint="pybench doctor")

    def _words(self) -> dict[str, str]:
        """What the keeper has said: `pid` and, once the server ended by itself, `exit`."""
        pipe = self._keeper.stdout
        assert pipe is not None
        while select.select([pipe], [], [], 0)[0]:
            got = os.read(pipe.fileno(), 256)
            if not got:
                break
            self._said += got
        lines = self._said.decode().split("\n")[:-1]
        return {word: value for word, _, value in (line.partition(" ") for line in lines)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a server is to be started. It keeps to `cores` where any are named."""

    appendfsync: AppendFsync = "off"
    transport: Transport = "unix"
    password: SecretStr | None = None
    cores: Sequence[int] = ()
    takes_replicas: bool = False
    """Whether it listens for them, on loopback and with a password."""
    follows: Primary | None = None
    """The primary whose replica it is."""


def start(
    binary: Binary,
    *,
    appendfsync: AppendFsync = "off",
    transport: Transport = "unix",
    password: SecretStr | None = None,
    cores: Sequence[int] = (),
    takes_replicas: bool = False,
    follows: Primary | None = None,
) -> tuple[SupervisedServer, Facts]:
    """A new server that answers, and what it says of itself. A replica that answers has the data of its primary.

    It keeps to `cores` where any are named. Raises ServerError.
    """
    wanted = Wanted(appendfsync, transport, password, cores, takes_replicas, follows)
    for attempt in range(PORT_TRIES):
        server = _launch(binary, wanted)
        try:
            return server, server.wait_until_ready()
        except ServerError as error:
            server.stop()
            taken = (transport == "tcp" or takes_replicas) and _PORT_TAKEN in error.message
            if not taken or attempt == PORT_TRIES - 1:
                raise
        except BaseException:
            server.stop()
            raise
    raise AssertionError("the last attempt returns or raises")


def _launch(binary: Binary, wanted: Wanted) -> SupervisedServer:
    password, feeds = wanted.password, None
    if wanted.takes_replicas:
        # Everybody on this machine can reach a port.
        password = password or SecretStr(secrets.token_hex(16))
        feeds = Primary(_free_port(), password)
    folder = ServerFolder.create()
    try:
        endpoint = (
            Endpoint(unix=str(folder.path / folders.SOCKET), password=password)
            if wanted.transport == "unix"
            else Endpoint(host=LOOPBACK, port=_free_port(), password=password)
        )
        config = folder.path / folders.CONFIG
        config.touch(mode=0o600)
        text = config_text(binary, endpoint, folder.path, wanted.appendfsync, feeds=feeds, follows=wanted.follows)
        config.write_text(text, encoding="utf-8")
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", keeper.__file__),
                *(str(folder.path), str(FILES_WANTED), ",".join(map(str, wanted.cores)) or "all", str(folder.lock)),
                *(str(binary.path), str(config)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(folder.lock,),
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("PYBENCH_")},
        )
    except BaseException:
        folder.remove()
        raise
    role: Role = "primary" if wanted.follows is None else "replica"
    return SupervisedServer(binary, endpoint, folder, process, role=role, feeds=feeds)


def _told(status: int) -> str:
    """An exit status in words; a negative one is a signal's number."""
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _free_port() -> int:
    with socket.socket() as probe_socket:
        probe_socket.bind((LOOPBACK, 0))
        return int(probe_socket.getsockname()[1])


_running: set[SupervisedServer] = set()


@atexit.register
def _stop_all() -> None:
    for server in list(_running):
        server.stop()


def _forget_all() -> None:
    for server in list(_running):
        server.forget()
    _running.clear()


os.register_at_fork(after_in_child=_forget_all)
