from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybench.errors import InputError
from pybench.impossible import Limits, drift_ns
from pybench.matrix import expand, load_matrix, matrix_from_mapping, matrix_from_options
from pybench.plan import Plan, block_order, make_plan, quickened


def reasons(limits: Limits | None = None, **options: object) -> dict[str, str]:
    """Cell -> why it is refused."""
    plan = make_plan(matrix_from_options(**options), limits or Limits())
    return {refused.cell.id: refused.reason for refused in plan.refused}


def planned(**options: object) -> Plan:
    return make_plan(matrix_from_options(**options))


def test_a_hold_that_reaches_the_lease_is_refused_and_one_below_it_is_not():
    # Of 1 s the drift allowance takes 12 ms.
    assert reasons(strategy="mutex", ttl="1s", hold="987ms,988ms") == {
        "mutex hold=988ms ttl=1s": "the hold of 988ms does not fit into the lease of 1s, of which 988ms are left "
        "after the drift allowance; lengthen ttl, shorten hold, or say allow: [hold-beyond-ttl]"
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


def test_a_lease_that_its_drift_allowance_takes_whole_is_refused_whatever_is_allowed():
    told = reasons(strategy="mutex,naive", ttl="2ms,3ms", allow="hold-beyond-ttl")
    assert told == {"mutex ttl=2ms": "the drift allowance of 2.02ms takes all of the ttl of 2ms; say a ttl from 3ms on"}


def test_drift_is_one_per_cent_and_two_milliseconds():
    assert drift_ns(1_000) == 12_000_000
    assert drift_ns(2**53) == 2**53 * 10_000 + 2_000_000


def test_threads_without_a_client_are_refused():
    assert reasons(strategy="none", threads="1,2", concurrency="1,2") == {
        "none threads=2": "2 threads for a concurrency of 1; say at most 1 threads"
    }


def test_shared_connections_beyond_the_clients_are_no_reason():
    assert reasons(strategy="none", concurrency="1", connections="shared(4)") == {}


def test_more_connections_than_anybody_takes_are_refused():
    options = {"strategy": "none", "concurrency": "10000,10001", "connections": "per-client"}
    assert reasons(**options) == {
        "none concurrency=10001 connections=per-client": "per-client opens 10,001 connections, a run opens at most "
        "10,000; lower concurrency or say shared(4)"
    }
    tight = reasons(Limits({"redis": 9_999}), **options)
    assert "maxclients of its server is 9,999" in tight["none concurrency=10000 connections=per-client"]
    assert reasons(Limits({"other": 9_999}), **options).keys() == reasons(**options).keys()
    few_files = reasons(Limits(open_files=1_024), strategy="none", concurrency="960,961", connections="per-client")
    assert list(few_files) == ["none concurrency=961 connections=per-client"]
    assert "ulimit -n" in few_files["none concurrency=961 connections=per-client"]


def test_the_limits_of_this_machine_can_be_had():
    limits = Limits.of_this_machine({"redis": 5})
    assert limits.maxclients == {"redis": 5}
    assert limits.open_files is None or limits.open_files > 0


def test_a_choice_among_keys_that_cannot_be_made_is_refused():
    assert reasons(strategy="none", key_choice="zipf(1.1),single,uniform", keys="1,5") == {
        "none key_choice=zipf(1.1)": "zipf(1.1) over one key is no choice; say key_choice: uniform, or more keys",
        "none key_choice=single keys=5": "single never takes more than the first of 5 keys; say keys: 1",
    }


def test_what_an_open_loop_does_not_do_is_refused():
    assert reasons(strategy="none", rate="10/s", think="0,1ms", concurrency="5", max_in_flight="4,5") == {
        "none concurrency=5 max_in_flight=4 rate=10/s": "max_in_flight leaves 1 of 5 clients idle; "
        "raise it or lower concurrency",
        "none concurrency=5 max_in_flight=4 rate=10/s think=1ms": "in an open loop the arrivals say when a client "
        "starts again; drop think or rate",
        "none concurrency=5 max_in_flight=5 rate=10/s think=1ms": "in an open loop the arrivals say when a client "
        "starts again; drop think or rate",
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
        ("far", "off", "redis://me:***@db.example", 9),
    ]


def test_the_time_of_a_plan_is_that_of_its_trials_and_what_surrounds_them():
    plan = planned(strategy="mutex", hold="100ms,200ms", trials=3, duration="2s", warmup="500ms")
    assert plan.seconds_per_trial == pytest.approx(2.57)
    trials = 2 * 3 * plan.seconds_per_trial
    assert trials < plan.seconds < trials + 8


def test_a_quick_plan_shortens_and_never_lengthens():
    plan = planned(strategy="mutex,naive")
    quick = make_plan(quickened(plan.matrix))
    assert (quick.matrix.trials, quick.matrix.warmup_ns, quick.matrix.duration_ns) == (3, 100_000_000, 300_000_000)
    assert (quick.cells, quick.order) == (plan.cells, plan.order[:3])
    assert quick.seconds < plan.seconds
    short = matrix_from_options(strategy="mutex", trials=1, duration="10ms", warmup="0")
    assert quickened(short) == short


def test_a_plan_can_be_said_in_json():
    plan = planned(strategy="mutex", ttl="1ms,1s", trials=2)
    told = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert (told["cells"], told["seconds_per_trial"]) == ([{"id": "mutex ttl=1s"}], 2.57)
    assert [refused["id"] for refused in told["refused"]] == ["mutex ttl=1ms"]
    assert told["order"] == [[0], [0]]
    assert told["servers"] == [{"backend": "redis", "appendfsync": "off", "given": None, "connections": 1}]


def test_what_speaks_of_no_cell_is_noted():
    mapping = {
        "axes": {"strategy": ["naive", "mutex"], "hold": ["1ms", "20s"]},
        "exclude": [{"strategy": "naive", "hold": "1ms"}, {"strategy": ["naive", "none"], "keys": 5}],
        "thresholds": ["violations == 0", {"where": {"hold": "20s"}, "check": "violations == 0"}],
    }
    plan = make_plan(matrix_from_mapping(mapping))
    assert plan.notes == [
        "exclude matches no cell: strategy naive or none, keys 5",
        "a threshold speaks of no cell, and will be missed: violations == 0 where hold is 20s",
    ]
    assert plan.to_dict()["notes"] == plan.notes
    assert planned(strategy="mutex").notes == []


@pytest.mark.parametrize(
    ("name", "cells", "at_most_s"), [("quickstart", 18, 60), ("smoke", 6, 12), ("open-loop", 6, 60), ("lease", 4, 60)]
)
def test_every_example_can_be_planned_whole_and_is_over_within_a_minute(name, cells, at_most_s):
    plan = make_plan(load_matrix(Path("examples") / f"{name}.yaml"))
    assert (len(plan.cells), plan.refused) == (cells, [])
    assert plan.seconds <= at_most_s
