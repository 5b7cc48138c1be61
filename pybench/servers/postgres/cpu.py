"""How much CPU time the processes of a Postgres on this machine have used: the first one, those it has, those it had.

Promises: a process that ends is neither forgotten nor counted twice. The difference of two readings errs by at most two
ticks of the kernel's clock.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from pybench.servers.postgres.connecting import Session
from pybench.servers.postgres.server import PostgresServer
from pybench.servers.processes import POSTGRES

_TRIES = 20
_CHILDREN = slice(13, 15)
"""User and system time of ended children in a process's `stat`, counted from the field behind its name."""


def postmaster_of(server: PostgresServer, session: Session) -> int | None:
    """The first process of the server that `session` is one of; None where it is not certain.

    Where the server is in a container of its own, another process may have its pid here.
    """
    if not server.is_local() or server.facts.pooled:
        return None
    where = server.endpoint
    try:
        own = psutil.Process(session.info.backend_pid)
        title = " ".join(own.cmdline())
        parent = own.parent()
        if parent is None or parent.name() not in POSTGRES:
            return None
    except (psutil.Error, ValueError):
        return None
    return parent.pid if title.startswith("postgres:") and f" {where.user} {where.database} " in title else None


def cpu_ns(postmaster: int) -> int | None:
    """User and system time so far of a server whose first process is `postmaster`; None when it cannot be read.

    The time of its running processes is known to the nanosecond, that of those that ended to two ticks of 10 ms in all.
    """
    try:
        first = psutil.Process(postmaster)
        for _ in range(_TRIES):
            ended = _ended_ns(first)
            working = sum(_worked_ns(process) for process in (first, *first.children()))
            if ended == _ended_ns(first):  # Otherwise a process that ended meanwhile counts twice, or not at all.
                break
        return working + ended
    except psutil.Error:
        return None


def running_ns(postmaster: int) -> int | None:
    """As `cpu_ns`, for samples: cheaper, but a process that ends between two samples takes its time with it.

    None where this kernel does not list the children of a process.
    """
    try:
        listed = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text(encoding="ascii").split()
        # Behind the name, which may contain anything but is the only text in brackets.
        stat = Path(f"/proc/{postmaster}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        ended = sum(map(int, stat[_CHILDREN])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None
    worked = (_scheduled_ns(pid) for pid in (postmaster, *map(int, listed)))
    return ended + sum(ns for ns in worked if ns is not None)


def _scheduled_ns(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0])
    except (OSError, IndexError):
        return None


def _worked_ns(process: psutil.Process) -> int:
    scheduled = _scheduled_ns(process.pid)
    if scheduled is not None:
        return scheduled
    try:  # psutil knows ticks of 10 ms only.
        used = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0  # It ended since it was listed: the time that it used is part of its parent's.
    return round((used.user + used.system) * 1e9)


def _ended_ns(process: psutil.Process) -> int:
    used = process.cpu_times()
    return round((used.children_user + used.children_system) * 1e9)
