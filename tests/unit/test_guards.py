"""The axis `guard`: its notation, the cells that it refuses, and what the values of the resource prove."""

from __future__ import annotations

import numpy as np
import pytest
from support.plans import planned
from support.trials import FakeResult, cell, record, totals

from pybench.analysis import verdicts
from pybench.analysis.guard_effects import guard_effects
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import Verdict
from pybench.errors import InputError
from pybench.matrix import expand, matrix_from_options
from pybench.matrix.conditions import say_conditions
from pybench.matrix.guards import NO_GUARD, Guard, recorded_guard
from pybench.notation import BadValue
from pybench.planning import needs
from pybench.planning.control import undisturbed
from pybench.planning.fault_rules import servers_that_end
from pybench.planning.trial_spec import trial_spec
from pybench.strategies import CATALOGUE, Exclusion, Judge, ServerKind

COUNTER, STOCK, FENCED = Guard("counter"), Guard("stock", 10), Guard("fenced-write")


def why_refused(**options: object) -> str:
    [refused] = planned(**options).refused
    return refused.reason


def one(**options: object):
    [only] = expand(matrix_from_options(**options))
    return only


@pytest.mark.parametrize(
    "text", ["none", "counter", "stock(100)", "stock(1, constraint=on)", "transfer(7)", "fenced-write"]
)
def test_a_guard_reads_its_own_text(text):
    guard = Guard.parse(text)
    assert guard.text == text
    assert recorded_guard(text) == guard
    assert bool(guard) == (text != "none")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("stock", "stock(100)"),
        ("stock(0)", "1"),
        ("stock(5, limit=on)", "stock(100)"),
        ("stock(5, constraint=maybe)", "on"),
        ("transfer(1, 2)", "transfer(100)"),
        ("counter(3)", "counter"),
        ("till", "counter, stock(100)"),
        (5, "counter"),
    ],
)
def test_what_is_no_guard_is_refused_with_what_is(text, hint):
    with pytest.raises(BadValue) as refused:
        Guard.parse(text)
    assert hint in str(refused.value.hint)


def test_records_of_other_versions_have_no_guard():
    assert recorded_guard(None) is NO_GUARD
    assert recorded_guard(float("nan")) is NO_GUARD
    assert recorded_guard("of tomorrow") is NO_GUARD


def test_the_resource_is_on_the_lock_s_own_backend_unless_another_is_named():
    own = one(strategy="mutex", guard="counter")
    assert (own.id, own.guard_on, own.guard_kind) == ("mutex guard=counter", "redis", ServerKind.REDIS)
    assert one(strategy="mutex", guard="counter", guard_on="redis").id == own.id
    both = one(strategy="layered", guard="none")
    assert (both.guard_on, both.guard_kind, both.guard) == ("none", None, NO_GUARD)
    far = one(strategy="mutex", guard="counter", guard_on="postgres")
    assert (far.id, far.guard_kind) == ("mutex guard=counter guard_on=postgres", ServerKind.POSTGRES)
    assert far.appendfsync == "off"
    near = one(strategy="pg-row", guard="counter", guard_on="redis")
    assert (near.guard_kind, near.appendfsync) == (ServerKind.REDIS, "off")


def test_an_unknown_backend_of_the_resource_is_an_error():
    with pytest.raises(InputError, match='there is no backend "postgre" for the guarded resource') as refused:
        matrix_from_options(strategy="mutex", guard="counter", guard_on="postgre")
    assert "did you mean postgres" in refused.value.message


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"strategy": "atomic"}, "atomic takes no lock, and needs work that is one step; use guard: counter"),
        ({"strategy": "atomic", "guard": "fenced-write"}, "atomic takes no lock"),
        ({"strategy": "pg-optimistic", "guard": "counter"}, "pg-optimistic writes a row of its own at each release"),
        ({"strategy": "layered", "guard": "fenced-write"}, "layered writes a row of its own at each release"),
        ({"strategy": "semaphore", "guard": "counter"}, "semaphore lets several clients work on one key"),
        ({"strategy": "mutex", "guard": "stock(5, constraint=on)"}, "constraint=on is a CHECK of a table"),
        ({"strategy": "mutex", "guard": "fenced-write"}, "mutex has no fence for fenced-write; use fenced or pg-lease"),
        (
            {"strategy": "mutex", "guard": "transfer(5)"},
            "takes two accounts per grant, and mutex takes one key; use mul",
        ),
        (
            {"strategy": "multilock", "guard": "transfer(5)", "keys": 4},
            "takes two accounts per grant; use keys_per_grant: 2",
        ),
        (
            {"strategy": "multilock", "guard": "counter", "keys": 4, "keys_per_grant": 2},
            "counter is one key per grant; use keys_per_grant: 1",
        ),
    ],
)
def test_a_lock_that_cannot_be_guarded_so_is_refused(options, reason):
    assert reason in why_refused(**options)


