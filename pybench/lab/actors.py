"""Processes that play a role in an experiment, so that SIGKILL and SIGSTOP strike a real process.

    actor = stage.actor(hold_for_ever, {"client": spec, "name": name})
    actor.hear()          what the role said by `line.say`
    actor.signal(signal.SIGKILL)

Promises: a role ends with the process that started it, whatever it is doing.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from pybench.errors import ServerError

FAILED = 1


class Actor:
    """The side of the experiment."""

    def __init__(self, role: Callable[..., None], order: Mapping[str, Any], *, left_s: Callable[[], float]) -> None:
        """Start the process. `left_s` is asked how long a wait may take, in seconds."""
        self._left_s = left_s
        self._unread = b""
        self._lines: deque[dict[str, Any]] = deque()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pybench.lab.actors", f"{role.__module__}:{role.__qualname__}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self.tell(order)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message to the role; one that has ended hears nothing."""
        assert self._process.stdin is not None, "stdin is a pipe"
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return

    def hear(self) -> dict[str, Any]:
        """The next message of the role. Raises ServerError when it failed, ended, or said nothing in time."""
        while not self._lines:
            self._read()
        said = self._lines.popleft()
        if "failed" in said:
            raise ServerError(said["failed"], hint=said["hint"])
        return said

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; after SIGKILL, wait until the process is gone."""
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            self._process.wait()

    def kill(self) -> None:
        """End the process at once, if it still runs, and close its pipes."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None, "stdout is a pipe"
        readable, _, _ = select.select([self._process.stdout], [], [], self._left_s())
        if not readable:
            return
        data = os.read(self._process.stdout.fileno(), 65_536)
        if not data:
            raise ServerError(f"a process of the experiment ended with code {self._process.wait()}")
        *lines, self._unread = (self._unread + data).split(b"\n")
        self._lines.extend(json.loads(line) for line in lines)


class Line:
    """The side of the role."""

    def __init__(self) -> None:
        self._told: SimpleQueue[dict[str, Any]] = SimpleQueue()
        # Whatever else is printed must not stand among the messages.
        self._out = os.dup(1)
        os.dup2(2, 1)
        threading.Thread(target=self._listen, name="pybench-line", daemon=True).start()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a message to the experiment."""
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._out, data) :]

    def hear(self) -> dict[str, Any]:
        """The next message of the experiment."""
        return self._told.get()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._told.put(json.loads(line))
        # The experiment is over: a lock that is held is removed with its keys.
        os._exit(0)


def main() -> int:
    """Play the role that the command line names, with the order on stdin."""
    from pybench.errors import PybenchError

    # Ctrl-C reaches every process of the terminal: the experiment ends its actors.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    module, _, name = sys.argv[1].partition(":")
    role = getattr(importlib.import_module(module), name)
    line = Line()
    try:
        role(line, **line.hear())
    except PybenchError as error:
        line.say({"failed": error.message, "hint": error.hint})
        return FAILED
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # The thread that waits for stdin must not keep the process.
    os._exit(code)
