"""What a server has spent so far, and between two readings.

A reading is itself a few INFO commands, which stand in `calls` like all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pybench.errors import ServerError
from pybench.servers.server import Server


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """Counters since the start of the server, or what `difference` made of two readings."""

    run_id: str
    cpu_us: int
    """User and system time of the whole process: main thread, I/O threads and background threads."""
    commands: int
    calls: Mapping[str, int]
    """By command in lower case, `config|get` for a subcommand."""
    evicted_keys: int


def read_figures(server: Server) -> ServerFigures:
    """Read them now. Raises ServerError."""
    with server.client() as client, client.pipeline(transaction=False) as pipe:
        for section in ("server", "cpu", "commandstats", "stats"):
            pipe.info(section)
        about, cpu, commandstats, stats = pipe.execute()
    return ServerFigures(
        run_id=str(about["run_id"]),
        cpu_us=round((float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])) * 1_000_000),
        commands=int(stats["total_commands_processed"]),
        calls={name.removeprefix("cmdstat_").lower(): int(one["calls"]) for name, one in commandstats.items()},
        evicted_keys=int(stats["evicted_keys"]),
    )


def difference(before: ServerFigures, after: ServerFigures) -> ServerFigures:
    """What came in between; commands that were not called are left out.

    Raises ServerError when the server was restarted, its counters were reset, or keys were evicted or flushed in
    between: then a lock may be gone, against which no strategy promises anything.
    """
    if before.run_id != after.run_id:
        raise ServerError("the server was restarted while it was being measured", hint="run the trial again")
    calls = {name: count - before.calls.get(name, 0) for name, count in after.calls.items()}
    result = ServerFigures(
        run_id=after.run_id,
        cpu_us=after.cpu_us - before.cpu_us,
        commands=after.commands - before.commands,
        calls={name: count for name, count in calls.items() if count},
        evicted_keys=after.evicted_keys - before.evicted_keys,
    )
    if result.commands < 0 or min(result.calls.values(), default=0) < 0:
        raise ServerError("the counters of the server were reset while it was being measured", hint="run it again")
    if result.calls.keys() & {"flushall", "flushdb"}:
        raise ServerError(
            "somebody flushed the server while it was being measured: a lock may have vanished under its holder",
            hint="give pybench a server of its own",
        )
    if result.evicted_keys > 0:
        raise ServerError(
            f"the server was full and evicted {result.evicted_keys:,} keys while it was being measured: "
            "a lock may have vanished under its holder",
            hint="set its maxmemory-policy to noeviction, or give it more memory",
        )
    return result
