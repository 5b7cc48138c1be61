"""The configuration file of a server that pybench starts.

Promises: reachable from this machine only, nothing on disk unless asked for, and every credential in this file,
which only its user can read, and never on a command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

from pybench.servers.redis.binaries import Binary
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.supervised import LOOPBACK

AppendFsync = Literal["off", "everysec", "always"]

MAXCLIENTS = 20_000
"""Enough for one connection of each of 10,000 clients, and for as many of the last trial that still close."""

FILES_WANTED = MAXCLIENTS + 64
"""Open files for them and for the server itself."""

_SET_PROC_TITLE_SINCE = {"redis": (6, 2), "valkey": (0,)}


@dataclass(frozen=True, slots=True)
class Primary:
    """The port of a primary for its replicas, besides the socket of its clients, and the password of the replicas."""

    port: int
    password: SecretStr


def config_text(
    binary: Binary,
    endpoint: Endpoint,
    folder: Path,
    appendfsync: AppendFsync,
    *,
    feeds: Primary | None = None,
    follows: Primary | None = None,
) -> str:
    """One directive a line. `feeds`: for a primary with replicas. `follows`: for a replica of that primary."""
    lines = [
        *_listen(endpoint, feeds),
        *_replication(feeds, follows),
        "protected-mode yes",
        "daemonize no",
        f"dir {quoted(str(folder))}",
        f"maxclients {MAXCLIENTS}",
        # A connect beyond the backlog of a Unix socket fails at once; the kernel lowers this to what it allows.
        "tcp-backlog 4096",
        'save ""',
        f"appendonly {'no' if appendfsync == 'off' else 'yes'}",
        f"appendfsync {'no' if appendfsync == 'off' else appendfsync}",
        # A rewrite forks and floods the disk in the middle of a trial.
        "auto-aof-rewrite-percentage 0",
    ]
    if binary.version_numbers() >= _SET_PROC_TITLE_SINCE[binary.product]:
        lines.append("set-proc-title no")
    if endpoint.password is not None:
        lines.append(f"requirepass {quoted(endpoint.password.get_secret_value())}")
    return "\n".join(lines) + "\n"


def _replication(feeds: Primary | None, follows: Primary | None) -> list[str]:
    lines = []
    if feeds is not None:
        # The first copy of an empty server: straight from memory, without waiting for more replicas to come.
        lines += ["repl-diskless-sync yes", "repl-diskless-sync-delay 0"]
    if follows is not None:
        secret = quoted(follows.password.get_secret_value())
        lines += [f"replicaof {LOOPBACK} {follows.port}", f"masterauth {secret}", "repl-diskless-load on-empty-db"]
    return lines


def _listen(endpoint: Endpoint, feeds: Primary | None) -> list[str]:
    if endpoint.unix is not None:
        for_replicas = ["port 0"] if feeds is None else [f"bind {LOOPBACK}", f"port {feeds.port}"]
        return [*for_replicas, f"unixsocket {quoted(endpoint.unix)}", "unixsocketperm 700"]
    return [f"bind {endpoint.host}", f"port {endpoint.port}"]


def quoted(text: str) -> str:
    """`text` as one argument of a directive, whatever is in it."""
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in text.encode())
    return f'"{"".join(plain)}"'
