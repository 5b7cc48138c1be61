from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.trials import CAUGHT, MISSED, totals, violation

from pybench import _core
from pybench.analysis import verdicts, violation_sentences
from pybench.analysis.terms import Terms
from pybench.analysis.thresholds import ThresholdResult
from pybench.analysis.verdicts import Verdict
from pybench.exits import Exit
from pybench.strategies import Exclusion, Judge, Promise

CLEAN = {
    "grants": 5_000,
    "contended_grants": 4_000,
    "double_grants": 0,
    "double_grants_after_overrun": 0,
    "sessions_lost": 0,
    "lease_overruns": 0,
}


def judged(exclusion=Exclusion.ALWAYS, promises=(), control_caught=True, **counts: int):
    return verdicts.judge({**CLEAN, **counts}, Terms(exclusion, frozenset(promises)), control_caught=control_caught)


def test_a_clean_cell_is_safe_with_its_bound():
    judgement = judged()
    assert judgement.verdict is Verdict.SAFE
    assert judgement.bound_per_million == 750
    assert judgement.reason == "0 violations in 4,000 contended grants: true rate at most 0.075 % (95 % confidence)"


def test_without_contended_grants_the_bound_is_n_a():
    judgement = judged(contended_grants=0)
    assert (judgement.verdict, judgement.bound_per_million) == (Verdict.SAFE, None)
    assert "none of them contended" in judgement.reason


@pytest.mark.parametrize("kind", ["double_grants", "double_grants_after_overrun", "sessions_lost", "lease_overruns"])
@pytest.mark.parametrize("exclusion", list(Exclusion))
def test_any_violation_is_unsafe_whatever_was_promised(kind, exclusion):
    judgement = judged(exclusion, **{kind: 1})
    assert judgement.verdict is Verdict.UNSAFE
    assert judgement.bound_per_million is None


def test_what_broke_is_counted_by_kind():
    reason = judged(double_grants=2, double_grants_after_overrun=1, lease_overruns=3).reason
    assert reason == "2 double grants, 1 double grant after an overrun, 3 lease overruns"
    assert "2 double grants after an overrun" in judged(double_grants_after_overrun=2).reason


def test_a_violation_outranks_a_window_without_a_grant():
    assert judged(grants=0, double_grants=1).verdict is Verdict.UNSAFE


def test_nothing_granted_decides_nothing():
    assert judged(grants=0, contended_grants=0).verdict is Verdict.UNDECIDED


def test_no_lock_is_never_safe():
    judgement = judged(Exclusion.NOTHING)
    assert judgement.verdict is Verdict.UNDECIDED
    assert judgement.reason == "the lock promises nothing, and no overlap was seen here"


def test_a_control_that_was_not_caught_voids_all_but_keeps_a_broken_promise():
    assert judged(control_caught=False).verdict is Verdict.VOID
    broken = judged(control_caught=False, double_grants=1)
    assert (broken.verdict, broken.promise_broken) == (Verdict.VOID, True)


@pytest.mark.parametrize(
    ("exclusion", "kind", "broken"),
    [
        (Exclusion.NOTHING, "double_grants", False),
        (Exclusion.NOTHING, "double_grants_after_overrun", False),
        (Exclusion.NOTHING, "lease_overruns", False),
        (Exclusion.WHILE_NOBODY_OUTLIVES, "double_grants", True),
        (Exclusion.WHILE_NOBODY_OUTLIVES, "double_grants_after_overrun", False),
        (Exclusion.WHILE_NOBODY_OUTLIVES, "lease_overruns", False),
        (Exclusion.ALWAYS, "double_grants", True),
        (Exclusion.ALWAYS, "double_grants_after_overrun", True),
        (Exclusion.ALWAYS, "lease_overruns", False),
        (Exclusion.ALWAYS, "sessions_lost", False),
    ],
)
def test_a_promise_is_broken_only_by_what_it_covers(exclusion, kind, broken):
    assert judged(exclusion, **{kind: 1}).promise_broken is broken


