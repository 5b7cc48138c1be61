from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.trials import FakeResult, cell, record, totals, violation

from pybench.analysis import verdicts
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import Verdict
from pybench.strategies import CATALOGUE, Exclusion, Judge, Promise

WRITTEN = {
    "grants": 900,
    "contended_grants": 300,
    "acknowledged_writes": 1_000,
    "unknown_writes": 0,
    "stale_writes": 0,
    "final_value": 1_000,
    "lost_updates": 0,
    "surplus_updates": 0,
}


def judged(
    judged_by=Judge.EFFECTS, exclusion=Exclusion.NOTHING, promises=(), *, control_caught=True, **counts: int | None
):
    terms = Terms(exclusion, frozenset(promises), judged_by)
    return verdicts.judge({**WRITTEN, **counts}, terms, control_caught=control_caught)


def trial(judged_by: Judge, *, final_value: int | None, of="mutex", found=(), **counts: int):
    """The row of a trial whose strategy is judged by this."""
    strategy = CATALOGUE[of]
    fields = {name: getattr(strategy, name) for name in strategy.__dataclass_fields__}
    rows = {name: np.array([counts.get(f"{name}_writes", 0)], dtype=np.uint64) for name in ("acknowledged", "unknown")}
    result = FakeResult(totals=totals(**counts), violations=list(found), writes=rows)
    values = None if final_value is None else np.array([final_value], dtype=np.uint64)
    return record(
        cell(of), result=result, final_values=values, strategy=type(strategy)(**{**fields, "judged_by": judged_by})
    )


def test_what_was_written_and_is_there_is_safe_with_its_bound():
    judgement = judged()
    assert (judgement.verdict, judgement.bound_per_million, judgement.promise_broken) == (Verdict.SAFE, 10_000, False)
    assert judgement.reason == "0 lost updates in 300 contended grants: true rate at most 1 % (95 % confidence)"


def test_where_nothing_was_written_nothing_is_proved():
    judgement = judged(acknowledged_writes=0, final_value=0)
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.UNDECIDED, False)
    assert judgement.reason == "no write was acknowledged, so nothing is proved"
    refused = judged(Judge.GUARD, acknowledged_writes=0, final_value=0, stale_writes=300)
    assert refused.verdict is Verdict.SAFE, "each stale write tested the guard"


def test_without_a_conflict_there_is_no_bound():
    judgement = judged(contended_grants=0)
    assert (judgement.verdict, judgement.bound_per_million) == (Verdict.SAFE, None)
    assert judgement.reason == "0 lost updates in 900 grants, none of them contended"


@pytest.mark.parametrize("judged_by", [Judge.EFFECTS, Judge.GUARD])
@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ({"lost_updates": 2}, "2 lost updates"),
        ({"surplus_updates": 1}, "1 surplus update"),
        ({"lost_updates": 1, "unknown_writes": 3}, "1 lost update"),
    ],
)
def test_an_update_that_is_lost_or_made_twice_breaks_the_promise(judged_by, counts, reason):
    judgement = judged(judged_by, **counts)
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.UNSAFE, True)
    assert judgement.reason == reason


def test_answers_that_were_lost_leave_it_undecided():
    judgement = judged(unknown_writes=2)
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.UNDECIDED, False)
    assert judgement.reason == "2 writes had no reply, and could hide a lost update"


def test_what_nobody_read_back_proves_nothing():
    judgement = judged(final_value=None, lost_updates=None, surplus_updates=None)
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.UNDECIDED, False)
    assert judgement.reason == "the lock is judged by its writes, and their sum was not read"


def test_nothing_granted_decides_nothing():
    assert judged(grants=0).verdict is Verdict.UNDECIDED


def test_a_control_that_was_not_caught_voids_it_too():
    assert judged(control_caught=False).verdict is Verdict.VOID


def test_overlaps_that_a_guard_let_nothing_through_of_are_shown_and_no_violation():
    overlapped = {"double_grants": 3, "stale_fences": 1, "stale_writes": 2}
    judgement = judged(Judge.GUARD, Exclusion.ALWAYS, {Promise.FENCE}, **overlapped)
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.SAFE, False)
    assert judgement.reason.endswith("(95 % confidence); 3 double grants; 2 stale writes were refused")
    fenced = Terms(Exclusion.ALWAYS, frozenset({Promise.FENCE}), Judge.GUARD)
    assert verdicts.violations({**WRITTEN, **overlapped}, fenced) == 0
    assert not verdicts.is_violation(violation(), fenced)


