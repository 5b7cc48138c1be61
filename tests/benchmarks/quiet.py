"""Is the machine quiet? A foreign process that spins shifts every ratio, so a benchmark waits, and says so."""

from __future__ import annotations

import os
import time
from pathlib import Path

QUIET_CORES = 0.1
"""Cores that others may use, seen over a second, for the machine to count as quiet."""

WAIT_S = 120.0


def busy_cores(seconds: float = 0.3) -> float:
    """Cores in use by everybody, this process too, while it sleeps."""

    def busy_ticks() -> int:
        fields = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
        idle, waiting = fields[3], fields[4]
        return sum(fields) - idle - waiting

    before = busy_ticks()
    time.sleep(seconds)
    return (busy_ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def loop_ms() -> float:
    """How long a fixed piece of work takes now.

    On a shared host a core may be half as fast in one minute as in the next, though nobody is seen on this machine.
    """
    began = time.perf_counter()
    sum(range(1_000_000))
    return (time.perf_counter() - began) * 1e3


def wait_for_quiet() -> float:
    """Waits until the machine is quiet, at most `WAIT_S`; the cores that others used at last."""
    deadline = time.monotonic() + WAIT_S
    while (busy := busy_cores()) > QUIET_CORES and time.monotonic() < deadline:
        pass
    return busy
