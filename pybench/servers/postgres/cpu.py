"""What the processes of a Postgres on this machine have worked: the first one, those it has, and those it had.

Promises: a process that ends is neither forgotten nor counted twice. To take the difference of two readings for what
was worked in between errs by up to two ticks of the kernel's clock.
"""

from __future__ import annotations

import os
from pathlib import Path

from pybench.servers.postgres.connecting import Session
from pybench.servers.postgres.server import PostgresServer

_TRIES = 20


def postmaster_of(server: PostgresServer, session: Session) -> int | None:
    """The first process of the server that `session` is one of; None where that is not for certain one of ours to see.

    The number of a process may be that of another one here, where the server is in a container of its own.
    """
    if not server.is_local() or server.facts.pooled:
        return None
    try:
        own = Path(f"/proc/{session.info.backend_pid}")
        title = (own / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        parent = int(_stat(own)[1])
        program = (Path(f"/proc/{parent}/comm")).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    where = server.endpoint
    is_it = title.startswith("postgres:") and f" {where.user} {where.database} " in title
    return parent if is_it and program in ("postgres", "postmaster") else None


def cpu_ns(postmaster: int) -> int | None:
    """User and system time so far of a server whose first process is `postmaster`; None when it is not to be seen.

    What its processes of now have worked is known to the nanosecond, what those had worked that ended, to two ticks of
    10 ms in all.
    """
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    first = Path(f"/proc/{postmaster}")
    try:
        for _ in range(_TRIES):
            ended = _ended_ticks(first)
            working = sum(_worked_ns(process, tick_ns) for process in (first, *_children(postmaster)))
            if ended == _ended_ticks(first):  # Otherwise one that ended meanwhile was counted twice, or not at all.
                break
        return working + ended * tick_ns
    except (OSError, ValueError, IndexError):
        return None


def _children(parent: int) -> list[Path]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(_stat(process)[1]) == parent:
                found.append(process)
        except OSError:
            continue
    return found


def _worked_ns(process: Path, tick_ns: int) -> int:
    try:
        return int((process / "schedstat").read_text(encoding="ascii").split()[0])
    except (OSError, IndexError):
        pass
    try:
        fields = _stat(process)
    except OSError:
        return 0  # It ended since it was listed: what it worked is seen by its parent.
    return (int(fields[11]) + int(fields[12])) * tick_ns


def _ended_ticks(process: Path) -> int:
    fields = _stat(process)
    return int(fields[13]) + int(fields[14])


def _stat(process: Path) -> list[str]:
    """Fields of `stat` from the third on; the name before them may hold anything, brackets too."""
    return (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