@pytest.mark.parametrize(
    ("promise", "column", "reason"),
    [
        (Promise.FENCE, "stale_fences", "2 stale fences"),
        (Promise.FIFO, "fifo_inversions", "2 FIFO inversions"),
    ],
)
def test_an_order_is_a_violation_only_where_it_is_promised(promise, column, reason):
    kept, broken = judged(promises={promise}, **{column: 0}), judged(promises={promise}, **{column: 2})
    assert (kept.verdict, kept.promise_broken) == (Verdict.SAFE, False)
    assert (broken.verdict, broken.promise_broken, broken.reason) == (Verdict.UNSAFE, True, reason)
    unpromised = judged(**{column: 2})
    assert (unpromised.verdict, unpromised.promise_broken) == (Verdict.SAFE, False)


def test_what_was_found_is_kept_as_a_violation_only_where_it_is_one():
    inversion = violation(kind="fifo-inversion")
    assert verdicts.is_violation(inversion, Terms(Exclusion.ALWAYS, frozenset({Promise.FIFO})))
    assert not verdicts.is_violation(inversion, Terms(Exclusion.ALWAYS, frozenset({Promise.FENCE})))
    assert verdicts.is_violation(violation(), Terms(Exclusion.NOTHING))


def test_a_run_needs_a_control_and_every_control_caught():
    assert verdicts.controls_caught(CAUGHT)
    assert not verdicts.controls_caught([])
    assert not verdicts.controls_caught([*CAUGHT, *MISSED])


def test_the_worst_verdict_stands_for_all():
    order = [Verdict.SAFE, Verdict.UNDECIDED, Verdict.UNSAFE, Verdict.VOID]
    for rank, verdict in enumerate(order):
        assert verdicts.worst([*order[: rank + 1], Verdict.SAFE]) is verdict


def test_only_what_is_safe_counts_as_safe_grants():
    assert verdicts.safe_rate(Verdict.SAFE, 10.0) == 10.0
    assert verdicts.safe_rate(Verdict.UNSAFE, 10.0) == 0
    assert verdicts.safe_rate(Verdict.UNDECIDED, 10.0) is None
    assert verdicts.safe_rate(Verdict.VOID, 10.0) is None


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {},
            "client 7 was granted key 1 at 12.031 s while client 3 still held the key (its lease ran for "
            "another 1.94 s)",
        ),
        (
            {"first_until_ns": None},
            "client 7 was granted key 1 at 12.031 s while client 3 still held the key (no lease)",
        ),
        (
            {"kind": "double-grant-after-overrun"},
            "client 7 was granted key 1 at 12.031 s while client 3 still held the key "
            "(its lease ran for another 1.94 s), after an earlier holder had outlived its lease",
        ),
        (
            {"kind": "lease-overrun", "first_until_ns": 12_000_000_000},
            "client 7 was granted key 1 at 12.031 s while client 3 was still at work, "
            "31 ms past the end of its lease; they overlapped for 35.2 ms",
        ),
        (
            {"kind": "lease-overrun", "first_until_ns": 12_030_999_500, "overlap_ns": 0},
            "client 7 was granted key 1 at 12.031 s while client 3 was still at work, "
            "500 ns past the end of its lease; both were still at work when the trial ended",
        ),
        (
            {"kind": "lease-overrun", "first_until_ns": 13_000_000_000},
            "client 7 was granted key 1 at 12.031 s while client 3 was still at work, "
            "although client 3 knew that its lock was lost; they overlapped for 35.2 ms",
        ),
        (
            {"kind": "session-lost", "first_until_ns": 12_066_000_000},
            "client 7 was granted key 1 at 12.031 s while client 3, the old holder, did not yet know "
            "that its session had ended; client 3 learned of the end 35 ms later",
        ),
        (
            {"kind": "stale-fence", "first_fence": 118, "second_fence": 117},
            "client 7 was granted key 1 at 12.031 s with fence 117, not above fence 118 that client 3 was granted at "
            "11.031 s",
        ),
        (
            {"kind": "fifo-inversion"},
            "client 7 was granted key 1 at 12.031 s after client 3, which had asked later and was granted the "
            "key at 11.031 s",
        ),
        (
            {"kind": "fifo-inversion", "second_granted_ns": None},
            "client 7 still waited for key 1 at 12.031 s, although client 3, which had asked later, was granted "
            "the key at 11.031 s",
        ),
        (
            {"kind": "stalled-key", "second_client": None, "second_granted_ns": None, "overlap_ns": 11_200_000_000},
            "no client held or was granted key 1 for 11.2 s, until 12.031 s, while client 3 waited for the key",
        ),
        (
            {"kind": "starved-client", "second_client": None, "second_granted_ns": None, "overlap_ns": 1_900_000_000},
            "client 3 waited for key 1 for 1.9 s and had no grant when the window ended at 12.031 s, while "
            "clients that had asked later were granted the key at least 20 times",
        ),
        (
            {"kind": "denied-release", "second_client": None, "second_granted_ns": None},
            "client 3 released key 1, and the server replied 'not held' at 12.031 s (its lease ran for another 1.94 s)",
        ),
    ],
)
def test_a_violation_is_one_sentence(fields, sentence):
    assert violation_sentences.sentence(violation(**fields)) == sentence


