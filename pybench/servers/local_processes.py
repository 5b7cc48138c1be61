"""The process of a given server on this machine, and the cores that it runs on. It is looked at, never bound.

Promises: the process is the one that listens at the address that the server was reached at. Where that cannot be known,
as of a server behind a forwarded port or in a container of its own, nothing is said.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.servers.redis.server import Server

if TYPE_CHECKING:
    from pybench.servers import AnyServer

_TCP_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_UNIX_TABLE = Path("/proc/net/unix")
_TCP_LISTENS = "0A"
_UNIX_LISTENS = 0x10000
"""`__SO_ACCEPTCON` among the flags of a socket."""
_POSTGRES = ("postgres", "postmaster")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A given server whose process is known."""

    address: str
    pid: int
    cores: tuple[int, ...]
    """Those that its owner lets it run on."""
    one_process: bool
    """Whether this process does all the work; a session of Postgres is a process of its own."""

    def manifest(self) -> dict[str, Any]:
        """As the manifest has it."""
        return {"address": self.address, "pid": self.pid, "cores": list(self.cores)}


def local_servers(servers: Iterable[AnyServer]) -> tuple[LocalServer, ...]:
    """Those of the given `servers` of which the process is known."""
    return tuple(
        found for server in servers if not server.started_by_us and (found := _local_server(server)) is not None
    )


def where_it_runs(server: AnyServer) -> str:
    """On which machine a given server is, and of one on this machine which process it is, where that is known."""
    if not server.is_local():
        return "on another machine: run asks before it sends load there"
    known = _local_server(server)
    if known is None:
        return "on this machine, its process is not to be seen"
    cores = f"{'core' if len(known.cores) == 1 else 'cores'} {', '.join(map(str, known.cores))}"
    return f"on this machine (process {known.pid}, which may run on {cores})"


def core_of(pid: int) -> int | None:
    """The core that the main thread of a process ran on last; None when it is not to be seen."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[36])
    except (OSError, IndexError, ValueError):
        return None


def _local_server(server: AnyServer) -> LocalServer | None:
    if not server.is_local():
        return None
    is_redis = isinstance(server, Server)
    inodes = _listening_at(server)
    candidates = [server.facts.process_id] if isinstance(server, Server) else _postgres_processes()
    pid = next((one for one in candidates if one is not None and _holds(one, inodes)), None)
    if pid is None:
        return None
    try:
        cores = tuple(sorted(os.sched_getaffinity(pid)))
    except (OSError, AttributeError):
        return None
    return LocalServer(server.endpoint.address, pid, cores, one_process=is_redis)


def _postgres_processes() -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text(encoding="utf-8", errors="replace").strip() in _POSTGRES:
                yield int(process.name)
        except OSError:
            continue


def _listening_at(server: AnyServer) -> set[str]:
    """The inodes of the sockets that listen where `server` was reached."""
    path = _socket_of(server)
    if path is not None:
        return {fields[6] for fields in _rows(_UNIX_TABLE, most=8) if fields[7:] == [path] and _accepts(fields[3])}
    if server.facts.peer is None:
        return set()
    peer, port = ipaddress.ip_address(server.facts.peer.partition("%")[0]), server.endpoint.port
    return {
        fields[9]
        for table in _TCP_TABLES
        for fields in _rows(table)
        if len(fields) > 9 and fields[3] == _TCP_LISTENS and _is_at(fields[1], peer, port)
    }


def _socket_of(server: AnyServer) -> str | None:
    if isinstance(server, Server):
        return server.endpoint.unix
    where = server.endpoint
    return None if where.folder is None else f"{where.folder}/.s.PGSQL.{where.port}"


def _accepts(flags: str) -> bool:
    return bool(int(flags, 16) & _UNIX_LISTENS)


def _is_at(local: str, peer: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> bool:
    """Whether a `local_address` of the kernel's table, in words of the machine's own order, takes calls to `peer`."""
    address, _, its_port = local.partition(":")
    if int(its_port, 16) != port:
        return False
    words = [int(address[place : place + 8], 16) for place in range(0, len(address), 8)]
    found = ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found.is_unspecified or peer in (found, mapped)


def _rows(table: Path, most: int = 0) -> Iterator[list[str]]:
    """The fields of its lines, without the heading; `most` where the last may hold spaces."""
    try:
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    yield from (line.split(maxsplit=most - 1) for line in lines[1:])


def _holds(pid: int, inodes: set[str]) -> bool:
    """Whether one of the files that `pid` has open is one of these sockets."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    try:
        files = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for file in files:
        try:
            if str(file.readlink()) in wanted:
                return True
        except OSError:
            continue
    return False
