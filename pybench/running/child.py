"""A Python process that this process starts, speaks to over pipes, and ends: a worker of a trial, or a role of the lab.

Promises: the process ends with `end` at the latest, also when it is stopped by a signal. Nothing that is sent to it
stands on a command line or in an environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

from pybench import _core

OUR_ROOT = Path(__file__).parents[2]


def inherited_variables() -> dict[str, str]:
    """The environment variables without those that choose where Python finds its modules."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def our_variables() -> dict[str, str]:
    """The environment variables for a process that runs this very pybench."""
    path = os.pathsep.join(filter(None, [str(OUR_ROOT), os.environ.get("PYTHONPATH")]))
    return inherited_variables() | {"PYTHONPATH": path}


def connect_error(text: str, refusal: Sequence[Any] | None) -> _core.ConnectError:
    """The `ConnectError` of a trial in another process, which sent its text and its refusal."""
    error = _core.ConnectError(text)
    error.refusal = None if refusal is None else (refusal[0], refusal[1], refusal[2], refusal[3])
    return error


class Child:
    """One process that runs a module. A context manager; leaving it is `end`."""

    def __init__(
        self,
        python: str | Path,
        module: str,
        *,
        variables: Mapping[str, str],
        hear: Callable[[str], None],
        ended: Callable[[], None] = lambda: None,
        arguments: Sequence[str] = (),
        files: Sequence[int] = (),
        shows_errors: bool = False,
    ) -> None:
        """Start it; a thread calls `hear` for each line that it prints, and `ended` after the last.

        It inherits the descriptors `files`. Its standard error is that of this process where it `shows_errors`, else it
        is kept for `last_words`. Raises OSError where it cannot be started.
        """
        self._errors = None if shows_errors else TemporaryFile()  # noqa: SIM115 - closed with the process
        # -P: the working folder may hold another pybench. A session of its own: Ctrl-C is for this process alone.
        command = [str(python), "-P", "-m", module, *arguments]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=variables,
                pass_fds=files,
                start_new_session=True,
                encoding="utf-8",
            )
        except OSError:
            if self._errors is not None:
                self._errors.close()
            raise
        # An interrupted join of a thread says in Python 3.11 that the thread has ended; an event is not confused by it.
        self._heard_all = threading.Event()
        threading.Thread(target=self._read, args=(hear, ended), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def end(self) -> None:
        """End the process at once, if it still runs, and close its pipes."""
        self._process.kill()
        self._process.wait()
        self._heard_all.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def send(self, line: str) -> None:
        """Send a line. A process that has ended does not get it."""
        assert self._process.stdin is not None, "the process has a pipe"
        # A pipe that was closed already is a ValueError.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def stop(self) -> None:
        """End what it says: the process reads the end of its input."""
        assert self._process.stdin is not None, "the process has a pipe"
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        self._process.send_signal(number)

    def heard_all(self, limit_s: float) -> bool:
        """Wait until all that it prints was heard; false where that takes longer."""
        return self._heard_all.wait(limit_s)

    def exit_code(self) -> int:
        """Wait for its end."""
        return self._process.wait()

    def last_words(self) -> str:
        """The last line that it wrote to its standard error."""
        assert self._errors is not None, "its standard error is kept"
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        return said.splitlines()[-1] if said else "nothing"

    def _read(self, hear: Callable[[str], None], ended: Callable[[], None]) -> None:
        assert self._process.stdout is not None, "the process has a pipe"
        try:
            for line in self._process.stdout:
                # A process that was killed in the middle of a line has not said it.
                if line.endswith("\n"):
                    hear(line)
            ended()
        finally:
            self._heard_all.set()
