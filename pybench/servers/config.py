"""The configuration file of a server that pybench starts.

Promises: reachable from this machine only, nothing on disk unless asked for, and every credential in this file,
which only its user can read, and never on a command line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pybench.servers.binaries import Binary
from pybench.servers.endpoint import Endpoint

AppendFsync = Literal["off", "everysec", "always"]

MAXCLIENTS = 20_000
"""Enough for one connection a client at 10,000 clients, and for those of the trial before that still close."""

FILES_WANTED = MAXCLIENTS + 64
"""Open files for them and for the server itself."""

_SET_PROC_TITLE_SINCE = {"redis": (6, 2), "valkey": (0,)}


def config_text(binary: Binary, endpoint: Endpoint, folder: Path, appendfsync: AppendFsync) -> str:
    """One directive a line."""
    lines = [
        *_listen(endpoint),
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


def _listen(endpoint: Endpoint) -> list[str]:
    if endpoint.unix is not None:
        return ["port 0", f"unixsocket {quoted(endpoint.unix)}", "unixsocketperm 700"]
    return [f"bind {endpoint.host}", f"port {endpoint.port}"]


def quoted(text: str) -> str:
    """`text` as one argument of a directive, whatever is in it."""
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in text.encode())
    return f'"{"".join(plain)}"'
