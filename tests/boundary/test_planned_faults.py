"""Planned faults of connections and of clients, carried out by the core on real servers.

A slow machine makes times longer: what is asserted are lower bounds, counts, and what differs within one trial.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from pybench import _core
from pybench.core_results import PeriodFigures
from pybench.servers import ServerPool
from pybench.strategies import CATALOGUE
from tests.boundary.test_catalogue import servers_for
from tests.boundary.test_what_every_lock_survives import ARGS
from tests.core_trials import MS, fixed
from tests.redis_client import connect

AT_MS = 150
FOR_MS = 200
QUIET_MS, TRIES = 10, 20
"""A trial in which the load generator itself stood still for so long shows little of its faults: there is another."""


@pytest.fixture(scope="module")
def pool() -> Iterator[ServerPool]:
    with ServerPool() as pool:
        yield pool


def fault(do: str, *, at_ms: float = AT_MS, for_ms: float = FOR_MS, **how: object) -> dict[str, Any]:
    return {"do": do, "at_ns": round(at_ms * MS), "for_ns": round(for_ms * MS), **how}


@pytest.fixture
def run(make_spec):
    def run(*faults: dict[str, Any], **fields: Any) -> _core.TrialResult:  # noqa: ANN401 - of a spec
        usual = {"keys": 1_000, "duration_ns": 500 * MS, "reply_timeout_ns": 50 * MS}
        for _ in range(TRIES):
            result = _core.Trial(make_spec(**{**usual, **fields}, faults=list(faults))).run()
            totals = result.totals
            if totals["longest_stall_ns"] < QUIET_MS * MS:
                break
        assert totals["findings"] == 0, result.finding
        assert sum(period["grants"] for period in result.periods) == totals["grants"]
        assert sum(period["length_ns"] for period in result.periods) == totals["window_ns"]
        return result

    return run


def rates(result: _core.TrialResult) -> dict[str, float]:
    """Grants a second of each period."""
    return {
        period["period"]: period["grants"] / period["length_ns"] * 1e9
        for period in result.periods
        if period["length_ns"]
    }


def period_of(result: _core.TrialResult, name: str) -> PeriodFigures:
    (period,) = (period for period in result.periods if period["period"] == name)
    return period


def median_ms(result: _core.TrialResult, name: str) -> float:
    period = period_of(result, name)
    values, counts = _core.histogram_buckets(period["hdr"])
    return float(values[counts.cumsum().searchsorted(counts.sum() / 2)]) / MS


def outcome(result: _core.TrialResult) -> Any:  # noqa: ANN401 - is there
    assert result.faults is not None
    return result.faults


@pytest.mark.parametrize("by", [20 * MS, fixed(20)], ids=["number", "distribution"])
def test_a_delay_is_added_to_each_round_trip_while_it_lasts(run, by):
    result = run(fault("delay", by_ns=by))
    assert median_ms(result, "during") >= 20 > median_ms(result, "before")
    ((began, ended),) = outcome(result)["spans"]
    assert AT_MS * MS <= began < (AT_MS + FOR_MS) * MS <= ended
    assert result.totals["reconnects"] == result.totals["unknown"] == 0


def test_jitter_delays_each_write_by_another_time(run):
    result = run(fault("jitter", by_ns=40 * MS))
    assert median_ms(result, "before") < 5 < median_ms(result, "during")


def test_a_slow_link_carries_no_more_than_its_rate(run):
    result = run(fault("throttle", bytes_per_s=20_000))
    # Two connections carry 8 kB in that time, and an acquire and its release take more than 100 bytes.
    assert 0 < period_of(result, "during")["grants"] < 120
    assert rates(result)["before"] > 5 * rates(result)["during"]


@pytest.mark.parametrize("do", ["cut", "blackhole", "half-open"])
def test_nothing_is_granted_while_nothing_comes_back_and_work_goes_on_afterwards(run, do):
    result = run(fault(do))
    before, during, after = (period["grants"] for period in result.periods)
    # The fault began a moment after its time.
    assert during < before / 4
    assert after > 0
    assert result.totals["reconnects"] == 2
    assert result.totals["unknown"] > 0
    assert sum(period["errors"] for period in result.periods) == result.totals["unknown"] + result.totals["errors"]


def test_a_fault_of_one_server_leaves_the_others_alone(make_spec, server):
    one = {**server.core_spec(), "compare_and_delete": "script"}
    spec = make_spec(
        strategy="redlock",
        args={"nodes": 3, "node_timeout_ms": 50},
        servers=[{**one, "db": db} for db in range(3)],
        keys=1_000,
        ttl_ms=1_000,
        duration_ns=500 * MS,
        faults=[fault("cut", server=1)],
    )
    result = _core.Trial(spec).run()
    assert result.totals["reconnects"] == 2, "two connections lead to each server"
    assert rates(result)["during"] > rates(result)["before"] / 10
    assert result.totals["double_grants"] == 0


def test_a_reset_closes_every_connection_once(run):
    result = run(fault("reset", for_ms=0))
    assert result.totals["reconnects"] == 2
    ((began, ended),) = outcome(result)["spans"]
    assert began == ended >= AT_MS * MS
    assert period_of(result, "during")["length_ns"] == 0


@pytest.mark.parametrize("how", [{}, {"nth": 1}], ids=["each", "the first"])
def test_a_server_executes_what_a_lost_reply_answered(run, request, server, how):
    result = run(fault("lose-reply", for_ms=100, **how))
    lost, reconnects = result.totals["lost_calls"], result.totals["reconnects"]
    assert lost >= reconnects >= 2
    if how:
        assert reconnects == 2, "once over each connection"
    with connect(server.endpoint) as user:
        prefix = f"test:{request.node.name}:".encode()
        left = [key for key in user.scan_iter(count=10_000) if key.startswith(prefix)]
        assert left, "a lock was taken, and the client that has it does not know"
        user.delete(*left)


def test_a_crashed_holder_leaves_its_lock_to_the_end_of_the_lease(run):
    # One of the two holds most of the time.
    both = [fault("crash", client=client, for_ms=0) for client in range(2)]
    hold = {"hold": fixed(150), "ttl_ms": 250, "keys": 1, "concurrency": 2, "warmup_ns": 50 * MS}
    for _ in range(5):
        result = run(*both, **hold, reply_timeout_ns=1_000 * MS, duration_ns=900 * MS)
        found, totals = outcome(result), result.totals
        assert found["crashes"] == 2
        assert found["orphans"] == len(found["time_to_free_ns"]) <= 1
        assert totals["double_grants"] == totals["lease_overruns"] == 0
        assert totals["unsettled"] >= 1
        assert rates(result)["after"] > 0
        # Between a release and the next grant nobody holds: then there is nothing to leave behind.
        if found["orphans"]:
            # 100 ms of the lease were left, or nearly that.
            assert found["time_to_free_ns"][0] > 40 * MS
            return
    pytest.fail("nobody ever held the lock when both crashed")


def test_the_session_of_a_crashed_client_ends_with_it(make_spec, postgres):
    postgres.make_table(1)
    spec = make_spec(
        strategy="pg-advisory",
        servers=[postgres.core_spec()],
        concurrency=4,
        hold=fixed(20),
        duration_ns=500 * MS,
        faults=[fault("crash", client=client, for_ms=50) for client in range(4)],
    )
    result = _core.Trial(spec).run()
    found = outcome(result)
    assert (found["crashes"], found["orphans"]) == (4, 0)
    assert result.totals["reconnects"] == 4
    assert result.totals["double_grants"] == result.totals["findings"] == 0
    assert rates(result)["after"] > 0


def test_a_paused_holder_works_past_its_lease_and_knows_it_late(run):
    # It holds nearly all the time, and goes on long after its lease of 60 ms.
    pauses = [fault("pause", client=0, at_ms=at_ms, for_ms=150) for at_ms in (50, 300)]
    result = run(*pauses, concurrency=1, keys=1, hold=fixed(50), ttl_ms=60, reply_timeout_ns=1_000 * MS)
    known = outcome(result)["time_to_know_ns"]
    # On a busy machine a hold of 50 ms may outlive its lease without a pause, too: no fault disturbed that one.
    assert 1 <= len(known) <= result.totals["outlived"]
    assert max(known) > 50 * MS


def test_a_pause_that_outlives_the_lease_makes_two_clients_work_at_once(run):
    pauses = [fault("pause", client=client, for_ms=250) for client in range(15)]
    work = {"concurrency": 16, "keys": 1, "hold": fixed(40), "ttl_ms": 60, "reply_timeout_ns": 1_000 * MS}
    for _ in range(5):
        totals = run(*pauses, **work).totals
        assert totals["double_grants"] == 0, "belief ends with the lease"
        if totals["lease_overruns"]:
            return
    pytest.fail("one client of 16 went on, and never took the lock from under one that was paused")


def test_a_lock_whose_renewals_are_lost_is_lost(run):
    kept = {"strategy": "watchdog", "hold": fixed(250), "ttl_ms": 90, "concurrency": 1, "keys": 1}
    result = run(fault("drop-renewals", client=0, for_ms=300), **kept, duration_ns=900 * MS)
    assert outcome(result)["dropped_renewals"] >= 1
    assert result.totals["renewals"] >= 1
    assert result.totals["lapsed"] >= 1


def test_two_threads_carry_out_one_plan(run):
    plan = [fault("crash", client=7, for_ms=0), fault("delay", by_ns=10 * MS), fault("pause", client=0)]
    result = run(*plan, threads=2)
    found = outcome(result)
    assert found["crashes"] == 1
    assert all(began is not None and ended is not None for began, ended in found["spans"])
    assert median_ms(result, "during") >= 10


@pytest.mark.parametrize("threads", [1, 2])
def test_further_periods_are_told_apart_without_any_fault_of_the_core(run, threads):
    result = run(fault_periods=[(100 * MS, 200 * MS), (150 * MS, 300 * MS)], threads=threads)
    assert [period["length_ns"] / MS for period in result.periods] == [100, 200, 200]
    assert outcome(result)["spans"] == []


def test_a_trial_without_faults_has_no_such_figures(make_spec):
    result = _core.Trial(make_spec()).run()
    assert (result.periods, result.faults) == ([], None)


def test_a_trial_that_is_stopped_in_a_fault_ends_its_faults(make_spec):
    spec = make_spec(keys=1_000, duration_ns=60_000 * MS, faults=[fault("blackhole", at_ms=0, for_ms=50_000)])
    trial = _core.Trial(spec)
    trial.start()
    with contextlib.suppress(TimeoutError):
        assert not trial.wait(0.2)
    trial.stop()
    assert trial.wait(20)
    assert trial.result is not None
    ((began, ended),) = outcome(trial.result)["spans"]
    assert began is not None
    assert ended is not None
    assert ended < 50_000 * MS


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (fault("explode"), "explode"),
        (fault("crash"), "client"),
        (fault("delay"), "by_ns"),
        (fault("throttle", bytes_per_s=0), "faults"),
        (fault("cut", for_ms=0), "faults"),
        (fault("reset"), "faults"),
        (fault("cut", server=1), "faults"),
        (fault("pause", client=8), "faults"),
        (fault("lose-reply", nth=0), "faults"),
        (fault("cut", at_ms=100), "faults"),
    ],
    ids=lambda given: given["do"] if isinstance(given, dict) else given,
)
def test_a_fault_that_cannot_be_carried_out_is_refused(make_spec, wrong, named):
    with pytest.raises(ValueError, match=named):
        _core.Trial(make_spec(faults=[wrong]))


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_lock_bears_every_fault_of_clients_and_connections(make_spec, pool, name):
    """None breaks the order of its events, and each grants again afterwards."""
    clients = range(0, 6, 2)
    plan = [
        fault("lose-reply", at_ms=30, for_ms=30),
        *(fault("crash", at_ms=60 + client, for_ms=client, client=client) for client in clients),
        *(fault("pause", at_ms=90, for_ms=60, client=client) for client in clients),
        fault("reset", at_ms=100, for_ms=0),
        *(fault("crash", at_ms=120, for_ms=10, client=client) for client in clients),
        fault("delay", at_ms=130, for_ms=20, by_ns=2 * MS),
        fault("blackhole", at_ms=160, for_ms=20),
    ]
    work = {"concurrency": 6, "hold": fixed(1), "ttl_ms": 80, "reply_timeout_ns": 60 * MS, "duration_ns": 300 * MS}
    with servers_for(pool, name) as servers:
        asked = make_spec(strategy=name, args=ARGS.get(name, {}), servers=servers, faults=plan, **work)
        result = _core.Trial(asked).run()
    assert result.totals["findings"] == 0, result.finding
    assert outcome(result)["crashes"] == 6
