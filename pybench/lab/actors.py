"""Processes that play a role in an experiment, so that SIGKILL and SIGSTOP strike a real process.

    actor = stage.actor(hold_for_ever, {"client": spec, "name": name})
    actor.hear()          # what the role said, see `acting`
    actor.signal(signal.SIGKILL)

Promises: a message of a role that failed is raised here; nothing waits longer than the experiment has time.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pybench.errors import ServerError


class Actor:
    """The side of the experiment."""

    def __init__(self, role: Callable[..., None], order: Mapping[str, Any], *, left_s: Callable[[], float]) -> None:
        """Start the process. `left_s` is asked how long a wait may take, in seconds."""
        self._left_s = left_s
        self._unread = b""
        self._lines: deque[dict[str, Any]] = deque()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pybench.lab.acting", f"{role.__module__}:{role.__qualname__}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            # Ctrl-C of the terminal is for the experiment alone, also while this process still starts.
            start_new_session=True,
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

    def heard(self) -> dict[str, Any] | None:
        """The next message of the role, if there is one by now. Raises as `hear`; None for a role that was killed."""
        if self._process.returncode is not None:
            return None
        stdout = self._process.stdout
        assert stdout is not None, "stdout is a pipe"
        if not self._lines and select.select([stdout], [], [], 0)[0]:
            self._read()
        return self.hear() if self._lines else None

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
                # What could not be sent to a role that had ended is sent once more by `close`.
                with suppress(BrokenPipeError):
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
