"""Who made a schema, and whether that run is over: a note in the schema's comment.

A run is over when it ran on this machine since the last boot and in our pid namespace, and no process has its pid and
start time. Of any other run that is not known, whatever its age.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pybench.servers.processes import ProcessId


@dataclass(frozen=True, slots=True)
class Maker:
    """A process of some machine."""

    host: str
    place: str
    """The boot of the machine and the pid namespace: a pid means a process only there."""
    pid: int
    started: str
    since: str
    """The time of the note, for people."""

    def is_over(self) -> bool | None:
        """Whether it has ended; None: not known."""
        here = _place()
        if not here or self.place != here:
            return None
        return not ProcessId(self.pid, self.started).is_alive()

    def told(self) -> str:
        """The process in words."""
        return f"process {self.pid} of {self.host} at {self.since}"


def note() -> str:
    """The note about this process."""
    own = ProcessId.of(os.getpid())
    assert own is not None, "this process is alive"
    since = datetime.now(UTC).isoformat(timespec="seconds")
    maker = Maker(socket.gethostname(), _place(), own.pid, own.started, since)
    return json.dumps({"pybench": asdict(maker)})


def read(text: str | None) -> Maker | None:
    """What `note` wrote; None for anything else."""
    try:
        told = json.loads(text or "")["pybench"]
        return Maker(str(told["host"]), str(told["place"]), int(told["pid"]), str(told["started"]), str(told["since"]))
    except (ValueError, KeyError, TypeError):
        return None


def _place() -> str:
    """The boot and the pid namespace of this process; empty where they cannot be read."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
