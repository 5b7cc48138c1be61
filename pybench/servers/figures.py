"""What a server has spent so far, and between two readings.

A reading is itself a few INFO commands, which stand in `calls` like all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.errors import ServerError
from pybench.servers.server import Server


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """Counters since the start of the server, or what `difference` made of two readings."""

    run_id: str
    cpu_user_us: int
    cpu_sys_us: int
    """CPU of the whole process: main thread, I/O threads and background threads."""
    main_thread_user_us: int | None
    main_thread_sys_us: int | None
    """None where the server does not tell them apart: Redis before 6.2."""
    calls: Mapping[str, int]
    """By command in lower case, `config|get` for a subcommand."""
    commands: int
    used_memory: int
    """Bytes now; in a difference, how many more."""
    connections: int
    """Accepted."""
    evicted_keys: int
    expired_keys: int

    @property
    def cpu_us(self) -> int:
        """User and system together."""
        return self.cpu_user_us + self.cpu_sys_us


def read_figures(server: Server) -> ServerFigures:
    """Read them now. Raises ServerError."""
    with server.client() as client, client.pipeline(transaction=False) as pipe:
        for section in ("server", "cpu", "commandstats", "memory", "stats"):
            pipe.info(section)
        about, cpu, commandstats, memory, stats = pipe.execute()
    return ServerFigures(
        run_id=str(about["run_id"]),
        cpu_user_us=_microseconds(cpu["used_cpu_user"]),
        cpu_sys_us=_microseconds(cpu["used_cpu_sys"]),
        main_thread_user_us=_microseconds_or_none(cpu.get("used_cpu_user_main_thread")),
        main_thread_sys_us=_microseconds_or_none(cpu.get("used_cpu_sys_main_thread")),
        calls={name.removeprefix("cmdstat_").lower(): int(one["calls"]) for name, one in commandstats.items()},
        commands=int(stats["total_commands_processed"]),
        used_memory=int(memory["used_memory"]),
        connections=int(stats["total_connections_received"]),
        evicted_keys=int(stats["evicted_keys"]),
        expired_keys=int(stats["expired_keys"]),
    )


def difference(before: ServerFigures, after: ServerFigures) -> ServerFigures:
    """What came in between; commands that were not called are left out.

    Raises ServerError when the server was restarted or its counters were reset in between.
    """
    calls = {name: count - before.calls.get(name, 0) for name, count in after.calls.items()}
    result = ServerFigures(
        run_id=after.run_id,
        cpu_user_us=after.cpu_user_us - before.cpu_user_us,
        cpu_sys_us=after.cpu_sys_us - before.cpu_sys_us,
        main_thread_user_us=_minus(after.main_thread_user_us, before.main_thread_user_us),
        main_thread_sys_us=_minus(after.main_thread_sys_us, before.main_thread_sys_us),
        calls={name: count for name, count in calls.items() if count},
        commands=after.commands - before.commands,
        used_memory=after.used_memory - before.used_memory,
        connections=after.connections - before.connections,
        evicted_keys=after.evicted_keys - before.evicted_keys,
        expired_keys=after.expired_keys - before.expired_keys,
    )
    if before.run_id != after.run_id:
        raise ServerError("the server was restarted while it was being measured", hint="run the trial again")
    if result.commands < 0 or min(result.calls.values(), default=0) < 0:
        raise ServerError("the counters of the server were reset while it was being measured", hint="run it again")
    return result


def _microseconds(seconds: Any) -> int:  # noqa: ANN401 - redis-py parses a number by its looks
    return round(float(seconds) * 1_000_000)


def _microseconds_or_none(seconds: Any) -> int | None:  # noqa: ANN401
    return None if seconds is None else _microseconds(seconds)


def _minus(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before
