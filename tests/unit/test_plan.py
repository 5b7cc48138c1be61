from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans import planned

from pybench.errors import InputError
from pybench.matrix import expand, load_matrix, matrix_from_mapping, matrix_from_options
from pybench.planning.impossible import skew_margin_ns
from pybench.planning.limits import Limits
from pybench.planning.plan import block_order, make_plan, quickened


def reasons(limits: Limits | None = None, **options: object) -> dict[str, str]:
    """Cell -> why it is refused."""
    plan = make_plan(matrix_from_options(**options), limits or Limits())
    return {refused.cell.id: refused.reason for refused in plan.refused}


def test_a_hold_that_reaches_the_lease_is_refused_and_one_below_it_is_not():
    # Of 1 s the clock-skew margin takes 12 ms.
    assert reasons(strategy="mutex", ttl="1s", hold="987ms,988ms") == {
        "mutex hold=988ms ttl=1s": "the hold of 988ms does not fit into the lease of 1s, which leaves 988ms "
        "after the clock-skew margin; lengthen ttl, shorten hold, or set allow: [hold-beyond-ttl]"
    }


def test_a_random_hold_is_judged_by_its_median():
    told = reasons(strategy="mutex", ttl="100ms", hold="exp(120ms),exp(150ms),uniform(0, 300ms),lognormal(90ms, 2)")
    assert set(told) == {"mutex hold=exp(150ms) ttl=100ms", "mutex hold=uniform(0, 300ms) ttl=100ms"}
    assert told["mutex hold=uniform(0, 300ms) ttl=100ms"].startswith(
        "the hold of uniform(0, 300ms), 150ms at its median, does not fit into the lease of 100ms"
    )


def test_the_lease_of_naive_is_rounded_up_before_it_is_compared():
    assert reasons(strategy="naive", ttl="100ms", hold="500ms") == {}
    (reason,) = reasons(strategy="naive", ttl="100ms", hold="1s").values()
    assert "does not fit into the lease of 1s" in reason


def test_no_lock_has_no_lease_to_outlive():
    assert reasons(strategy="none", ttl="1ms", hold="1s") == {}


def test_a_matrix_may_allow_holds_beyond_the_lease():
    assert reasons(strategy="mutex", ttl="100ms", hold="1s", allow="hold-beyond-ttl") == {}


def test_a_lease_that_its_clock_skew_margin_takes_whole_is_refused_whatever_is_allowed():
    told = reasons(strategy="mutex,naive", ttl="2ms,3ms", allow="hold-beyond-ttl")
    assert told == {
        "mutex ttl=2ms": "the ttl of 2ms is shorter than its clock-skew margin of 2.02ms; use a ttl of at least 3ms"
    }


def test_drift_is_one_per_cent_and_two_milliseconds():
    assert skew_margin_ns(1_000) == 12_000_000
    assert skew_margin_ns(2**53) == 2**53 * 10_000 + 2_000_000


def test_threads_without_a_client_are_refused():
    assert reasons(strategy="none", threads="1,2", concurrency="1,2") == {
        "none threads=2": "2 threads for a concurrency of 1; use at most 1 thread"
    }


def test_shared_connections_beyond_the_clients_are_no_reason():
    assert reasons(strategy="none", concurrency="1", connections="shared(4)") == {}


def test_more_connections_than_anybody_takes_are_refused():
    options = {"strategy": "none", "concurrency": "10000,10001", "connections": "per-client"}
    assert reasons(**options) == {
        "none concurrency=10001 connections=per-client": "connections per-client: 10,001 connections wanted, "
        "10,000 available (the limit of a run); lower concurrency, or use shared(4)"
    }
    tight = reasons(Limits({"redis": 9_999}), **options)
    assert "9,999 available (maxclients of the server)" in tight["none concurrency=10000 connections=per-client"]
    assert reasons(Limits({"other": 9_999}), **options).keys() == reasons(**options).keys()
    few_files = reasons(Limits(open_files=1_024), strategy="none", concurrency="960,961", connections="per-client")
    assert list(few_files) == ["none concurrency=961 connections=per-client"]
    assert "ulimit -n" in few_files["none concurrency=961 connections=per-client"]


def test_the_limits_of_this_machine_can_be_had():
    limits = Limits.of_this_machine()
    assert limits.maxclients == {}
    assert limits.open_files is None or limits.open_files > 0


def test_a_choice_among_keys_that_cannot_be_made_is_refused():
    assert reasons(strategy="none", key_choice="zipf(1.1),single,uniform", keys="1,5") == {
        "none key_choice=zipf(1.1)": "zipf(1.1) over one key always takes that key; use key_choice: uniform, or more "
        "keys",
        "none key_choice=single keys=5": "key_choice single takes only the first of 5 keys; use keys: 1",
    }