@pytest.mark.parametrize(
    ("raw", "said"), [("pybench:669f8291:18:{0}", "key 0"), ("pybench:669f8291:18:{01204}", "key 1,204"), ("a", '"a"')]
)
def test_a_key_is_named_by_its_number(raw, said):
    assert f"client 7 was granted {said} at" in violation_sentences.sentence(violation(key=raw))


def test_a_large_bound_is_written_out():
    assert judged(contended_grants=1_480).reason.endswith("true rate at most 0.203 % (95 % confidence)")
    assert judged(contended_grants=4_100_000).reason.endswith("true rate at most 0.0000732 % (95 % confidence)")


def trials(*rows: dict):
    usual = {
        "cell": "a",
        "exclusion": "always",
        "promises": "",
        "judged_by": "belief",
        "verdict": "SAFE",
        "grants": 100,
        "contended_grants": 50,
        "concurrency": 8,
        "promise_broken": False,
        "status": "complete",
        "arrivals": float("nan"),
    }
    late = {"drops": 0, "server_cpu_share": 0.1, "utilisation": 0.1, "contention_rate": 0.0, "acquire_p99_us": 100.0}
    return pd.DataFrame([{**usual, **late, "send_delay_p99_us": 5.0, **row} for row in rows])


def exit_of(*rows: dict, thresholds=(), controls=CAUGHT):
    return verdicts.run_exit(trials(*rows), thresholds=thresholds, controls=controls)


BROKEN = {"promise_broken": True, "verdict": "UNSAFE"}
LATE = {"cell": "late", "arrivals": 1_000, "send_delay_p99_us": 900.0}
UNDECIDED = {"cell": "undecided", "verdict": "UNDECIDED", "grants": 0}
MISSED_THRESHOLD = ThresholdResult(threshold=None, cell="a", figure=1.0, passed=False)


def test_a_good_run_exits_0():
    assert exit_of({}, thresholds=[ThresholdResult(threshold=None, cell="a", figure=1.0, passed=True)]) is Exit.OK


def test_a_run_without_trials_exits_0():
    assert verdicts.run_exit(trials({}).iloc[:0], thresholds=[], controls=CAUGHT) is Exit.OK


def test_each_cause_has_its_code_and_the_first_applies():
    rows = [{}, UNDECIDED, LATE, BROKEN]
    codes = []
    controls = MISSED
    for causes in (4, 3, 2, 1):
        codes.append(exit_of(*rows[:causes], thresholds=[MISSED_THRESHOLD], controls=controls))
        if causes == 4:
            codes.append(exit_of(*rows[:3], thresholds=[MISSED_THRESHOLD], controls=MISSED))
            controls = CAUGHT
    assert codes == [
        Exit.PROMISE_BROKEN,
        Exit.CONTROL_NOT_CAUGHT,
        Exit.GENERATOR_LATE,
        Exit.UNDECIDED,
        Exit.THRESHOLD_MISSED,
    ]


