"""Many trials under faults drawn from a seed: slow, so outside of `make test`; samples of three stand inside.

Each trial is judged as a run judges it. An honest lock that is blamed is the worst fault that pybench can have.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pybench import _core
from pybench.matrix import matrix_from_options
from pybench.matrix.values import Distribution
from pybench.planning.plan import make_plan
from pybench.records import trial_record
from pybench.servers import Server, ServerPool
from pybench.servers.postgres import read_values
from pybench.strategies import CATALOGUE, Exclusion, Judge, ServerKind, Strategy
from tests.boundary.databases import SCHEMA, Database
from tests.boundary.interference import CLIENT, on_postgres, on_redis, run_under
from tests.boundary.test_what_every_lock_survives import Backend
from tests.core_trials import MS, fixed, trial_spec_of

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell

ON_ONE_REDIS = (
    *("mutex", "watchdog", "reentrant(count=server)", "reentrant(count=local)", "read-write", "fair", "fair-queue"),
    *("notify", "semaphore(permits=3)", "fenced"),
)
"""Every lock of one Redis server that promises exclusion whatever befalls its connections."""

# Five servers share this machine: by default each has 6 ms of a lease of 60, and is seldom so quick here.
ON_SEVERAL = (
    *("redlock(node_timeout_ms=50)", "redlock(node_timeout_ms=50,nodes=4)", "multilock(node_timeout_ms=50)"),
    *("redlock(node_timeout_ms=50,fanout=sequential)", "redisson-redlock(nodes=5,wait_budget_ms=100)"),
    *("redisson-multilock(nodes=1,wait_budget_ms=100)", "redisson-multilock(nodes=3,wait_budget_ms=100)"),
)
ON_POSTGRES = (
    *("pg-advisory", "pg-advisory(wait=try)", "pg-advisory(scope=transaction)"),
    *("pg-row", "pg-row(wait=nowait)", "pg-row(wait=skip-locked)"),
    *("pg-lease", "pg-optimistic", "pg-serializable", "layered"),
)

OF_MANY_KEYS = ("multilock", "redisson-multilock", "pg-row")
SHARED = ("read-write", "pg-advisory", "pg-row")
MOST_SESSIONS = 16
"""Of a trial with the database, which takes 80."""


@pytest.fixture(scope="module")
def several() -> Iterator[list[Server]]:
    """As many servers as any lock here needs."""
    with ServerPool() as pool:
        yield pool.redis(Backend("here"), servers=5, replicas=0)


class Proof:
    """Trials of locks under faults, each of them judged."""

    def __init__(self, servers: list[Server], database: Database | None = None) -> None:
        self._servers = servers
        self._database = database
        self.totals: Counter[str] = Counter()
        """Of all trials together."""

    def try_all(self, locks: Sequence[str], seeds: Iterable[int]) -> None:
        """With each of `seeds` one trial of one of `locks`, drawn."""
        for seed in seeds:
            lock = random.Random(-seed).choice(locks)
            self.try_one(lock, seed)

    def try_one(self, lock: str, seed: int) -> None:
        (cell,) = make_plan(matrix_from_options(strategy=lock)).cells
        strategy = CATALOGUE[cell.strategy].with_arguments(cell.args)
        chance = random.Random(seed)
        keys = chance.choice([1, 3, 50])
        with contextlib.ExitStack() as stack:
            servers, faults = [], []
            if ServerKind.REDIS in strategy.server_kinds:
                redis = self._servers[: strategy.servers(cell.args)]
                servers += [{**server.core_spec(), "compare_and_delete": "script"} for server in redis]
                faults.append(stack.enter_context(on_redis(redis)))
            if ServerKind.POSTGRES in strategy.server_kinds:
                assert self._database is not None
                self._database.make_table(keys)
                servers.append(self._database.core_spec())
                faults.append(stack.enter_context(on_postgres(self._database)))
            drawn = of_a_trial(cell.strategy, chance, keys, most=32 if self._database is None else MOST_SESSIONS)
            spec = trial_spec_of(
                servers,
                **drawn,
                strategy=cell.strategy,
                args=dict(cell.args),
                seed=seed,
                key_prefix=f"proof:{seed}:",
                client_name=CLIENT,
            )
            result = run_under(faults, spec, chance)
        self.totals.update(result.totals)
        tried = {
            name: drawn[name] for name in ("keys", "keys_per_grant", "nesting", "read_share", "concurrency", "threads")
        }
        cell = replace(cell, **tried, ttl_ms=drawn["ttl_ms"], hold=Distribution("fixed", (drawn["hold"]["value_ns"],)))
        self._judge(cell, strategy, result, f"repeat: seed {seed}, {lock}, {drawn}")

    def _judge(self, cell: Cell, strategy: Strategy, result: _core.TrialResult, told: str) -> None:
        values = None
        if self._database is not None and strategy.judged_by is not Judge.BELIEF:
            with self._database.connect() as session:
                values = read_values(session, SCHEMA, cell.keys)
        record = trial_record(
            cell,
            trial=0,
            block=0,
            started_at=datetime.now(UTC),
            result=result,
            servers=(),
            server_cpu_us=None,
            final_values=values,
            strategy=strategy,
        )
        totals = result.totals
        told += f": {record.row['verdict']}, {totals}, {record.violations[:3]}"
        assert not record.row["promise_broken"], told
        assert totals["findings"] == 0, f"{told}: {result.finding}"
        if strategy.exclusion is Exclusion.ALWAYS and strategy.judged_by is Judge.BELIEF:
            assert totals["double_grants"] == totals["double_grants_after_overrun"] == 0, told
        # A holder that the machine kept from its timer past the end of its lease may overrun it: that is no double
        # grant. Where an answer was lost the one key may be taken, by nobody, until its lease ends after the trial. A
        # machine that stood still for a third of it shows nothing.
        nobody = totals["unknown"] + totals["lost_calls"] + totals["conflicts"] > 0
        assert totals["grants"] > 0 or nobody or totals["longest_stall_ns"] > 200 * MS, told


def of_a_trial(strategy: str, chance: random.Random, keys: int, *, most: int) -> dict[str, Any]:
    """The fields that differ from trial to trial."""
    clients = chance.choice([2, 8, most])
    return {
        "keys": keys,
        "keys_per_grant": min(keys, chance.choice([1, 3])) if strategy in OF_MANY_KEYS else 1,
        "nesting": chance.choice([1, 2, 5]) if strategy == "reentrant" else 1,
        "read_share": chance.choice([0.0, 0.7]) if strategy in SHARED else 0.0,
        "concurrency": clients,
        "threads": chance.choice([1, 2]),
        "connections": chance.choice([{"kind": "shared", "count": min(4, clients)}, {"kind": "per-client"}]),
        "hold": fixed(chance.choice([0, 0.2, 3])),
        "ttl_ms": chance.choice([60, 250, 10_000]),
        "reply_timeout_ns": chance.choice([30, 200]) * MS,
        "after_lease": "stop",
        "duration_ns": 600 * MS,
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_mutex_excludes_under_faults(server: Server, seed: int):
    Proof([server]).try_one("mutex", seed)


@pytest.mark.parametrize(("lock", "seed"), [("redlock(node_timeout_ms=50)", 3), ("multilock(node_timeout_ms=50)", 4)])
def test_a_lock_of_several_servers_excludes_under_faults(several: list[Server], lock: str, seed: int):
    Proof(several).try_one(lock, seed)


@pytest.mark.parametrize(("lock", "seed"), [("pg-advisory", 5), ("pg-lease", 6), ("layered", 7)])
def test_a_lock_of_a_database_excludes_under_faults(server: Server, postgres: Database, lock: str, seed: int):
    Proof([server], postgres).try_one(lock, seed)


@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_no_honest_lock_of_one_redis_is_blamed_in_600_trials_under_faults(server: Server):
    proof = Proof([server])
    proof.try_all(ON_ONE_REDIS, range(1_000, 1_600))
    assert proof.totals["reconnects"] > 600, "the faults reached the trials"


@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_no_honest_lock_of_several_servers_is_blamed_in_200_trials_under_faults(several: list[Server]):
    proof = Proof(several)
    proof.try_all(ON_SEVERAL, range(2_000, 2_200))
    assert proof.totals["reconnects"] > 200, "the faults reached the trials"


@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_no_honest_lock_of_a_database_is_blamed_in_200_trials_under_faults(server: Server, postgres: Database):
    proof = Proof([server], postgres)
    proof.try_all(ON_POSTGRES, range(3_000, 3_200))
    assert proof.totals["reconnects"] > 200, "the faults reached the trials"