def test_what_an_open_loop_does_not_do_is_refused():
    assert reasons(strategy="none", rate="10/s", think="0,1ms", concurrency="5", max_in_flight="4,5") == {
        "none concurrency=5 max_in_flight=4 rate=10/s": "max_in_flight leaves 1 of 5 clients idle; "
        "raise max_in_flight, or lower concurrency",
        "none concurrency=5 max_in_flight=4 rate=10/s think=1ms": "think has no effect in an open loop, "
        "where arrivals start the clients; drop think or rate",
        "none concurrency=5 max_in_flight=5 rate=10/s think=1ms": "think has no effect in an open loop, "
        "where arrivals start the clients; drop think or rate",
    }
    assert reasons(strategy="none", think="1ms") == {}


def test_a_plan_of_nothing_but_refused_cells_cannot_be_run():
    plan = planned(strategy="mutex", ttl="1ms")
    assert (plan.cells, plan.order, plan.seconds) == ([], [], 0)
    with pytest.raises(InputError, match="every cell of this matrix is refused"):
        plan.require_cells()
    planned(strategy="mutex").require_cells()


@given(st.integers(0, 2**63 - 1), st.integers(1, 6))
def test_every_block_holds_each_cell_once_and_the_seed_decides_the_order(seed, trials):
    plan = planned(strategy="none,naive,mutex", concurrency="1,2,3", seed=seed, trials=trials)
    assert [sorted(block) for block in plan.order] == [list(range(9))] * trials
    assert planned(strategy="none,naive,mutex", concurrency="1,2,3", seed=seed, trials=trials).order == plan.order


def test_blocks_and_seeds_differ_in_their_order():
    first = planned(strategy="none,naive,mutex", concurrency="1,2,3").order
    assert len({tuple(block) for block in first}) > 1
    assert planned(strategy="none,naive,mutex", concurrency="1,2,3", seed=2).order != first


def test_a_cell_that_is_added_leaves_the_order_of_the_others():
    few = expand(matrix_from_options(strategy="mutex", concurrency="1,2,3,4"))
    more = expand(matrix_from_options(strategy="naive,mutex", concurrency="1,2,3,4"))
    known = {cell.id for cell in few}
    before = [few[index].id for index in block_order(7, 1, few)]
    assert [more[index].id for index in block_order(7, 1, more) if more[index].id in known] == before


def test_the_order_of_a_seed_never_changes():
    cells = expand(matrix_from_options(strategy="none,naive,mutex", concurrency="1,16"))
    assert [cells[index].id for index in block_order(1, 1, cells)] == [
        "naive concurrency=16",
        "none",
        "mutex",
        "naive",
        "mutex concurrency=16",
        "none concurrency=16",
    ]


def test_servers_are_needed_once_for_each_backend_and_persistence():
    mapping = {
        "axes": {"strategy": "mutex", "appendfsync": ["off", "always"], "concurrency": [1, 64]},
        "include": [{"strategy": "mutex", "backend": "far", "concurrency": 9, "connections": "per-client"}],
        "fixed": {"backend": "redis"},
        "backends": {"redis": {}, "far": {"url": "redis://me:hunter2@db.example"}},
    }
    needs = make_plan(matrix_from_mapping(mapping)).servers
    assert [(need.backend, need.appendfsync, need.given, need.connections) for need in needs] == [
        ("redis", "off", None, 4),
        ("redis", "always", None, 4),
        ("far", "off", ["redis://me:***@db.example"], 9),
    ]


def test_cells_share_the_first_of_the_servers_that_the_largest_needs_and_one_with_replicas_is_another():
    locks = ["mutex", "redlock(nodes=3)", "redlock", "replicated", "replicated(replicas=2)"]
    plan = planned(strategy=locks, concurrency="8")
    needs = [(need.servers, need.replicas, need.connections) for need in plan.servers]
    # A client of `replicated` has a connection of its own, beside the four shared ones.
    assert needs == [(5, 0, 4), (1, 1, 12), (1, 2, 12)]
    alone = planned(strategy="mutex", concurrency="8")
    assert plan.seconds - 5 * 5 * plan.seconds_per_trial > alone.seconds - 5 * alone.seconds_per_trial + 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"strategy": "mutex", "read_share": "0.5"},
            "mutex has no shared mode for readers; use read_share: 0, or read-write or pg-advisory or pg-row",
        ),
        (
            {"strategy": "mutex", "nesting": "2"},
            "mutex is not reentrant, so a nested acquire would wait for its own client; use nesting: 1, or reentrant",
        ),
        (
            {"strategy": "redlock", "keys_per_grant": "2", "keys": "5"},
            "redlock takes one key per grant; use keys_per_grant: 1, or multilock or redisson-multilock or pg-row",
        ),
        (
            {"strategy": "multilock", "keys_per_grant": "3", "keys": "2"},
            "a grant takes 3 keys, and the cell has 2 keys; use more keys, or fewer per grant",
        ),
        (
            {"strategy": "multilock", "key_order": "sorted", "keys": "2"},
            "key_order has no effect with one key per grant; use key_order: random, or keys_per_grant: 2",
        ),
    ],
)
def test_an_axis_that_does_not_fit_its_strategy_is_refused(options, reason):
    assert list(reasons(**options).values()) == [reason]