def test_each_client_has_a_connection_to_the_resource():
    near = one(strategy="mutex", guard="counter", concurrency=30)
    assert needs.sessions_of(near, "redis") == 4 + 30
    assert needs.guard_place_of(near) == 0
    assert needs.all_parts_of(near) == needs.parts_of(near)
    far = one(strategy="redlock(nodes=3)", guard="counter", guard_on="postgres", concurrency=30)
    assert (needs.sessions_of(far, "redis"), needs.sessions_of(far, "postgres")) == (4, 30)
    assert needs.guard_place_of(far) is None
    assert [part.group.backend for part in needs.all_parts_of(far)] == ["redis", "postgres"]
    assert "1,100 sessions wanted" in why_refused(
        strategy="mutex", guard="counter", guard_on="postgres", concurrency=1_100
    )


def test_a_fault_may_be_one_of_the_resource_s_own_server():
    matrix = matrix_from_options(
        strategy="mutex", guard="counter", guard_on="postgres", faults="kill postgres at 1s for 200ms", duration="2s"
    )
    [cell] = expand(matrix)
    assert servers_that_end(cell, matrix) == {1}
    refused = why_refused(strategy="mutex", guard="counter", faults="kill postgres at 1s for 200ms")
    assert "the cell has no Postgres server" in refused


def test_controls_and_probes_have_no_guard():
    plain = undisturbed(one(strategy="mutex", guard="counter"))
    assert (plain.guard, plain.guard_kind) == (NO_GUARD, None)


def test_the_core_gets_the_resource_with_the_network_of_its_server():
    cell = one(strategy="redlock(nodes=2)", guard="stock(5)", rtt="per-server(1ms, 9ms)")
    server = {"kind": "redis"}
    times = {"warmup_ns": 0, "duration_ns": 1, "seed": 1}
    spec = trial_spec(cell, [server, server], cores=[], key_prefix="", client_name="", guard=server, **times)  # type: ignore[list-item, arg-type]
    assert spec["guard"] == {"kind": "stock", "server": {"kind": "redis", "rtt": {"kind": "fixed", "value_ns": 10**6}}}
    assert "guard_on" not in spec
    bare = trial_spec(one(strategy="mutex"), [server], cores=[], key_prefix="", client_name="", **times)  # type: ignore[list-item, arg-type]
    assert "guard" not in bare


def test_conditions_name_the_resource_where_there_is_one():
    assert say_conditions([("guard", "stock(5)"), ("guard_on", "redis")]) == "guard stock(5), guard on redis"
    assert say_conditions([("guard", "none"), ("guard_on", "none")]) == "no guard"


def effects(guard: Guard, changed, values, unknown=(0, 0), *, is_atomic=False, **counts: int):
    writes = {
        "unknown": np.array(unknown, dtype=np.uint64),
        "changed": np.array(changed, dtype=np.int64),
        "acknowledged": np.abs(np.array(changed)).astype(np.uint64),
    }
    final = None if values is None else np.array(values, dtype=np.int64)
    return guard_effects(guard, totals(**counts), writes, final, is_atomic=is_atomic)


@pytest.mark.parametrize(
    ("changed", "values", "unknown", "lost", "surplus"),
    [
        ([5, 3], [5, 3], [0, 0], 0, 0),
        ([5, 3], [4, 3], [0, 0], 1, 0),
        ([5, 3], [4, 4], [0, 0], 1, 1),  # A surplus in one key does not hide a loss in another.
        ([5, 3], [6, 3], [1, 0], 0, 0),
        ([5, 3], [7, 3], [1, 0], 0, 1),
        ([5, 3], [1, 3], [1, 0], 0, 0),  # A late absolute write may have undone any number of others.
        ([5, 3], [1, 2], [1, 0], 1, 0),
    ],
)
def test_a_counter_must_hold_what_was_acknowledged(changed, values, unknown, lost, surplus):
    found = effects(COUNTER, changed, values, unknown)
    assert (found["lost_updates"], found["surplus_updates"]) == (lost, surplus)
    assert found["final_value"] == sum(values)


def test_an_atomic_counter_has_no_late_writes():
    assert effects(COUNTER, [5, 3], [1, 3], [1, 0], is_atomic=True)["lost_updates"] == 4


def test_a_stock_below_zero_is_oversold_and_every_sale_must_be_there():
    assert effects(STOCK, [-10, -12], [0, -2])["oversold"] == 2
    missing = effects(STOCK, [-10, -4], [0, 7])
    assert (missing["oversold"], missing["lost_updates"], missing["surplus_updates"]) == (0, 1, 0)
    unknown = effects(STOCK, [-4, -4], [5, 5], [1, 0])
    assert (unknown["lost_updates"], unknown["surplus_updates"]) == (0, 1)


def test_errors_of_a_transfer_do_not_cancel_each_other_out():
    guard = Guard("transfer", 100)
    assert effects(guard, [-3, 3], [97, 103])["sum_error"] == 0
    assert effects(guard, [-3, 3], [98, 102])["sum_error"] == 2
    assert effects(guard, [-3, 3], [98, 103], [1, 0])["sum_error"] == 0, "a write without a reply may explain it"


