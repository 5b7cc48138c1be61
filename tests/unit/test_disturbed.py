"""What a trial proves in which something befell its servers."""

from __future__ import annotations

import math

import pytest
from support.trials import FakeResult, cell, record, totals, violation

from pybench.disturbed import Trouble, first_of
from pybench.errors import LocksGone, ServerError

GONE = ServerError("the server was restarted", hint="keep it running")
BEGAN_S = 100.0


def disturbed(trouble: Trouble, strategy: str = "mutex", **counts: int):
    """The record of a trial that began at 100 s, with a double grant 12.031 s later."""
    seen = totals(**{"began_ns": int(BEGAN_S * 1e9), "double_grants": 7, "fifo_inversions": 3, **counts})
    return record(cell(strategy), result=FakeResult(totals=seen, violations=[violation()]), trouble=trouble)


def test_a_violation_of_before_a_restart_breaks_the_promise_all_the_same():
    kept = disturbed(Trouble(GONE, intact_until=BEGAN_S + 12.04))
    assert kept.row["promise_broken"]
    assert kept.row["verdict"] == "UNSAFE"
    assert kept.row["double_grants"] == kept.row["violations"] == len(kept.violations) == 1
    assert kept.row["status"] == "disturbed"
    assert kept.row["disturbance"] == "the server was restarted"
    assert kept.latency == kept.timeline == []


@pytest.mark.parametrize("intact_until", [BEGAN_S + 12.02, -math.inf])
def test_a_violation_that_the_restart_may_have_caused_blames_nobody(intact_until: float):
    kept = disturbed(Trouble(GONE, intact_until=intact_until))
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
    ("error", "reconnects", "intact_until"),
    [
        (ServerError("reset", hint=None), 5, math.inf),
        (LocksGone("restarted", hint=None, age_s=2.0, cuts_connections=True), 5, 98.0),
        (LocksGone("flushed", hint=None, age_s=None), 0, -math.inf),
        (LocksGone.unread(ServerError("no answer", hint=None)), 5, -math.inf),
        (LocksGone.unread(ServerError("no answer", hint=None)), 0, math.inf),
    ],
)
def test_how_far_violations_count_follows_from_what_befell(error: ServerError, reconnects: int, intact_until: float):
    assert Trouble.of(error, read_at=100.0, reconnects=reconnects).intact_until == intact_until
