"""The cases of `make perf` about the locks of a database, each beside pgbench with the same statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pybench.servers import Server
from pybench.servers.postgres import PostgresServer
from tests.benchmarks import pgbench
from tests.benchmarks.references import Figure
from tests.benchmarks.sample import Goal, Sample


@dataclass(frozen=True, slots=True)
class _Pair:
    """What pgbench and we do alike."""

    name: str
    script: str
    strategy: str
    args: dict[str, str]
    clients: int
    goal: float
    keys: int = pgbench.KEYS


PAIRS = (
    _Pair("pg-advisory, try, 1,000 keys, 1 client", pgbench.TRY, "pg-advisory", {"wait": "try"}, 1, 0.95),
    _Pair("pg-advisory, try, 1,000 keys, 16 clients", pgbench.TRY, "pg-advisory", {"wait": "try"}, 16, 1.0),
    _Pair("pg-advisory, block, 8 keys, 16 clients", pgbench.BLOCK, "pg-advisory", {"wait": "block"}, 16, 1.0, 8),
    _Pair("pg-row, 1,000 rows, 16 clients", pgbench.ROW, "pg-row", {"wait": "block"}, 16, 1.0),
)


def database(_: Server) -> Iterator[Sample]:
    """Pairs of acquire and release, and what each costs the client."""
    server = pgbench.database()
    for number, pair in enumerate(PAIRS):
        figures = {}
        # In turn, and each first as often as the other.
        for who in ("ours", "theirs") if number % 2 else ("theirs", "ours"):
            figures[who] = _measured(server, pair, who)
        ours, theirs = figures["ours"], figures["theirs"]
        least: Goal = ("at least", pair.goal)
        yield Sample(f"{pair.name} / pgbench", ours.per_s, theirs.per_s, least)
        yield Sample(f"  client CPU a grant, {pair.name} / pgbench", ours.cpu_us, theirs.cpu_us, ("at most", 1.0), "us")


def _measured(server: PostgresServer, pair: _Pair, who: str) -> Figure:
    if who == "theirs":
        return pgbench.pgbench(server, pair.script, clients=pair.clients, keys=pair.keys)
    fields: dict[str, Any] = {"args": pair.args, "concurrency": pair.clients, "keys": pair.keys}
    return pgbench.ours(server, pair.strategy, **fields)