def test_values_that_were_not_read_prove_nothing():
    found = effects(STOCK, [-4, -4], None, sold_out=3)
    assert found == {"acknowledged_writes": 0, "unknown_writes": 0, "abandoned_works": 0, "sold_out": 3}


BELIEVED = {"grants": 900, "contended_grants": 300, "final_value": 900, "acknowledged_writes": 900}


def judged(guard: Guard, *, of: str = "mutex", judged_by: Judge = Judge.BELIEF, **counts: int | None):
    terms = Terms(CATALOGUE[of].exclusion, CATALOGUE[of].promises, judged_by, guard=guard)
    return verdicts.judge({**BELIEVED, **counts}, terms, control_caught=True)


def test_effects_count_beside_beliefs():
    clean = judged(COUNTER)
    assert (clean.verdict, clean.promise_broken) == (Verdict.SAFE, False)
    lost = judged(COUNTER, lost_updates=3)
    assert (lost.verdict, lost.promise_broken) == (Verdict.UNSAFE, True)
    assert lost.reason == "3 lost updates; no two holders believed in the lock at once, but their writes collided"
    assert judged(NO_GUARD, lost_updates=3).verdict is Verdict.SAFE, "without a guard nobody wrote"


@pytest.mark.parametrize(
    ("guard", "counts", "said"),
    [
        (
            COUNTER,
            {},
            "2 overlaps, but no update was lost: none of these works wrote between the read and the write of",
        ),
        (STOCK, {}, "2 overlaps, but nothing was oversold: no two of these works took the last unit"),
        (STOCK, {"refused_writes": 1}, "2 overlaps, but nothing was oversold: the constraint refused 1 write"),
        (COUNTER, {"final_value": None}, "could not be read, so the effects are not known"),
    ],
)
def test_the_reason_says_where_beliefs_and_effects_disagree(guard, counts, said):
    assert said in judged(guard, of="none", double_grants=2, **counts).reason


def test_where_both_say_the_same_nothing_is_added():
    assert judged(COUNTER, of="none", double_grants=2, lost_updates=1).reason == "2 double grants, 1 lost update"


def test_the_reason_says_where_no_guarded_work_wrote():
    silent = judged(COUNTER, acknowledged_writes=0, final_value=0)
    assert silent.verdict is Verdict.SAFE, "beliefs decide"
    assert silent.reason.endswith("; no guarded write was acknowledged, so the effects prove nothing")


@pytest.mark.parametrize("late", ["outlived", "sessions_lost", "unknown_writes", "unknown"])
def test_late_writers_are_outside_of_the_promise(late):
    judgement = judged(COUNTER, lost_updates=3, **{late: 1})
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.UNSAFE, False)


def test_none_breaks_no_promise_by_losing_updates():
    judgement = judged(COUNTER, of="none", double_grants=5, lost_updates=3)
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.UNSAFE, False)


def test_a_resource_that_compares_fences_decides_alone():
    terms = Terms.of(CATALOGUE["fenced"], cell("fenced", guard=FENCED))
    assert (terms.judged_by, terms.exclusion, terms.guard) == (Judge.GUARD, Exclusion.ALWAYS, FENCED)
    counts = {**BELIEVED, "lease_overruns": 8, "outlived": 8, "stale_writes": 300, "unknown_writes": 0}
    safe = verdicts.judge(counts, terms, control_caught=True)
    assert (safe.verdict, safe.bound_per_million) == (Verdict.SAFE, 10_000)
    assert safe.reason.endswith("8 lease overruns; 300 stale writes were refused")
    broken = verdicts.judge({**counts, "stale_writes_accepted": 1}, terms, control_caught=True)
    assert (broken.verdict, broken.promise_broken, broken.reason) == (Verdict.UNSAFE, True, "1 accepted stale write")


def test_a_record_keeps_the_terms_of_its_guard():
    guarded = cell("mutex", guard=STOCK)
    writes = {"unknown": np.zeros(1, np.uint64), "changed": np.array([-12]), "acknowledged": np.array([12], np.uint64)}
    row = record(guarded, result=FakeResult(totals=totals(), writes=writes), final_values=np.array([-2])).row
    assert (row["guard"], row["oversold"], row["verdict"], row["violations"]) == ("stock(10)", 2, "UNSAFE", 2)
    assert Terms.recorded(row) == Terms.of(CATALOGUE["mutex"], guarded)


def test_an_atomic_step_is_judged_by_its_effects_alone():
    terms = Terms.of(CATALOGUE["atomic"], cell("atomic", guard=STOCK))
    assert (terms.by_effects, terms.leave_something_to_decide) == (True, True)
    counts = {**BELIEVED, "unknown_writes": 0}
    assert verdicts.judge(counts, terms, control_caught=True).verdict is Verdict.SAFE
    unread = verdicts.judge({**counts, "final_value": None}, terms, control_caught=True)
    assert unread.verdict is Verdict.UNDECIDED
    assert verdicts.judge({**counts, "oversold": 1}, terms, control_caught=True).promise_broken
