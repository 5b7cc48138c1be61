"""Checks whether this machine is suitable for benchmarking, and whether the servers work. Findings come with hints.

Promises: takes a few seconds, uses each lock on the given servers once, sends no load, and lists the left-overs of
killed runs that it removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import SecretStr

from pybench.doctor.finding import Finding, Level
from pybench.doctor.locks import examine_locks
from pybench.doctor.machine import examine_machine
from pybench.doctor.postgres import examine_postgres
from pybench.doctor.servers import examine_servers
from pybench.servers.redis.binaries import Source

__all__ = ["Finding", "Level", "examine"]


def examine(
    urls: Sequence[str | SecretStr] = (), source: Source = "auto", *, postgres: Sequence[str | SecretStr] = ()
) -> list[Finding]:
    """Check the machine, the core, the servers that can be started, and those that are named. Raises nothing.

    `urls` name Redis servers, `postgres` names databases.
    """
    return [
        *examine_machine(),
        *examine_servers(urls, source),
        *examine_postgres(postgres, source),
        *examine_locks(urls, postgres),
    ]
