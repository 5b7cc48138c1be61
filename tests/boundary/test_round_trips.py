"""The round-trip time that the driver adds, between real clients and real servers.

No test fails because the machine is slow: a delay is never too short on any machine, and of many calls the fastest has
hardly been late. What is compared was measured in the same test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pybench import _core
from pybench.servers import Server
from pybench.servers.redis import binaries, supervisor
from tests.core_trials import MS, fixed, run_for_grants, running, trial_spec_of
from tests.redis_client import connect
from tests.waiting import wait_until

RTT_MS = 20
PROMPT_MS = 5
"""How late the fastest of many calls may be."""
ALONE = {"concurrency": 8, "keys": 1_000, "warmup_ns": 0, "drain_ns": 5_000 * MS}
"""Clients that hardly ever meet: each acquire is one call, and so is each release."""


@pytest.fixture(scope="module")
def five(server: Server) -> Iterator[list[Server]]:
    binary = binaries.find("auto")
    started = [supervisor.start(binary) for _ in range(4)]
    yield [server, *(Server(one.endpoint, facts, binary.source, one.pid) for one, facts in started)]
    for one, _ in started:
        one.stop()


def at(servers: list[Server], *rtts: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - distributions
    """As many of `servers` as there are times, each with its own."""
    return [
        {**server.core_spec(), "compare_and_delete": "script", "rtt": rtt}
        for server, rtt in zip(servers, rtts, strict=False)
    ]


def fastest_ms(result: _core.TrialResult, phase: str) -> float:
    """The shortest length of a phase that the end of the window did not cut short."""
    ended = (row.hdr for row in result.histograms if row.phase == phase and row.outcome != "waiting")
    buckets = [_core.histogram_buckets(hdr) for hdr in ended]
    return min(float(values[0]) for values, counts in buckets if counts.sum()) / MS


def median_ms(result: _core.TrialResult, phase: str) -> float:
    parts = [row.hdr for row in result.histograms if row.phase == phase and row.outcome == "granted"]
    values, counts = _core.histogram_buckets(_core.merge_histograms(parts))
    return float(values[counts.cumsum().searchsorted(counts.sum() / 2)]) / MS


def test_an_acquire_and_a_release_take_the_round_trip_and_little_more(server, request):
    spec = trial_spec_of(at([server], fixed(RTT_MS)), key_prefix=f"{request.node.name}:", **ALONE)
    result = run_for_grants(spec, 100)
    for phase in ("service", "release"):
        # A histogram keeps three digits.
        assert RTT_MS * 0.999 <= fastest_ms(result, phase) < RTT_MS + PROMPT_MS
    totals = result.totals
    # Between two grants of a client lie a release and an acquire; its first grant needs one round trip only.
    cycles = totals["window_ns"] / (2 * RTT_MS * MS)
    assert totals["grants"] <= 8 * (cycles + 1)
    assert totals["reconnects"] == totals["lost_calls"] == totals["unsettled"] == totals["abandoned"] == 0


def test_a_quorum_that_asks_all_at_once_waits_for_the_third_and_one_that_asks_in_turn_for_their_sum(five, request):
    times = [1, 2, 20, 30, 40]
    spec = trial_spec_of(at(five, *map(fixed, times)), strategy="redlock", key_prefix=f"{request.node.name}:", **ALONE)
    at_once = run_for_grants(spec, 60)
    in_turn = run_for_grants({**spec, "args": {"fanout": "sequential"}}, 20)
    assert times[2] * 0.999 <= fastest_ms(at_once, "service") < times[2] + PROMPT_MS
    assert fastest_ms(in_turn, "service") >= sum(times) * 0.999
    assert median_ms(at_once, "service") < median_ms(in_turn, "service")


def test_servers_have_different_times_and_a_near_one_is_not_delayed_by_a_far_one(five, request):
    spec = trial_spec_of(at(five, fixed(0), fixed(0), fixed(200)), key_prefix=f"{request.node.name}:", **ALONE)
    near = run_for_grants({**spec, "strategy": "redlock", "args": {"nodes": 3}}, 100)
    assert fastest_ms(near, "service") < 200 / 2


@pytest.mark.parametrize(
    "asked",
    [
        {"strategy": "pg-advisory", "args": {"wait": "try"}, "keys": 100},
        {"strategy": "pg-advisory", "args": {"wait": "try", "scope": "transaction"}, "keys": 100},
        {"strategy": "pg-lease", "keys": 100},
    ],
    ids=["session", "transaction", "lease"],
)
def test_a_call_to_a_database_takes_the_round_trip_too(postgres, asked):
    postgres.make_table(100)
    server = postgres.core_spec(rtt=fixed(RTT_MS))
    result = run_for_grants(trial_spec_of([server], **{**ALONE, **asked}), 60)
    assert RTT_MS * 0.999 <= fastest_ms(result, "service") < RTT_MS + 2 * PROMPT_MS
    totals = result.totals
    assert totals["reconnects"] == totals["unsettled"] == totals["abandoned"] == totals["double_grants"] == 0
    assert postgres.advisory_locks() == 0


def test_drawn_times_keep_the_order_of_bytes_on_connections_of_many_clients(server, request):
    drawn = {"kind": "uniform", "low_ns": 0, "high_ns": 10 * MS}
    hot = {**ALONE, "concurrency": 64, "keys": 4}
    result = run_for_grants(trial_spec_of(at([server], drawn), key_prefix=f"{request.node.name}:", **hot), 100)
    totals = result.totals
    # A reply that overtook another would be read as that of another client.
    assert totals["errors"] == totals["unknown"] == totals["reconnects"] == totals["double_grants"] == 0


def test_both_directions_of_a_call_take_their_halves_of_one_draw(server, request):
    """On a connection for each client no byte waits for one before it."""
    drawn = {"kind": "exp", "mean_ns": 100 * MS}
    own = {**ALONE, "concurrency": 32, "connections": {"kind": "per-client"}}
    result = run_for_grants(trial_spec_of(at([server], drawn), key_prefix=f"{request.node.name}:", **own), 250)
    # Of one draw 18 % are shorter than that, of the halves of two draws 6 %.
    assert share_below(result, 20) > 0.11


def share_below(result: _core.TrialResult, ms: float) -> float:
    ended = [row.hdr for row in result.histograms if row.phase in ("service", "release") and row.outcome != "waiting"]
    buckets = [_core.histogram_buckets(hdr) for hdr in ended]
    below = sum(int(counts[values < ms * MS].sum()) for values, counts in buckets)
    return below / sum(int(counts.sum()) for _, counts in buckets)


def test_a_stopped_trial_releases_over_the_same_distance(server, request):
    far = {"concurrency": 4, "warmup_ns": 0, "duration_ns": 60_000 * MS, "drain_ns": 5_000 * MS}
    prefix = f"{request.node.name}:"
    spec = trial_spec_of(at([server], fixed(300)), key_prefix=prefix, hold=fixed(5), keys=1_000, **far)
    with running(spec) as trial:
        wait_until(lambda: trial.progress().grants > 4, "locks are granted")
        trial.stop()
    assert trial.result.totals["unsettled"] == trial.result.totals["abandoned"] == 0
    with connect(server.endpoint) as client:
        left = list(client.scan_iter(match=f"{prefix}*"))
    assert left == [], "every release has reached the server"


def test_clients_go_on_over_new_connections_after_the_server_has_closed_theirs(server, request):
    spec = trial_spec_of(at([server], fixed(RTT_MS)), key_prefix=f"{request.node.name}:", **ALONE)
    with running(spec | {"duration_ns": 60_000 * MS, "client_name": "cut"}) as trial:
        wait_until(lambda: trial.progress().grants > 20, "locks are granted")
        with connect(server.endpoint) as client:
            for one in client.client_list():
                if one["name"] == "cut":
                    client.client_kill_filter(_id=one["id"])
        before = trial.progress().grants
        wait_until(lambda: trial.progress().grants > before + 50, "locks are granted again")
        trial.stop()
    totals = trial.result.totals
    assert totals["reconnects"] == 2
    assert totals["lost_calls"] > 0, "what was under way is lost"
    assert totals["double_grants"] == 0


def test_sessions_of_a_database_are_opened_again_over_the_same_distance(postgres):
    """Over TCP, where the log-in asks for a password: each of its messages crosses the network."""
    postgres.make_table(100)
    server = postgres.core_spec(tcp=True, rtt=fixed(RTT_MS))
    spec = trial_spec_of([server], strategy="pg-lease", client_name="far", **{**ALONE, "keys": 100})
    with running(spec | {"duration_ns": 60_000 * MS}) as trial:
        try:
            wait_until(lambda: trial.progress().grants > 20, "locks are granted")
            with postgres.connect() as session:
                session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'far'")
            # What was under way may still be granted: at most one more for each client.
            before = trial.progress().grants
            wait_until(lambda: trial.progress().grants > before + 50, "locks are granted again")
        finally:
            trial.stop()
    assert trial.result.totals["reconnects"] == 2
