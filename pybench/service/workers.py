"""Several processes that serve one socket: started together, replaced when one dies, ended together.

Promises: every worker is gone when `serve` returns, and when this process dies in any way.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

from pybench.errors import ServerError
from pybench.running.interrupts import SIGNALS
from pybench.service.figures import FOLDER_VARIABLE
from pybench.service.logs import Log
from pybench.service.process import DRAIN_S
from pybench.service.settings import Settings
from pybench.service.worker import READY

START_S: Final = 30.0
"""Time for a worker to be ready."""
LOOK_S: Final = 0.1
REPLACE_S: Final = 1.0
"""The least time between the start of a worker and that of the one that replaces it."""
END_S: Final = DRAIN_S + 5.0
AT_ONCE_S: Final = 3.0
"""Time for a worker to end after a second signal."""


class Workers:
    """The processes of one service."""

    def __init__(self, settings: Settings, listening: socket.socket) -> None:
        self._settings = settings
        self._listening = listening
        self._log = Log(settings.log_level)
        self._folder = tempfile.mkdtemp(prefix="pybench-figures-")
        self._workers: dict[subprocess.Popen[bytes], float] = {}
        self._signals = 0

    def serve(self, on_ready: Callable[[], None]) -> bool:
        """Serve until a signal; whether the end was orderly. Raises ServerError when a worker does not start."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        try:
            for number, handler in before.items():
                if handler is not signal.SIG_IGN:
                    signal.signal(number, self._count)
            for _ in range(self._settings.workers):
                self._start()
            for worker in list(self._workers):
                self._await_ready(worker)
            if not self._signals:
                on_ready()
            while not self._signals:
                self._replace_dead()
                time.sleep(LOOK_S)
            return self._end()
        finally:
            for worker in self._workers:
                worker.kill()
                worker.wait()
            shutil.rmtree(self._folder, ignore_errors=True)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _count(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    def _start(self) -> None:
        worker = subprocess.Popen(
            [sys.executable, "-m", "pybench.service.worker", str(self._listening.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._listening.fileno(),),
            env={**os.environ, FOLDER_VARIABLE: self._folder},
        )
        assert worker.stdin is not None
        worker.stdin.write(self._settings.to_json().encode() + b"\n")
        worker.stdin.flush()
        self._workers[worker] = time.monotonic()

    def _await_ready(self, worker: subprocess.Popen[bytes]) -> None:
        assert worker.stdout is not None
        deadline = time.monotonic() + START_S
        while not self._signals:
            readable, _, _ = select.select([worker.stdout], [], [], LOOK_S)
            if readable:
                if os.read(worker.stdout.fileno(), len(READY)) == READY:
                    return
                break
            if time.monotonic() > deadline:
                break
        else:
            return
        raise ServerError("a worker of the service did not start", hint="its message is above")

    def _replace_dead(self) -> None:
        for worker, started in list(self._workers.items()):
            code = worker.poll()
            if code is None or time.monotonic() - started < REPLACE_S:
                continue
            self._forget(worker)
            self._log.write("error", "worker ended", worker=worker.pid, code=code)
            self._start()

    def _forget(self, worker: subprocess.Popen[bytes]) -> None:
        del self._workers[worker]
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                stream.close()

    def _end(self) -> bool:
        """End all workers; whether none had to be killed."""
        for worker in self._workers:
            worker.terminate()
        deadline = time.monotonic() + END_S
        while (running := [worker for worker in self._workers if worker.poll() is None]) and self._signals < 2:
            if time.monotonic() > deadline:
                break
            time.sleep(LOOK_S)
        # A second signal has a worker release its locks and end at once.
        for worker in running:
            worker.terminate()
        deadline = time.monotonic() + AT_ONCE_S
        while any(worker.poll() is None for worker in running) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        for worker in list(self._workers):
            worker.kill()
            worker.wait()
            self._forget(worker)
        return not running
