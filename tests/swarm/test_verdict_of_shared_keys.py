"""Locks whose keys were shared by processes: what a checker saw counts, and what none could see is not called safe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pybench.analysis import verdicts
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import UNSEEN_RIVALS, Verdict
from pybench.strategies import CATALOGUE, Judge

COUNTS = {"grants": 5_000, "contended_grants": 4_000}


def judged(name: str, **counts: int) -> verdicts.Judgement:
    strategy = replace(CATALOGUE[name].with_arguments(()), judged_by=Judge.PART)
    terms = Terms.recorded(Terms.of(strategy).columns())
    return verdicts.judge({**COUNTS, **counts}, terms, control_caught=True)


@pytest.mark.parametrize("name", ["mutex", "fenced", "pg-lease", "fair-queue"])
def test_without_a_violation_nothing_is_proved(name):
    judgement = judged(name)
    assert (judgement.verdict, judgement.reason) == (Verdict.UNDECIDED, UNSEEN_RIVALS)
    assert judgement.bound_per_million is None
    assert not judgement.promise_broken


def test_a_violation_that_one_checker_saw_is_one():
    judgement = judged("mutex", double_grants=2)
    assert judgement.verdict is Verdict.UNSAFE
    assert judgement.promise_broken
    assert judged("fenced", stale_fences=1).promise_broken


def test_such_a_verdict_is_something_to_decide():
    strategy = replace(CATALOGUE["mutex"].with_arguments(()), judged_by=Judge.PART)
    assert Terms.of(strategy).leave_something_to_decide
    assert not Terms.of(strategy).by_effects
