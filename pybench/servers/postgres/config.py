"""The configuration of a Postgres that pybench starts.

Promises: reachable from this machine only; the defaults of Postgres, except for where it listens, how many sessions it
takes and what it logs; no credentials in it.
"""

from __future__ import annotations

from pathlib import Path

from pybench.servers.supervised import LOOPBACK

ROLE = "pybench"
DATABASE = "postgres"

MAX_CONNECTIONS = 100
"""The default of Postgres."""

OWN_SESSIONS = 20
"""Sessions besides those of a trial: reserved ones, those of pybench, and those of the last trial that still close."""

FILES_WANTED = 4096
"""Open files that one process needs."""


def max_connections(sessions: int) -> int:
    """The setting for trials with so many sessions."""
    return max(MAX_CONNECTIONS, sessions + OWN_SESSIONS)


def write(data: Path, *, sessions: int, port: int | None) -> None:
    """Add our settings to those that initdb wrote into `data`, and set who may log in from where.

    `port`: on loopback, where the server listens there, too.
    """
    settings = {
        "listen_addresses": "" if port is None else LOOPBACK,
        "port": 5432 if port is None else port,
        "unix_socket_directories": str(data),
        "unix_socket_permissions": "0700",
        "max_connections": max_connections(sessions),
        # Files in its own folder, so that a server that is killed leaves nothing in /dev/shm.
        "dynamic_shared_memory_type": "mmap",
        # A benchmark provokes deadlocks and timeouts, which would fill the log.
        "log_min_messages": "log",
        "log_min_error_statement": "panic",
        "log_checkpoints": "off",
        "log_destination": "stderr",
        "logging_collector": "off",
    }
    lines = [f"{name} = {quoted(str(value))}" for name, value in settings.items()]
    with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write("\n# Settings of pybench.\n" + "\n".join(lines) + "\n")
    access = ["local all all trust"]  # The folder of the socket is closed to all other users.
    if port is not None:
        access.append(f"host all all {LOOPBACK}/32 scram-sha-256")
    (data / "pg_hba.conf").write_text("\n".join(access) + "\n", encoding="utf-8")


def quoted(text: str) -> str:
    """`text` as the value of a setting."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
