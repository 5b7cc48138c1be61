"""What a trial proves in which something befell its servers."""

from __future__ import annotations

import math

import pytest
from support.trials import FakeResult, cell, record, totals, violation

from pybench.analysis.disturbances import Trouble, first_of
from pybench.errors import LocksGone, ServerError

GONE = ServerError("the server was restarted", hint="keep it running")


def disturbed(trouble: Trouble, strategy: str = "mutex", **counts: int):
    """The record of a trial with a double grant 12.031 s after its begin."""
    seen = totals(**{"double_grants": 7, "fifo_inversions": 3, **counts})
    return record(cell(strategy), result=FakeResult(totals=seen, violations=[violation()]), trouble=trouble)


def test_a_violation_of_before_a_restart_breaks_the_promise_all_the_same():
    kept = disturbed(Trouble(GONE, intact_ns=12.04e9))
    assert kept.row["promise_broken"]
    assert kept.row["verdict"] == "UNSAFE"
    assert kept.row["double_grants"] == kept.row["violations"] == len(kept.violations) == 1
    assert kept.row["status"] == "disturbed"
    assert kept.row["disturbance"] == "the server was restarted"
    assert kept.latency == kept.timeline == []


@pytest.mark.parametrize("intact_ns", [12.02e9, -math.inf])
def test_a_violation_that_the_restart_may_have_caused_blames_nobody(intact_ns: float):
    kept = disturbed(Trouble(GONE, intact_ns=intact_ns))
    assert not kept.row["promise_broken"]
    assert kept.row["verdict"] == "UNDECIDED", "nothing is proved of a lock whose server lost it"
    assert kept.row["violations"] == len(kept.violations) == 0


def test_calls_that_were_refused_excuse_no_double_grant_and_no_count_of_them_is_lost():
    kept = disturbed(Trouble(GONE), errors=4)
    assert kept.row["promise_broken"]
    assert kept.row["double_grants"] == kept.row["violations"] == 7


def test_calls_that_were_refused_excuse_what_they_can_cause():
    kept = disturbed(Trouble(GONE), "fair-queue", double_grants=0)
    assert kept.row["fifo_inversions"] == 0
    assert not kept.row["promise_broken"]


def test_several_troubles_are_told_by_the_first_and_count_from_the_earliest():
    first = first_of([Trouble(GONE), Trouble(ServerError("two", hint=None), 5.0), Trouble(GONE, 7.0)])
    assert first == Trouble(GONE, 5.0)
    assert first_of([]) is None


@pytest.mark.parametrize(
    ("error", "first_cut_ns", "intact_ns"),
    [
        (ServerError("reset", hint=None), 5, math.inf),
        (LocksGone("restarted", hint=None, cuts_connections=True), 5, 5),
        (LocksGone("flushed", hint=None), None, -math.inf),
        (LocksGone("flushed", hint=None), 5, -math.inf),
        (LocksGone.unread(ServerError("no answer", hint=None)), 5, 5),
        (LocksGone.unread(ServerError("no answer", hint=None)), None, math.inf),
    ],
)
def test_how_far_violations_count_follows_from_what_befell(
    error: ServerError, first_cut_ns: int | None, intact_ns: float
):
    assert Trouble.of(error, first_cut_ns=first_cut_ns).intact_ns == intact_ns
