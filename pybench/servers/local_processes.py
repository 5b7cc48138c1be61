"""The process of a given server on this machine, and the cores that it runs on. Nothing here changes the process.

Promises: the process is the one that listens at the address that the server was reached at. Where that cannot be known,
as of a server behind a forwarded port or in a container of its own, there is no answer.
psutil finds the listener of a port. It does not tell a listening Unix socket from a connection to it, so the kernel is
asked whom a new connection reaches (`SO_PEERCRED`).
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from pybench.servers.processes import POSTGRES
from pybench.servers.redis.server import Server

if TYPE_CHECKING:
    from pybench.servers import AnyServer

_CONNECT_S = 0.5
_CREDENTIALS = struct.Struct("3i")
"""The kernel's `struct ucred`: pid, user, group."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A given server whose process is known."""

    address: str
    pid: int
    cores: tuple[int, ...]
    """The cores that it may run on."""
    one_process: bool
    """Whether this process does all the work; a session of Postgres is a process of its own."""

    def manifest(self) -> dict[str, Any]:
        """For the manifest of a run."""
        return {"address": self.address, "pid": self.pid, "cores": list(self.cores)}


def local_servers(servers: Iterable[AnyServer]) -> tuple[LocalServer, ...]:
    """The given `servers` whose processes are known."""
    return tuple(
        found for server in servers if not server.started_by_us and (found := _local_server(server)) is not None
    )


def where_it_runs(server: AnyServer) -> str:
    """Where a given server runs: on another machine, or on this one, with its process where that is known."""
    if not server.is_local():
        return "on another machine: run asks before it sends load there"
    known = _local_server(server)
    if known is None:
        return "on this machine, but its process cannot be seen"
    cores = f"{'core' if len(known.cores) == 1 else 'cores'} {', '.join(map(str, known.cores))}"
    return f"on this machine (process {known.pid}, which may run on {cores})"


def core_of(pid: int) -> int | None:
    """The core that the main thread of a process ran on last; None when that cannot be read."""
    try:
        return psutil.Process(pid).cpu_num()
    except psutil.Error:
        return None


def _local_server(server: AnyServer) -> LocalServer | None:
    if not server.is_local():
        return None
    try:
        process = _process_of(server)
        cores = None if process is None else process.cpu_affinity()
    except (psutil.Error, OSError, ValueError, RuntimeError):  # The last two: a table of the kernel that has odd lines.
        return None
    if process is None or cores is None:
        return None
    is_redis = isinstance(server, Server)
    return LocalServer(server.endpoint.address, process.pid, tuple(sorted(cores)), one_process=is_redis)


def _process_of(server: AnyServer) -> psutil.Process | None:
    path = server.endpoint.unix
    if path is not None:
        listener = _listener_of(path)
        return next((one for one in _candidates(server) if one.pid == listener), None)
    if server.facts.peer is None:
        return None
    peer, port = ipaddress.ip_address(server.facts.peer.partition("%")[0]), server.endpoint.port
    return next((one for one in _candidates(server) if _listens_at(one, peer, port)), None)


def _candidates(server: AnyServer) -> Iterator[psutil.Process]:
    """The processes that may be the server. A Redis reports its pid, which is one of its own container."""
    if not isinstance(server, Server):
        yield from (one for one in psutil.process_iter(["name"]) if one.info["name"] in POSTGRES)
    elif server.facts.process_id is not None:
        yield psutil.Process(server.facts.process_id)


def _listener_of(path: str) -> int:
    """The pid of the process that listens at a Unix socket; 0 where it is in another container."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_CONNECT_S)
        connection.connect(path)
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(told)[0])


def _listens_at(process: psutil.Process, peer: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> bool:
    """Whether connections to `peer` and `port` arrive at `process`."""
    try:
        sockets = process.net_connections("tcp")
    except psutil.Error:  # Another user's, or it has ended.
        return False
    for one in sockets:
        if one.status == psutil.CONN_LISTEN and one.laddr.port == port:
            found = ipaddress.ip_address(one.laddr.ip)
            mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
            if found.is_unspecified or peer in (found, mapped):
                return True
    return False