def test_an_axis_that_fits_its_strategy_is_planned():
    assert reasons(strategy="read-write", read_share="0,0.5,1") == {}
    assert reasons(strategy="reentrant", nesting="1,16") == {}
    assert reasons(strategy="multilock", keys_per_grant="2,3", keys="3", key_order="random,sorted") == {}
    assert reasons(strategy="mutex", read_share="0", nesting="1", keys_per_grant="1") == {}


def test_a_lock_of_more_servers_than_are_given_is_refused_with_their_number():
    urls = ["redis://a.example", "redis://b.example", "redis://c.example"]
    assert reasons(strategy=["mutex", "redlock(nodes=3)"], redis=urls) == {}
    (reason,) = reasons(strategy=["redlock"], redis=urls).values()
    assert reason == (
        "redlock needs 5 servers, and redis names 3; list 5 addresses under urls (or repeat --redis), or use nodes=3"
    )


def test_a_lock_of_more_replicas_than_a_given_server_has_is_refused():
    few = Limits(replicas={"redis": 1})
    told = reasons(few, strategy="replicated,replicated(replicas=2)", redis="redis://a.example")
    assert told == {
        "replicated(replicas=2)": "replicated(replicas=2) needs 2 replicas, and the server of redis has 1; "
        "attach more replicas, or let pybench start the servers"
    }
    assert reasons(strategy="replicated(replicas=2)") == {}


def test_waiting_for_replicas_ends_before_the_lease_and_before_the_reply_timeout():
    told = reasons(strategy=["replicated(timeout_ms=1000)", "replicated(timeout_ms=999)"])
    assert list(told) == ["replicated(timeout_ms=1000)"]
    assert "is not shorter than the reply timeout of 1s" in told["replicated(timeout_ms=1000)"]
    (reason,) = reasons(strategy="replicated", ttl="100ms").values()
    assert reason == "timeout_ms=100, the wait for replicas, is not shorter than the ttl of 100ms; use less than 100"


def test_what_believes_in_its_whole_lease_is_refused_no_lease_for_the_drift():
    assert reasons(strategy="redisson-redlock", ttl="1ms,2ms") == {}
    assert list(reasons(strategy="redisson-multilock", ttl="2ms,3ms")) == ["redisson-multilock ttl=2ms"]


def test_connections_are_counted_over_all_servers_and_with_those_of_each_clients_own():
    assert reasons(strategy="redlock", concurrency="2000,2001", connections="per-client") == {
        "redlock concurrency=2001 connections=per-client": "connections per-client: 10,005 connections wanted to 5 "
        "servers, 10,000 available (the limit of a run); lower concurrency, or use shared(4)"
    }
    # To each of the servers, not to all together.
    assert reasons(Limits({"redis": 2_000}), strategy="redlock", concurrency="2000", connections="per-client") == {}
    (reason,) = reasons(strategy="fair-queue", concurrency="9996,9997").values()
    assert reason == (
        "connections shared(4), plus one per client of fair-queue: 10,001 connections wanted, 10,000 available (the "
        "limit of a run); lower concurrency"
    )
    # Those that subscribe share what they subscribe over as they share the others.
    assert reasons(strategy="notify", concurrency="9997") == {}
    (reason,) = reasons(strategy="notify", concurrency="5000,5001", connections="per-client").values()
    assert reason == (
        "connections per-client, plus as many again for the subscriptions of notify: 10,002 connections wanted, 10,000 "
        "available (the limit of a run); lower concurrency, or use shared(4)"
    )


