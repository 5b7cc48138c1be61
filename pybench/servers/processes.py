"""Processes by pid and start time, so that a recycled pid is never taken for the process that had it before.

Promises: `end` signals only a process with the same pid, the same start and a tie to the given folder. psutil compares
the start and then signals the pid, which can change hands in between: `end` signals through a pidfd instead.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

POSTGRES = ("postgres", "postmaster")
"""The names of processes of Postgres."""

POLL_S = 0.005

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process of this machine, unmistakable until the machine is booted again."""

    pid: int
    started: str
    """Clock ticks from boot to its start, as text. Only ever compared."""

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The process that has `pid` now; None when there is none, or only its exit status is left."""
        try:
            process = psutil.Process(pid)
            if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return None
            # psutil adds the date of the boot, which moves when somebody sets the clock of the machine.
            since_boot_s = process.create_time() - psutil.boot_time()
        except (psutil.Error, ValueError):
            return None
        return cls(pid, str(round(since_boot_s * _TICKS_PER_S)))

    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return ProcessId.of(self.pid) == self


def end(
    process: ProcessId,
    folder: Path,
    *,
    patience_s: float = 1.0,
    signals: Sequence[signal.Signals] = (signal.SIGTERM,),
) -> bool:
    """End `process` if it works in `folder`; true when it did and is gone.

    By `signals`, each after `patience_s` of the one before, and then by SIGKILL.
    """
    with _signaller(process.pid) as send:
        # Checked after the pidfd is open: the signals reach the process that is checked here, and no other.
        if not process.is_alive() or not _works_in(process.pid, folder):
            return False
        for number, seconds in (*((number, patience_s) for number in signals), (signal.SIGKILL, 2.0)):
            try:
                send(number)
            except OSError:
                return not process.is_alive()
            deadline = time.monotonic() + seconds
            while process.is_alive() and time.monotonic() < deadline:
                time.sleep(POLL_S)
            if not process.is_alive():
                return True
    return False


def working_in(folder: Path, program: str) -> list[ProcessId]:
    """The processes of `program` whose working folder is `folder`, as far as this user may look at them."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == str(folder) and Path(process.exe()).name == program:
                found.append(ProcessId.of(process.pid))
    return [process for process in found if process is not None]


def _works_in(pid: int, folder: Path) -> bool:
    try:
        process = psutil.Process(pid)
        return any(str(folder) in word for word in process.cmdline()) or process.cwd() == str(folder)
    except psutil.Error:
        return False


@contextlib.contextmanager
def _signaller(pid: int) -> Iterator[Callable[[signal.Signals], None]]:
    try:
        handle = os.pidfd_open(pid)
    except OSError:  # There is no such process, or this kernel or sandbox has no pidfds.
        yield functools.partial(os.kill, pid)
        return
    try:
        yield functools.partial(signal.pidfd_send_signal, handle)
    finally:
        os.close(handle)
