"""Processes by pid and start time, so that a recycled pid is never taken for the process that had it before.

Promises: `end` signals only a process with the same pid, the same start and a tie to the given folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process of this machine, unmistakable while the machine runs."""

    pid: int
    started: str
    """As the system tells it: clock ticks since boot on Linux, a date elsewhere. Only ever compared."""

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The process that has `pid` now; None when there is none, or only its exit status is left."""
        started = _started(pid)
        return None if started is None else cls(pid, started)

    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return _started(self.pid) == self.started


def end(
    process: ProcessId,
    folder: Path,
    *,
    patience_s: float = 1.0,
    signals: Sequence[signal.Signals] = (signal.SIGTERM,),
) -> bool:
    """End `process` if it works in `folder`; true when it was ours and is gone.

    By `signals`, each after `patience_s` of the one before, and then by SIGKILL.
    """
    handle = _open(process.pid)
    try:
        # Asked after the handle is open: from here on the pid cannot change hands under us (Linux).
        if not process.is_alive() or not _works_in(process.pid, folder):
            return False
        for number, seconds in (*((number, patience_s) for number in signals), (signal.SIGKILL, 2.0)):
            if not _signal(process.pid, handle, number):
                return not process.is_alive()
            deadline = time.monotonic() + seconds
            while process.is_alive() and time.monotonic() < deadline:
                time.sleep(POLL_S)
            if not process.is_alive():
                return True
        return False
    finally:
        if handle is not None:
            os.close(handle)


def working_in(folder: Path, program: str) -> list[ProcessId]:
    """The processes of `program` whose working folder is `folder`; empty where the system does not tell."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() != folder:
                continue
            # The kernel marks a program whose file was replaced meanwhile.
            name = (entry / "exe").readlink().name.removesuffix(" (deleted)")
        except OSError:
            continue  # It ended meanwhile, or belongs to somebody else.
        process = ProcessId.of(int(entry.name))
        if name == program and process is not None:
            found.append(process)
    return found


def _started(pid: int) -> str | None:
    if sys.platform != "linux":
        return _ps(pid, "lstart=")
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in brackets may hold anything, brackets too; the state is the first field after it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _works_in(pid: int, folder: Path) -> bool:
    if sys.platform != "linux":
        command = _ps(pid, "command=")
        return command is not None and str(folder) in command
    try:
        process = Path(f"/proc/{pid}")
        return os.fsencode(folder) in (process / "cmdline").read_bytes() or (process / "cwd").readlink() == folder
    except OSError:
        return False


def _ps(pid: int, column: str) -> str | None:
    answer = subprocess.run(["ps", "-o", column, "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def _open(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _signal(pid: int, handle: int | None, number: signal.Signals) -> bool:
    try:
        if handle is not None and sys.platform == "linux":
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(pid, number)
    except OSError:
        return False
    return True
