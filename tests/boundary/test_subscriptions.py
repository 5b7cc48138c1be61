"""Locks that subscribe, on a real server: how many subscriptions there are, and that no wake-up is lost with one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from pybench.servers import Server
from tests.core_trials import MS, fixed, running, trial_spec
from tests.redis_client import connect
from tests.waiting import wait_until

CLIENTS = 12
LOCKS = 3


@contextlib.contextmanager
def subscribing(server: Server, **fields: object) -> Iterator[Any]:
    """A trial of `notify` whose leases nobody outlives: a wake-up that is lost stops its client for good."""
    asked = {
        "strategy": "notify",
        "key_prefix": "sub:",
        "concurrency": CLIENTS,
        "keys": LOCKS,
        "hold": fixed(1),
        "ttl_ms": 60_000,
        "warmup_ns": 0,
        "duration_ns": 30_000 * MS,
    }
    with running(trial_spec(server, **{**asked, **fields})) as trial:
        try:
            yield trial
        finally:
            trial.stop()


def subscriptions(user: redis.Redis) -> list[int]:
    """How many there are to the channel of each lock."""
    return [count for _, count in user.pubsub_numsub(*[f"sub:{{{lock}}}:channel" for lock in range(LOCKS)])]


def test_clients_that_share_connections_have_one_subscription_to_a_channel(server):
    with connect(server.endpoint) as user, subscribing(server, connections={"kind": "shared", "count": 2}):
        wait_until(lambda: subscriptions(user) == [1] * LOCKS, "each channel is listened to")
        seen = [subscriptions(user) for _ in range(50)]
    assert max(map(max, seen)) == 1


def test_a_client_with_its_own_connections_has_its_own_subscription(server):
    fields = {"keys": 1, "connections": {"kind": "per-client"}}
    with connect(server.endpoint) as user, subscribing(server, **fields):
        wait_until(lambda: subscriptions(user)[0] == CLIENTS, "each client listens")


@pytest.mark.parametrize("connections", [{"kind": "shared", "count": 2}, {"kind": "per-client"}])
def test_all_clients_are_told_that_their_subscription_is_gone_and_go_on(server, connections):
    with connect(server.endpoint) as user, subscribing(server, connections=connections) as trial:
        wait_until(lambda: min(subscriptions(user)) > 0, "each channel is listened to")
        for _ in range(5):
            user.client_kill_filter(_type="pubsub")
            before = trial.progress().grants
            wait_until(lambda before=before: trial.progress().grants > before + 10 * CLIENTS, "grants go on")
    totals = trial.result.totals
    assert totals["reconnects"] >= 5
    assert totals["double_grants"] == 0
    # A client that missed its wake-up would have waited until the end.
    assert totals["longest_wait_ns"] < 5_000 * MS