def test_belief_judges_no_effects():
    judgement = judged(Judge.BELIEF, Exclusion.ALWAYS, lost_updates=5)
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.SAFE, False)


def test_a_surplus_of_one_row_hides_no_loss_of_another():
    strategy = CATALOGUE["pg-optimistic"]
    rows = {"acknowledged": np.array([5, 5], dtype=np.uint64), "unknown": np.array([0, 0], dtype=np.uint64)}
    result = FakeResult(totals=totals(acknowledged_writes=10), writes=rows)
    row = record(cell(), result=result, final_values=np.array([3, 7], dtype=np.uint64), strategy=strategy).row
    assert (row["final_value"], row["lost_updates"], row["surplus_updates"]) == (10, 2, 2)
    assert row["verdict"] == "UNSAFE"


@pytest.mark.parametrize(
    ("final_value", "lost", "surplus", "verdict"),
    [
        (2_000, 0, 0, "UNDECIDED"),
        (1_999, 1, 0, "UNSAFE"),
        (2_001, 0, 0, "UNDECIDED"),
        (2_002, 0, 1, "UNSAFE"),
        (None, None, None, "UNDECIDED"),
    ],
)
def test_a_trial_counts_what_its_sum_lacks_or_has_too_much(final_value, lost, surplus, verdict):
    row = trial(Judge.EFFECTS, final_value=final_value, acknowledged_writes=2_000, unknown_writes=1).row
    assert (row["lost_updates"], row["surplus_updates"], row["final_value"]) == (lost, surplus, final_value)
    assert (row["verdict"], row["judged_by"]) == (verdict, "effects")
    assert row["promise_broken"] is (verdict == "UNSAFE")


def test_where_nobody_queues_nobody_is_overtaken():
    row = trial(Judge.EFFECTS, final_value=5, acknowledged_writes=5, overtakes=0).row
    assert (row["overtakes"], row["longest_streak"], row["verdict"]) == (None, None, "SAFE")
    assert trial(Judge.GUARD, final_value=5, acknowledged_writes=5, overtakes=3).row["overtakes"] == 3


def test_a_trial_judged_by_belief_has_no_effects():
    row = record().row
    assert row["judged_by"] == "belief"
    assert {row[name] for name in ("acknowledged_writes", "unknown_writes", "final_value", "lost_updates")} == {None}


def test_an_update_that_one_trial_lost_is_not_made_up_for_by_another():
    lost = trial(Judge.EFFECTS, final_value=99, acknowledged_writes=100).row
    unknown = trial(Judge.EFFECTS, final_value=101, acknowledged_writes=100, unknown_writes=1).row
    counts = verdicts.counts_of(pd.DataFrame([lost, unknown]))
    both = verdicts.judge(counts, Terms(Exclusion.NOTHING, judged_by=Judge.EFFECTS), control_caught=True)
    assert (both.verdict, both.reason) == (Verdict.UNSAFE, "1 lost update")


def test_a_cell_of_which_one_trial_was_not_read_is_undecided():
    read = trial(Judge.GUARD, final_value=100, acknowledged_writes=100).row
    unread = trial(Judge.GUARD, final_value=None, acknowledged_writes=100).row
    counts = verdicts.counts_of(pd.DataFrame([read, unread]))
    assert counts["final_value"] is None
    guarded = Terms(Exclusion.ALWAYS, judged_by=Judge.GUARD)
    assert verdicts.judge(counts, guarded, control_caught=True).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("promises", [(), (Promise.FENCE,), (Promise.FENCE, Promise.FIFO)])
@pytest.mark.parametrize("judged_by", list(Judge))
def test_a_record_keeps_the_terms_of_its_verdict(promises, judged_by):
    terms = Terms(Exclusion.WHILE_NOBODY_OUTLIVES, frozenset(promises), judged_by)
    assert Terms.recorded(terms.columns()) == terms
    assert all(type(text) is str for text in terms.columns().values())


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_record_of_before_there_were_others_promised_exclusion_and_went_by_belief(nothing):
    row = {"exclusion": "always", "promises": nothing, "judged_by": nothing}
    assert Terms.recorded(row) == Terms(Exclusion.ALWAYS)
