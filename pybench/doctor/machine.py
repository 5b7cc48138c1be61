"""The machine: conditions that make figures worse or unsteady, or prevent a run."""

from __future__ import annotations

import importlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import disk_usage

from pybench.doctor.finding import Finding, Level
from pybench.errors import PybenchError
from pybench.machine import cores_allowed, read_cpuinfo, virtualisation
from pybench.quota import cpu_quota
from pybench.servers import folder as folders
from pybench.servers.redis.config import MAXCLIENTS

BUSY_WINDOW_S = 0.3
BUSY_CORES = 0.15
"""Cores that other processes may use: a higher load shows in a p99."""

STOLEN_CORES = 0.02

WAKE_ROUNDS = 200
SLOW_WAKE_US = 15.0

FREE_BYTES = 200_000_000


def examine_machine() -> list[Finding]:
    """The findings of all checks of the machine."""
    return [finding for check in _CHECKS for finding in check()]


def _platform() -> Iterator[Finding]:
    name = f"{os.uname().sysname} {os.uname().release}, Python {sys.version.split()[0]}"
    if sys.platform == "linux":
        yield Finding(Level.OK, "platform", name)
    else:
        yield Finding(Level.BAD, "platform", f"{name} is not supported", "use Linux, or WSL 2")


def _core() -> Iterator[Finding]:
    try:
        core = importlib.import_module("pybench._core")
    except ImportError as error:
        yield Finding(Level.BAD, "core build", f"the Rust core cannot be loaded: {error}", "make build")
        return
    if core.build_profile == "release":
        yield Finding(Level.OK, "core build", f"release, version {core.version}")
    else:
        yield Finding(Level.BAD, "core build", f"{core.build_profile}: runs need a release build", "make build")


def _cores() -> Iterator[Finding]:
    usable = cores_allowed() or os.cpu_count() or 1
    quota = cpu_quota()
    what = f"{usable} usable" + (f", limited to {quota:g} by a quota" if quota is not None else "")
    if usable < 2:
        yield Finding(Level.WARN, "cores", f"{what}: client and server share it", "measure on at least 2 cores")
    elif quota is not None and quota < usable:
        yield Finding(
            Level.WARN, "cores", f"{what}: a used-up quota stops all processes", "raise the container's limit"
        )
    else:
        yield Finding(Level.OK, "cores", f"{what}; leave one to the servers: threads x processes up to {usable - 1}")


def _busy() -> Iterator[Finding]:
    if sys.platform != "linux":
        load = os.getloadavg()[0]
        level = Level.WARN if load > 1 else Level.OK
        yield Finding(level, "load", f"load average {load:.1f}", "stop other processes" if load > 1 else None)
        return
    own = sum(os.times()[:2])
    try:
        busy, stolen = _cpu_seconds()
    except (OSError, ValueError):
        what = "/proc/stat cannot be read, so that the load of other processes is unknown"
        yield Finding(Level.WARN, "load", what, "mount /proc")
        return
    time.sleep(BUSY_WINDOW_S)
    busy_after, stolen_after = _cpu_seconds()
    own = sum(os.times()[:2]) - own
    others = max(0.0, busy_after - busy - own) / BUSY_WINDOW_S
    theft = (stolen_after - stolen) / BUSY_WINDOW_S
    what = f"other processes use {others:.2f} cores, load average {os.getloadavg()[0]:.1f}"
    if others > BUSY_CORES:
        yield Finding(Level.WARN, "load", what, "stop other processes, or wait")
    else:
        yield Finding(Level.OK, "load", what)
    if theft > STOLEN_CORES:
        yield Finding(
            Level.WARN, "load", f"the hypervisor withholds {theft:.2f} cores", "measure on a dedicated machine"
        )


def _cpu_seconds() -> tuple[float, float]:
    """Seconds since boot that all cores worked, and that the hypervisor withheld."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _wait, interrupts, soft, stolen = (int(field) for field in fields[:8])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + interrupts + soft) / ticks, stolen / ticks


def _governor() -> Iterator[Finding]:
    found = {
        path.read_text(encoding="ascii").strip()
        for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    }
    if found - {"performance"}:
        names = ", ".join(sorted(found))
        yield Finding(Level.WARN, "cpu governor", names, "cpupower frequency-set -g performance")
    elif found:
        yield Finding(Level.OK, "cpu governor", "performance")


def _wake_up() -> Iterator[Finding]:
    kind = "virtual machine" if virtualisation(read_cpuinfo(), "") else "no hypervisor seen"
    cost = wake_up_us()
    what = f"{cost:.0f} µs to wake a waiting process ({kind})"
    if cost > SLOW_WAKE_US:
        yield Finding(
            Level.WARN,
            "wake-up",
            f"{what}: every round trip includes this time",
            "poll: spin excludes the client's share; never compare figures of block and spin",
        )
    else:
        yield Finding(Level.OK, "wake-up", what)


def wake_up_us() -> float:
    """The cost of waking a waiting process, in µs: the median by which a short sleep lasts too long."""
    # The kernel rounds sleeps by 50 µs. A process of its own can turn that off without changing this thread.
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _SLEEPER], capture_output=True, text=True, timeout=10, check=True
    )
    return statistics.median(int(line) for line in answer.stdout.split()) / 1000


_SLEEPER = f"""
import ctypes, sys, time
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK, 1 ns
for _ in range({WAKE_ROUNDS}):
    begin = time.perf_counter_ns()
    time.sleep(0.0005)
    print(time.perf_counter_ns() - begin - 500_000)
"""


def _open_files() -> Iterator[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= MAXCLIENTS // 2 + 100:
        many = "no limit" if soft == resource.RLIM_INFINITY else f"{soft:,}"
        yield Finding(Level.OK, "open files", many)
    else:
        room = "" if hard == resource.RLIM_INFINITY or hard > soft else "; this user cannot raise the limit"
        yield Finding(
            Level.WARN, "open files", f"{soft:,} at most, connections included{room}", f"ulimit -n {MAXCLIENTS}"
        )


def _temporary_folder() -> Iterator[Finding]:
    try:
        asked = Path(tempfile.gettempdir()).resolve()
        place = folders.place_for_sockets()
        free = disk_usage(place).free
        writable = os.access(place, os.W_OK | os.X_OK)
    except (PybenchError, OSError) as error:
        yield Finding(Level.BAD, "temp folder", str(error), "set TMPDIR to a short path")
        return
    what = f"{place}, {free / 1e9:.1f} GB free"
    if not writable:
        yield Finding(Level.BAD, "temp folder", f"{place} cannot be written", "set TMPDIR to a folder of your own")
    elif free < FREE_BYTES:
        yield Finding(Level.WARN, "temp folder", what, "free some space: servers with appendfsync write there")
    elif place != asked:
        yield Finding(Level.WARN, "temp folder", f"{what}; the path {asked} is too long for a socket")
    else:
        yield Finding(Level.OK, "temp folder", what)


_CHECKS = (_platform, _core, _cores, _busy, _governor, _wake_up, _open_files, _temporary_folder)