def test_unsafe_outside_of_every_promise_exits_0():
    assert exit_of({"verdict": "UNSAFE"}) is Exit.OK


def test_undecided_of_a_lock_that_is_judged_by_its_effects_is_told():
    nothing_else = {"verdict": "UNDECIDED", "exclusion": "nothing", "judged_by": "effects"}
    assert exit_of(nothing_else) is Exit.UNDECIDED


def test_undecided_of_a_lock_that_promises_nothing_exits_0():
    assert exit_of({"verdict": "UNDECIDED", "exclusion": "nothing"}) is Exit.OK


def test_a_trial_without_a_grant_does_not_make_its_cell_undecided():
    assert exit_of({}, {"verdict": "UNDECIDED", "grants": 0}) is Exit.OK


@pytest.mark.parametrize("column", ["stalls", "denied_releases", "abandoned", "left_over_keys"])
def test_a_lock_that_gets_stuck_breaks_its_promise_unless_its_server_did(column):
    broken = judged(**{column: 2})
    assert (broken.verdict, broken.promise_broken) == (Verdict.UNSAFE, True)
    for excuse in ("unknown", "reconnects", "lost_calls"):
        excused = judged(**{column: 2, excuse: 1})
        assert (excused.verdict, excused.promise_broken) == (Verdict.UNSAFE, False)


def test_a_client_that_starves_is_a_violation_where_an_order_is_promised():
    assert judged(starved=3).verdict is Verdict.SAFE
    in_order = Terms(Exclusion.ALWAYS, frozenset({Promise.FIFO}))
    judgement = verdicts.judge(totals(starved=3), in_order, control_caught=True)
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.UNSAFE, True)
    # Whose connection is cut twice asks again with its next beat: until then the lock that it was handed has lapsed.
    for excuse in ("unknown", "reconnects", "lost_calls"):
        assert not verdicts.promise_broken(totals(starved=3, **{excuse: 1}), in_order)
        assert verdicts.promise_broken(totals(fifo_inversions=3, **{excuse: 1}), in_order)


def test_an_impossible_order_of_events_proves_nothing():
    judgement = judged(findings=2, double_grants=3)
    assert (judgement.verdict, judgement.promise_broken) == (Verdict.UNDECIDED, False)
    assert judgement.reason == "the checker saw an impossible order of events 2 times, so nothing is proved"


def test_the_bound_of_a_guard_stands_on_the_writes_that_it_refused():
    guarded = Terms(Exclusion.ALWAYS, judged_by=Judge.GUARD)

    def bound(**counts: int) -> verdicts.Judgement:
        written = {"final_value": 9, "acknowledged_writes": 9, "unknown_writes": 0, "contended_grants": 5_000}
        return verdicts.judge(totals(**written | counts), guarded, control_caught=True)

    assert bound(stale_writes=0).bound_per_million is None
    assert bound(stale_writes=300).bound_per_million == 10_000
    assert bound(stale_writes=300).reason.startswith("0 lost updates in 300 stale writes: true rate at most 1 %")


@pytest.mark.parametrize(
    ("kind", "count", "sentence"),
    [
        (
            "abandoned-client",
            1,
            "1 client had not finished by the deadline after the end of the trial",
        ),
        ("left-over-key", 3, "3 keys were still on the server after the replies to all releases"),
    ],
)
def test_what_is_only_counted_has_a_sentence(kind, count, sentence):
    assert violation_sentences.count_sentence(kind, count) == sentence


def test_rows_of_writes_are_judged_one_by_one():
    rows = [np.array(values, dtype=np.uint64) for values in ([5, 5, 4], [0, 0, 2], [3, 7, 5])]
    assert _core.judge_rows(*rows) == (2, 2, 2)
    with pytest.raises(ValueError, match="one element a row"):
        _core.judge_rows(rows[0], rows[1], rows[2][:2])
