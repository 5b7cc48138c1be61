"""Who made a schema, and whether that run is over: a note in the schema's comment.

The proof that a run is over: it ran on this machine since it was booted, among the processes that we see, and the
process with its number and its start is none of them. Of all other runs it is not known, whatever their age.
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
    """Where its number means a process: the boot of a machine and the name space there."""
    pid: int
    started: str
    since: str
    """For people."""

    def is_over(self) -> bool | None:
        """Whether it has ended; None: it cannot be told from here."""
        here = _place()
        if not here or self.place != here:
            return None
        return not ProcessId(self.pid, self.started).is_alive()

    def told(self) -> str:
        """In words."""
        return f"process {self.pid} of {self.host} at {self.since}"


def note() -> str:
    """What this process writes of itself."""
    own = ProcessId.of(os.getpid())
    assert own is not None, "whoever asks is alive"
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
    """Empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