def test_a_hold_that_renewals_cover_is_planned():
    covered = ["watchdog", "fenced", "notify(renew=ttl/3)", "watchdog(max_hold_ms=3000)"]
    assert reasons(strategy=covered, ttl="1s", hold="2s") == {}
    told = reasons(strategy=["fenced(renew=off)", "notify", "watchdog(max_hold_ms=1500)"], ttl="1s", hold="2s")
    assert [reason.partition(",")[0] for reason in told.values()] == [
        "the hold of 2s does not fit into the lease of 1s",
        "the hold of 2s does not fit into the lease of 1s",
        "the hold of 2s does not fit into the lease of 1.5s",
    ]


def test_the_drift_of_redlock_is_that_of_its_argument():
    told = reasons(strategy=["redlock(drift_factor=0.1)", "redlock"], hold="950ms", ttl="1s")
    assert list(told) == ["redlock(drift_factor=0.1) hold=950ms ttl=1s"]


def test_the_time_of_a_plan_is_that_of_its_trials_and_what_surrounds_them():
    plan = planned(strategy="mutex", hold="100ms,200ms", trials=3, duration="2s", warmup="500ms")
    assert plan.seconds_per_trial == pytest.approx(2.57)
    trials = 2 * 3 * plan.seconds_per_trial
    assert trials < plan.seconds < trials + 8


def test_a_quick_plan_shortens_and_never_lengthens():
    plan = planned(strategy="mutex,naive")
    quick = make_plan(quickened(plan.matrix))
    assert (quick.matrix.trials, quick.matrix.warmup_ns, quick.matrix.duration_ns) == (4, 100_000_000, 300_000_000)
    assert (quick.cells, quick.order) == (plan.cells, plan.order[:4])
    assert quick.seconds < plan.seconds
    short = matrix_from_options(strategy="mutex", trials=1, duration="10ms", warmup="0")
    assert quickened(short) == short


def test_a_plan_can_be_said_in_json():
    plan = planned(strategy="mutex", ttl="1ms,1s", trials=2)
    told = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert (told["cells"], told["seconds_per_trial"]) == ([{"id": "mutex ttl=1s"}], 2.57)
    assert [refused["id"] for refused in told["refused"]] == ["mutex ttl=1ms"]
    assert told["order"] == [[0], [0]]
    (need,) = told["servers"]
    assert need.pop("connections") == 1
    assert need == {
        "backend": "redis",
        "kind": "redis",
        "appendfsync": "off",
        "servers": 1,
        "replicas": 0,
        "given": None,
    }


def test_what_speaks_of_no_cell_is_noted():
    mapping = {
        "axes": {"strategy": ["naive", "mutex"], "hold": ["1ms", "20s"]},
        "exclude": [{"strategy": "naive", "hold": "1ms"}, {"strategy": ["naive", "none"], "keys": 5}],
        "thresholds": ["violations == 0", {"where": {"hold": "20s"}, "check": "violations == 0"}],
    }
    plan = make_plan(matrix_from_mapping(mapping))
    assert plan.notes == [
        "exclude matches no cell: strategy naive or none, keys 5",
        "this threshold matches no cell and will fail: violations == 0 where hold is 20s",
    ]
    assert plan.to_dict()["notes"] == plan.notes
    assert planned(strategy="mutex").notes == []


@pytest.mark.parametrize(
    ("name", "cells", "at_most_s"),
    [
        ("quickstart", 24, 60),
        ("smoke", 6, 12),
        ("open-loop", 6, 60),
        ("lease", 4, 60),
        ("redis-locks", 26, 120),
        ("redlock", 18, 90),
        ("waiting", 18, 90),
        ("read-mostly", 9, 60),
        ("transfer", 8, 75),
        ("redis-vs-postgres", 20, 120),
        ("postgres-locks", 27, 150),
        ("regions", 9, 60),
        ("stages", 3, 120),
        ("limit", 3, 450),
        ("faults", 10, 90),
        ("guard", 5, 90),
        ("processes", 6, 90),
    ],
)
def test_every_example_can_be_planned_whole_and_is_over_within_the_time_it_says(name, cells, at_most_s):
    plan = make_plan(load_matrix(Path("examples") / f"{name}.yaml"))
    assert (len(plan.cells), plan.refused) == (cells, [])
    assert plan.seconds <= at_most_s


def test_every_example_is_planned_by_a_test():
    known = {
        "quickstart",
        "smoke",
        "open-loop",
        "lease",
        "redis-locks",
        "redlock",
        "waiting",
        "read-mostly",
        "transfer",
        "redis-vs-postgres",
        "postgres-locks",
        "regions",
        "stages",
        "limit",
        "faults",
        "guard",
        "processes",
    }
    assert {path.stem for path in Path("examples").glob("*.yaml")} == known
