"""A server process that pybench started, under its keeper.

Promises: the server and its folder are gone after `stop`, at the end of the interpreter, and when this process dies in
any way (see `keeper`). No signal is caught here: a program that turns SIGTERM into an exception ends the server by
`stop`, any other by the keeper. Nothing here depends on the kind of server.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import psutil
from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.numbers import format_seconds
from pybench.servers import folder as folders
from pybench.servers import keeper, processes
from pybench.servers.folder import ServerFolder
from pybench.servers.processes import ProcessId
from pybench.servers.programs import Binary

Transport = Literal["unix", "tcp"]

LOOPBACK = "127.0.0.1"

START_S = 15.0
"""Time for a start: usually it takes 0.1 s, on a machine that swaps much longer."""

PORT_TRIES = 5
PORT_TAKEN = "Address already in use"

Ready = TypeVar("Ready")
Server = TypeVar("Server", bound="Supervised")


@dataclass(frozen=True, slots=True)
class Launch:
    """The arguments of a keeper."""

    command: Sequence[str]
    files: int
    """Open files that the server needs."""
    cores: Sequence[int] = ()
    """The cores that the server is bound to; none: it may use any."""
    user: tuple[int, int] | None = None
    """Numbers of the user and group that run it; None: those of this process."""
    endings: Sequence[signal.Signals] = (signal.SIGTERM,)
    """The signals that end it, each after the one before did not."""

    def keeper_command(self, folder: ServerFolder) -> list[str]:
        """The command line of the keeper."""
        return [
            *(sys.executable, "-I", "-S", keeper.__file__),
            *(str(folder.path), str(self.files), ",".join(map(str, self.cores)) or "all"),
            "same" if self.user is None else f"{self.user[0]}:{self.user[1]}",
            ",".join(number.name.removeprefix("SIG") for number in self.endings),
            *(str(folder.lock), *self.command),
        ]


class Supervised:
    """A server under its keeper, in a folder that is removed with it. `stop` may be called more than once."""

    def __init__(self, binary: Binary, folder: ServerFolder, launch: Launch, secret: SecretStr | None = None) -> None:
        self.binary = binary
        self.pid = 0
        self._secret = secret
        self._process: ProcessId | None = None
        self._folder = folder
        self._ending = launch.endings[0]
        self._patience_s = keeper.PATIENCE_S * (1 + len(launch.endings)) + 3.0
        self._keeper = subprocess.Popen(
            launch.keeper_command(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(folder.lock,),
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if not name.startswith(("PYBENCH_", "PG"))},
        )
        self._said = b""
        """What the keeper has printed since the latest start of the server."""
        self._logged_at_start = 0
        self._stopped = False
        running.add(self)

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

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the server. One that has ended meanwhile is left out.

        The first process is stopped before the others are listed, since it could make more of them; when it is killed,
        they are listed before, since they are then no longer known by it.
        """
        with contextlib.suppress(psutil.Error):
            first = psutil.Process(self.pid)
            if number is signal.SIGSTOP:
                first.send_signal(number)
            others = first.children(recursive=True)
            for one in (*others, first):
                with contextlib.suppress(psutil.Error):
                    one.send_signal(number)

    def ask_to_end(self) -> None:
        """Send the signal that ends it in good order; `await_end` waits for its end."""
        with contextlib.suppress(psutil.Error):
            psutil.Process(self.pid).send_signal(self._ending)

    def kill(self) -> None:
        """End all its processes by SIGKILL. The folder stays, and `start_again` starts it there."""
        # A database whose first process runs on would react to the end of the others.
        self.signal_all(signal.SIGSTOP)
        self.signal_all(signal.SIGKILL)
        self.await_end()

    def await_end(self, seconds: float = START_S) -> None:
        """Wait until it has ended by itself. Raises ServerError."""
        if self._end_within(seconds) is None:
            raise ServerError(
                f"the server that pybench had started did not end within {format_seconds(seconds)}",
                hint="is this machine very busy? pybench doctor looks at it",
            )

    def start_again(self) -> None:
        """Start it in its folder, if it has ended; `wait_until_ready` of its kind waits for it. Raises ServerError."""
        if self.is_running():
            return
        assert self._keeper.stdin is not None
        self.pid, self._said = 0, b""
        try:
            os.write(self._keeper.stdin.fileno(), keeper.START)
        except OSError:
            raise self._did_not_start("cannot be started again, because its keeper has ended") from None

    def log_tail(self, lines: int = 10) -> str:
        """The last lines that the server printed, without its password; empty when there are none.

        Once it was ready, only later lines count.
        """
        try:
            with (self.folder / folders.LOG).open(encoding="utf-8", errors="replace") as log:
                log.seek(self._logged_at_start)
                tail = "".join(deque(log, lines)).strip()
        except OSError:
            return ""
        return tail if self._secret is None else tail.replace(self._secret.get_secret_value(), "***")

    def stop(self) -> None:
        """End the server and remove its folder. At most some seconds, even when the server hangs."""
        if self._stopped:
            return
        self._stopped = True
        running.discard(self)
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        try:
            self._keeper.wait(self._patience_s)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        # The kernel kills the server of a killed keeper; `stop` returns only when that is done.
        if self._process is not None:
            processes.end(self._process, self.folder)
        self._keeper.stdout.close()
        self._folder.remove()

    def forget(self) -> None:
        """Close its handles without ending it: in a child after a fork, since the parent still uses the server."""
        self._stopped = True
        for pipe in (self._keeper.stdin, self._keeper.stdout):
            assert pipe is not None
            pipe.close()
        self._keeper.returncode = 0  # The keeper is no child of this process, which cannot wait for it.
        os.close(self._folder.lock)

    def await_ready(self, look: Callable[[], Ready | None]) -> Ready:
        """Wait until `look` finds it ready, and return that result. Raises ServerError with the end of its log."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            words = self._words()
            if "exit" in words or self._keeper.poll() is not None:
                raise self._did_not_start("ended at once")
            if not self.pid and "pid" in words:
                self._note_pid(int(words["pid"]))
            found = look()
            if found is not None and self.pid:
                self._logged_at_start = (self.folder / folders.LOG).stat().st_size
                return found
            time.sleep(0.005)
        raise self._did_not_start(f"does not answer after {format_seconds(START_S)}")

    def await_success(self, seconds: float) -> None:
        """Wait for the successful end of a program that ends by itself. Raises ServerError with the end of its log."""
        end = self._end_within(seconds)
        if self._words().get("exit") != "0":
            raise self._did_not_start(end or f"does not end within {format_seconds(seconds)}")

    def _end_within(self, seconds: float) -> str | None:
        """How it ended by itself within this time; None if it still runs."""
        deadline = time.monotonic() + seconds
        while (end := self.end()) is None and time.monotonic() < deadline:
            time.sleep(0.002)
        return end

    def _note_pid(self, pid: int) -> None:
        self.pid = pid
        self._process = ProcessId.of(pid)
        if self._process is not None:
            self._folder.note_server(self._process)

    def _did_not_start(self, how: str) -> ServerError:
        tail = self.log_tail()
        said = f"; its last log lines:\n{tail}" if tail else ", and logged nothing"
        # No hint at the doctor, which starts a server, too, and shows the same error.
        option = "--postgres" if self.binary.product == "postgres" else "--redis"
        words = "its log says why; " if tail else ""
        return ServerError(f"{self.binary.path} {how}{said}", hint=f"{words}your own server will do: {option} URL")

    def _words(self) -> dict[str, str]:
        """What the keeper has printed since the latest start: `pid` and, once the server ended by itself, `exit`."""
        pipe = self._keeper.stdout
        assert pipe is not None
        while select.select([pipe], [], [], 0)[0]:
            got = os.read(pipe.fileno(), 256)
            if not got:
                break
            self._said += got
        lines = self._said.decode().split("\n")[:-1]
        return {word: value for word, _, value in (line.partition(" ") for line in lines)}


def launched(launch: Callable[[], Server], ready: Callable[[Server], Ready]) -> tuple[Server, Ready]:
    """The server that `launch` starts, and the result of `ready`. Where its port was taken, another one is started.

    Raises the errors of both, and then no server runs on.
    """
    for attempt in range(1, PORT_TRIES + 1):
        server = launch()
        try:
            return server, ready(server)
        except BaseException as error:
            server.stop()
            port_taken = isinstance(error, ServerError) and PORT_TAKEN in error.message
            if not port_taken or attempt == PORT_TRIES:
                raise
    raise AssertionError("the last attempt returns or raises")


def free_port() -> int:
    """A port of loopback on which nobody listened a moment ago."""
    with socket.socket() as probe_socket:
        probe_socket.bind((LOOPBACK, 0))
        return int(probe_socket.getsockname()[1])


def _told(status: int) -> str:
    """An exit status in words. A negative one is the number of a signal."""
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


running: set[Supervised] = set()
"""The servers of this process."""


@atexit.register
def _stop_all() -> None:
    for server in list(running):
        server.stop()


def _forget_all() -> None:
    for server in list(running):
        server.forget()
    running.clear()


os.register_at_fork(after_in_child=_forget_all)
