"""What the probe of a lock has to say in the verdicts of its cells."""

from __future__ import annotations

from typing import Any

import pytest

from pybench.analysis.probe_verdicts import overruled
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import KINDS, Verdict, judge
from pybench.matrix import matrix_from_options
from pybench.planning import probes
from pybench.planning.plan import make_plan
from pybench.strategies import CATALOGUE

CLEAN = {"promise_broken": False, "verdict": "SAFE", "reason": "its probe saw 0 violations in 5,000 contended grants"}
BROKEN = {"promise_broken": True, "verdict": "UNSAFE", "reason": "its probe saw 12 double grants"}
UNDECIDED = {"promise_broken": False, "verdict": "UNDECIDED", "reason": ""}
FORBIDDEN_NOBODY = BROKEN | {"promise_broken": False}


def row(strategy: str = "mutex", **counts: int) -> dict[str, Any]:
    """A trial of `strategy` that counted so much; 1,000 grants, no violation."""
    terms = Terms.of(CATALOGUE[strategy].with_arguments(()))
    zeros = dict.fromkeys((kind.column for kind in KINDS.values()), 0)
    return {**zeros, "grants": 1_000, "contended_grants": 0, "concurrency": 1, **terms.columns(), **counts}


def judged(trial: dict[str, Any], probe: dict[str, Any] | None, *, caught: bool = True) -> probes.Probed:
    """`trial` beside `probe`."""
    return overruled(judge(trial, Terms.recorded(trial), control_caught=caught), trial, probe)


@pytest.mark.parametrize("contended", [0, 900])
def test_a_lock_that_broke_its_promise_in_its_probe_is_unsafe_everywhere(contended: int) -> None:
    found = judged(row(contended_grants=contended), BROKEN)
    assert (found.judgement.verdict, found.judgement.promise_broken) == (Verdict.UNSAFE, True)
    assert (found.by_probe, found.reason) == (True, BROKEN["reason"])


def test_a_trial_that_proves_nothing_stands_on_a_clean_probe() -> None:
    found = judged(row(), CLEAN)
    assert (found.judgement.verdict, found.by_probe) == (Verdict.SAFE, True)
    assert found.judgement.reason == "not contended here; its probe saw 0 violations in 5,000 contended grants"
    found = judged(row(concurrency=64), CLEAN)
    assert found.judgement.reason.startswith("too few contended grants here to judge; ")


def test_what_is_undecided_here_and_in_the_probe_says_what_the_probe_had() -> None:
    thin = UNDECIDED | {"reason": "its probe had only 4 contended grants and proves nothing"}
    found = judged(row(grants=0, contended_grants=0), thin)
    assert found.judgement.verdict is Verdict.UNDECIDED
    assert found.judgement.reason.endswith("; its probe had only 4 contended grants and proves nothing")
    assert not found.by_probe


def test_a_trial_with_contended_grants_is_judged_by_itself() -> None:
    found = judged(row(contended_grants=400), CLEAN)
    assert (found.judgement.verdict, found.by_probe, found.reason) == (Verdict.SAFE, False, None)
    assert judged(row(contended_grants=29), CLEAN).by_probe
    assert judged(row(contended_grants=400), FORBIDDEN_NOBODY).judgement.verdict is Verdict.SAFE
    assert judged(row(), FORBIDDEN_NOBODY).judgement.verdict is Verdict.UNSAFE


def test_a_violation_of_the_trial_and_a_control_that_was_missed_outrank_the_probe() -> None:
    found = judged(row(double_grants=3), CLEAN)
    assert (found.judgement.verdict, found.judgement.reason) == (Verdict.UNSAFE, "3 double grants")
    void = judged(row(), BROKEN, caught=False).judgement
    assert (void.verdict, void.promise_broken) == (Verdict.VOID, True)


def test_a_run_without_probes_and_a_lock_that_promises_nothing_keep_their_verdicts() -> None:
    assert judged(row(), None).by_probe is None
    assert judged(row("redisson-redlock"), CLEAN).judgement.verdict is Verdict.UNDECIDED


def test_each_lock_on_each_backend_is_probed_once_and_long_enough_to_be_caught() -> None:
    plan = make_plan(
        matrix_from_options(strategy="none,mutex,semaphore(permits=9),multilock", concurrency="1,2", ttl="20ms")
    )
    found = probes.probe_cells(plan.cells)
    assert [cell.strategy for cell in found] == ["mutex", "semaphore", "multilock"]
    assert [cell.concurrency for cell in found] == [8, 18, 8]
    for cell in found:
        assert (cell.hold.text, cell.keys, cell.ttl_ms) == ("1ms", 1, probes.LEAST_TTL_MS)


def test_sets_of_keys_are_probed_that_overlap_and_differ() -> None:
    plan = make_plan(matrix_from_options(strategy="multilock", keys="100", keys_per_grant="3"))
    (cell,) = probes.probe_cells(plan.cells)
    assert (cell.keys, cell.keys_per_grant) == (4, 3)


def test_only_locks_with_a_lease_are_also_probed_with_holders_that_outlive_it() -> None:
    plan = make_plan(matrix_from_options(strategy="mutex,pg-row,layered,reentrant", concurrency="8"))
    late = {cell.strategy: probes.late_cell(cell) for cell in probes.probe_cells(plan.cells)}
    assert [name for name, cell in late.items() if cell is not None] == ["mutex", "layered", "reentrant"]
    mutex = late["mutex"]
    assert mutex is not None
    assert (mutex.ttl_ms, mutex.hold.text) == (probes.LATE_TTL_MS, "80ms")
