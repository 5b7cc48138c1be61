"""`notify` that renews its lease, on a real server: holds that outlast several leases, and a holder that dies."""

from __future__ import annotations

import contextlib
from typing import Any

import redis

from pybench.servers import Server
from tests.core_trials import MS, fixed, running, trial_spec
from tests.redis_client import connect
from tests.waiting import wait_until

TTL_MS = 600
HOLD_MS = 1_500
"""Two and a half leases, of which each is renewed three times."""
CLIENTS = 4
CHANNEL = "kept:{0}:channel"


def keeping(server: Server, **fields: object) -> contextlib.AbstractContextManager[Any]:
    """A trial of `notify` on one key; at the end it is waited for."""
    asked = {
        "strategy": "notify",
        "args": {"renew": "ttl/3"},
        "key_prefix": "kept:",
        "concurrency": CLIENTS,
        "hold": fixed(HOLD_MS),
        "ttl_ms": TTL_MS,
        "warmup_ns": 0,
        "duration_ns": 30_000 * MS,
    }
    return running(trial_spec(server, **{**asked, **fields}))


def looks_in_vain(user: redis.Redis) -> int:
    """How often a waiter was told what is left of the lease: nothing else here asks for it."""
    return int(user.info("commandstats").get("cmdstat_pttl", {"calls": 0})["calls"])


def test_a_hold_of_several_leases_is_kept_and_those_who_wait_ask_once_in_each(server):
    with connect(server.endpoint) as user:
        user.config_resetstat()
        with keeping(server, duration_ns=(HOLD_MS - 100) * MS) as trial:
            pass
        looks = looks_in_vain(user)
        assert not user.exists("kept:{0}")
    totals = trial.result.totals
    assert totals["double_grants"] == totals["double_grants_after_overrun"] == totals["lease_overruns"] == 0
    assert totals["lapsed"] == 0
    assert totals["all_grants"] == 1, "the others wait"
    assert totals["renewals"] >= HOLD_MS // TTL_MS
    # Once when the subscription stands, and once in each two thirds of a lease.
    waiters = CLIENTS - 1
    assert waiters < looks <= waiters * (2 + HOLD_MS // (TTL_MS * 2 // 3))


def test_without_renewals_such_a_hold_outlasts_its_lease(server):
    with keeping(server, args={}, duration_ns=(HOLD_MS - 100) * MS, hold=fixed(HOLD_MS)) as trial:
        pass
    totals = trial.result.totals
    assert totals["renewals"] == 0
    assert totals["all_grants"] > 1
    assert totals["lease_overruns"] > 0


def test_a_holder_that_dies_after_renewals_leaves_no_more_than_one_lease(server):
    """Its waiter, who knows of an earlier end only, and whom nobody tells of the death, has the lock in the end."""
    dead = {"hold": fixed(60_000), "concurrency": 1, "duration_ns": 2 * TTL_MS * MS, "dies": True}
    waiting = {"hold": fixed(0), "concurrency": 1}
    with connect(server.endpoint) as user, contextlib.ExitStack() as stack:
        holder = stack.enter_context(keeping(server, **dead))
        wait_until(lambda: user.exists("kept:{0}") == 1, "it is held")
        waiter = stack.enter_context(keeping(server, **waiting))
        stack.callback(waiter.stop)
        wait_until(lambda: user.pubsub_numsub(CHANNEL)[0][1] > 0, "somebody waits")
        wait_until(lambda: holder.result is not None, "the holder dies")
        left = user.pttl("kept:{0}")
        assert waiter.progress().grants == 0, "it was held all the time"
        wait_until(lambda: waiter.progress().grants > 0, "it is free again")
    assert 0 < left <= TTL_MS
    assert holder.result.totals["renewals"] >= 3
    assert waiter.result.totals["double_grants"] == 0
