"""The cases of `make perf` about the locks of a database: beside pgbench with the same statements, and how soon another
has a lock whose holder is gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pybench import _core
from pybench.servers import Server
from pybench.servers.postgres import PostgresServer
from tests.benchmarks import pgbench
from tests.benchmarks import references as ref
from tests.benchmarks.references import Figure
from tests.benchmarks.sample import Goal, Sample
from tests.core_trials import MS, fixed, running, trial_spec_of


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


TTL_MS = 500

GONE: tuple[tuple[str, dict[str, str], int], ...] = (
    ("pg-advisory", {}, 0),
    ("pg-advisory", {"scope": "transaction"}, 0),
    ("pg-row", {}, 0),
    ("pg-lease", {}, TTL_MS),
    ("layered", {}, TTL_MS),
)
"""Locks with a holder, their arguments, and within how many milliseconds they promise to be free when it is gone."""

HOLDER = """
SELECT pid FROM pg_stat_activity a WHERE application_name = 'pybench-perf' AND (state = 'idle in transaction'
    OR EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted))
"""


def holder_gone(server: Server) -> Iterator[Sample]:
    """How soon a client that waits has the lock of one that dies, or whose session somebody terminates."""
    database = pgbench.database()
    for name, args, bound in GONE:
        named = name + "".join(f", {argument} {value}" for argument, value in args.items())
        servers = [pgbench.core_spec(database)]
        if name == "layered":
            servers = [*ref.specs([server]), *servers]
        # What a waiter needs beyond it: a poll, an answer, and the end of a process of the server.
        goal: Goal = ("at most", bound + 60.0)
        died = _after_a_death_ms(servers, name, args)
        yield Sample(f"{named}, holder dies, to the next grant, promised within {bound} ms", died, None, goal, "ms")
        if not bound:
            terminated = _after_a_termination_ms(database, servers, name, args)
            yield Sample(f"  {named}, holder's session terminated, the same", terminated, None, goal, "ms")


def _after_a_death_ms(servers: list[dict[str, Any]], name: str, args: dict[str, str]) -> float:
    window_ns = 100 * MS
    same = {"strategy": name, "args": args, "key_prefix": f"perf:gone:{time.monotonic_ns()}:"}
    with (
        _running(servers, **same, hold=fixed(60_000), duration_ns=window_ns, dies=True) as (_, began_ns),
        # With another seed: with the same it would draw the token of the dead.
        _running(servers, **same, duration_ns=2 * TTL_MS * MS, seed=2) as (waiter, waiter_began_ns),
    ):
        pass
    assert waiter.result is not None
    granted_ns = waiter_began_ns + waiter.result.totals["longest_wait_ns"]
    return (granted_ns - began_ns - window_ns) / 1e6


def _after_a_termination_ms(
    database: PostgresServer, servers: list[dict[str, Any]], name: str, args: dict[str, str]
) -> float:
    asked = {"strategy": name, "args": args, "concurrency": 2, "hold": fixed(60_000), "after_lease": "stop"}
    with database.connect() as session, _running(servers, **asked, duration_ns=300 * MS) as (trial, began_ns):
        [holder] = session.execute(HOLDER).fetchone() or [0]
        ended_ns = time.monotonic_ns()
        session.execute("SELECT pg_terminate_backend(%s)", [holder])
    assert trial.result is not None
    # Of grants: the other waits to the end, once its session stands again.
    return (began_ns + int(trial.result.clients["wait_sum_ns"].max()) - ended_ns) / 1e6


@contextmanager
def _running(servers: list[dict[str, Any]], **fields: Any) -> Iterator[tuple[_core.Trial, int]]:  # noqa: ANN401
    """A trial of one client, or more, of one key, within its window for some time; and when the window began."""
    asked = {
        "client_name": "pybench-perf",
        "key_prefix": "perf:gone:",
        "concurrency": 1,
        "warmup_ns": 0,
        "ttl_ms": TTL_MS,
        "retry": {
            "kind": "fixed",
            "base_ns": MS,
            "factor": 1.0,
            "cap_ns": MS,
            "max_attempts": None,
            "max_wait_ns": 9_000 * MS,
        },
    }
    with running(trial_spec_of(servers, **{**asked, **fields})) as trial:
        while trial.progress().phase != "measuring":
            time.sleep(0.001)
        began_ns = time.monotonic_ns() - trial.progress().elapsed_ns
        time.sleep(0.02)
        yield trial, began_ns


DATABASE_CASES = (database, holder_gone)
"""The cases of `make perf` about databases."""
