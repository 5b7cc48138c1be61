"""The counters of a Redis server, and their increase between two readings.

A reading is a few INFO commands, which `calls` includes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pybench.errors import LocksGone, ServerError
from pybench.servers.connection import ANSWER_S, Meaning
from pybench.servers.redis.conversation import fields
from pybench.servers.redis.server import Server

_SECTIONS = ("server", "cpu", "commandstats", "stats", "errorstats", "replication")
_COMMAND = "cmdstat_"
_ERROR = "errorstat_"


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """Counters since the start of the server, or their increase between two readings."""

    address: str
    """Of the server, without credentials."""
    run_id: str
    followed: str
    """The replication id that it had before it was made a primary; zeros where it always was one."""
    cpu_us: int
    """User and system time of the whole process: main thread, I/O threads and background threads."""
    commands: int
    calls: Mapping[str, int]
    """By command in lower case, `config|get` for a subcommand."""
    errors: Mapping[str, int]
    """Error replies to all clients by their first word; empty where the server does not count them."""
    evicted_keys: int


def read_figures(server: Server, *, seconds: float = ANSWER_S) -> ServerFigures:
    """Read them now. Raises ServerError, within `seconds` whatever the server does."""
    with server.conversation(seconds=seconds) as conversation:
        told = [fields(reply) for reply in conversation.ask_all([("INFO", section) for section in _SECTIONS])]
    info = {name: value for section in told for name, value in section.items()}
    try:
        return ServerFigures(
            address=server.endpoint.address,
            run_id=info["run_id"],
            followed=info.get("master_replid2", ""),
            cpu_us=round((float(info["used_cpu_user"]) + float(info["used_cpu_sys"])) * 1_000_000),
            commands=int(info["total_commands_processed"]),
            calls={name.lower(): count for name, count in _counts(info, _COMMAND, "calls=").items()},
            errors=_counts(info, _ERROR, "count="),
            evicted_keys=int(info["evicted_keys"]),
        )
    except (KeyError, ValueError, OverflowError) as error:
        raise ServerError(
            f"{server.endpoint} does not report its counters: no {error} in its INFO",
            hint="is it Redis or Valkey itself? its log may say more",
        ) from None


def difference(before: ServerFigures, after: ServerFigures, *, keys_may_go: bool = False) -> ServerFigures:
    """The increase from `before` to `after`. Commands without calls are left out.

    Raises ServerError when the server was restarted or its counters were reset, and, unless `keys_may_go`, when keys
    were evicted or flushed in between: then a lock may be gone, and few strategies promise anything for that case.
    """
    where = after.address
    if before.run_id != after.run_id:
        raise LocksGone(
            f"{where} was restarted while it was being measured: locks that were held are gone",
            hint="keep it running, and see its log for why it ended",
            cuts_connections=True,
        )
    if before.followed != after.followed and after.followed.strip("0"):
        raise LocksGone(
            f"{where} was made a replica and a primary again while it was being measured: locks that were held may be "
            "gone",
            hint="give pybench a server of its own, and no failover while it is being measured",
        )
    result = ServerFigures(
        address=where,
        run_id=after.run_id,
        followed=after.followed,
        cpu_us=after.cpu_us - before.cpu_us,
        commands=after.commands - before.commands,
        calls=_increase(before.calls, after.calls),
        errors=_increase(before.errors, after.errors),
        evicted_keys=after.evicted_keys - before.evicted_keys,
    )
    if result.commands < 0 or min(result.calls.values(), default=0) < 0:
        raise ServerError(
            f"the counters of {where} were reset while it was being measured",
            hint="give pybench a server of its own, where nobody calls CONFIG RESETSTAT",
        )
    gone = keys_gone(result)
    if gone is not None and not keys_may_go:
        raise LocksGone(f"{gone.what}: a lock may have vanished under its holder", hint=gone.hint)
    return result


def keys_gone(spent: ServerFigures) -> Meaning | None:
    """Why keys are gone, and what the user can do; None when no key was taken away."""
    where = spent.address
    if spent.calls.keys() & {"flushall", "flushdb"}:
        return Meaning(f"somebody flushed {where} while it was being measured", "give pybench a server of its own")
    if spent.evicted_keys > 0:
        return Meaning(
            f"{where} was full and evicted {spent.evicted_keys:,} keys while it was being measured",
            "set its maxmemory-policy to noeviction, or give it more memory",
        )
    return None


def _counts(info: Mapping[str, str], kind: str, word: str) -> dict[str, int]:
    """The counters `word` of all entries of `info` whose names begin with `kind`, by the rest of their names."""
    return {
        name.removeprefix(kind): int(value.split(word, 1)[1].split(",", 1)[0])
        for name, value in info.items()
        if name.startswith(kind) and word in value
    }


def _increase(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    increases = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in increases.items() if count}
