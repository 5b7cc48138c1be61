"""Locks that are still on a server when all that was taken is released: counted where only the lock is to blame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pybench._core import TrialResult
from pybench.analysis.disturbances import Trouble
from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.running import job, observer
from pybench.running.aftermath import UNSETTLED, all_is_released, cleared, ended
from pybench.running.guard_side import RedisGuard
from pybench.running.job import Job, Outcome
from pybench.running.trial_servers import RedisSide, Side, Spent
from pybench.servers import Server, remove_locks
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.supervised import free_port
from pybench.strategies import CATALOGUE
from tests.redis_client import connect
from tests.unit.support.trials import cell

pytestmark = pytest.mark.usefixtures("quick")

COVERED = sorted(name for name, strategy in CATALOGUE.items() if strategy.deletes_on_release)


def carried_out(folder: Path, strategy: str) -> Outcome:
    options = {"strategy": strategy, "concurrency": "16", "keys": "4", "trials": "2", "warmup": "100ms"}
    matrix = matrix_from_options(**options, hold="200us", duration="300ms")
    return job.carry_out(Job(matrix, command=[], out=folder))


def test_the_locks_of_which_nothing_stays_are_these():
    assert COVERED == ["fenced", "multilock", "mutex", "naive", "notify", "redlock", "reentrant", "watchdog"]


@pytest.mark.parametrize("strategy", COVERED)
def test_a_lock_that_releases_what_it_took_leaves_nothing(tmp_path: Path, strategy: str):
    trials = carried_out(tmp_path / "run", strategy).run.trials
    # A trial in which this machine stood still for a second says nothing.
    assert trials["left_over_keys"].notna().any()
    assert trials["left_over_keys"].sum() == 0
    assert not trials["promise_broken"].any()


def test_what_others_leave_on_purpose_is_not_counted(tmp_path: Path):
    assert carried_out(tmp_path / "run", "fair-queue").run.trials["left_over_keys"].isna().all()


def test_a_lock_that_is_still_there_when_all_is_released_breaks_its_promise(tmp_path: Path, monkeypatch):
    def planted(sides: Sequence[Side], result: TrialResult) -> tuple[list[Spent], list[Trouble]]:
        [side] = sides
        assert isinstance(side, RedisSide)
        with connect(side.server.endpoint) as client:
            # The last is no lock but a companion of one.
            for name in ("{0}", "{3}", "{0}:fence"):
                client.set(side.prefix + name, "left", px=3_600_000)
        return ended(sides, result)

    monkeypatch.setattr(observer, "ended", planted)
    outcome = carried_out(tmp_path / "run", "mutex")
    told = outcome.run.trials[outcome.run.trials["left_over_keys"].notna()]
    assert outcome.exit is Exit.PROMISE_BROKEN
    assert set(told["left_over_keys"]) == {2}
    assert set(told["verdict"]) == {"UNSAFE"}
    sentences = set(outcome.run.violations["sentence"])
    assert "2 keys were still on the server after the replies to all releases" in sentences


@pytest.mark.parametrize("count", UNSETTLED)
def test_nobody_is_blamed_where_an_answer_was_missing(count: str):
    totals = dict.fromkeys(UNSETTLED, 0)
    assert all_is_released(cell(), SimpleNamespace(stopped=False, errors=[], totals=totals))
    assert not all_is_released(cell(), SimpleNamespace(stopped=False, errors=[], totals={**totals, count: 1}))


def test_nobody_is_blamed_where_a_grant_may_outlast_its_answer():
    settled = SimpleNamespace(stopped=False, errors=[], totals=dict.fromkeys(UNSETTLED, 0))
    assert not all_is_released(cell(ttl_ms=999), settled)
    assert not all_is_released(cell("fair"), settled)


def test_locks_are_counted_apart_from_what_stands_beside_them(server: Server):
    with connect(server.endpoint) as client:
        for name in ("{0}", "{12}", "{0}:fence", "{1}:queue", "{x}", "stray"):
            client.set(f"pb:1:{name}", "v")
    assert remove_locks(server, "pb:1:") == (6, 2)


def test_a_server_that_cannot_be_cleared_keeps_no_other_from_it_and_every_failure_is_named(server: Server):
    def gone(port: int) -> Server:
        return replace(server, endpoint=Endpoint(host="127.0.0.1", port=port))

    prefix, ports = "pb:2:", (free_port(), free_port())
    guard = RedisGuard(cell(), gone(ports[0]), prefix, is_alone=True)
    with connect(server.endpoint) as client:
        client.set(f"{prefix}{{0}}", "left")
        sides = [RedisSide(gone(ports[1]), prefix), RedisSide(server, prefix)]
        left, trouble = cleared(sides, guard)
        assert not client.keys(f"{prefix}*")
    assert trouble is not None
    assert left == 0
    assert all(f"127.0.0.1:{port}" in trouble.error.message for port in ports)
    assert cleared(sides[1:]) == (0, None)
