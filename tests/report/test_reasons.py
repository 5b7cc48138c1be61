"""Why cells are not safe: one remark for all cells of a strategy that are so for the same reason."""

from __future__ import annotations

import re

from pybench.report.verdict_reasons import remarks, unsafe_and_evidence
from pybench.report.view import make_view
from tests.report.support import Point, make_run, the_usual_points

EVIDENCE = "none takes no lock, so this shows that the checker detects overlaps"


def told(points: list[Point]) -> list[str]:
    return [
        re.sub(r"[\d,]+(?= double)", "N", f"{remark.verdict} {remark.sentence}")
        for remark in remarks(make_view(make_run(points)))
    ]


def test_cells_of_a_strategy_share_a_remark_and_broken_promises_come_first():
    assert told(the_usual_points()) == [
        "UNSAFE naive in 2 of 6 cells: N double grants; this breaks its promise",
        "UNDECIDED none in 2 of 6 cells: the lock promises nothing, and no overlap was seen here; "
        "unsafe at another load",
        f"UNSAFE none in 4 of 6 cells: N double grants; {EVIDENCE}",
    ]


def test_counts_are_of_the_cells_of_the_remark():
    run = make_run(the_usual_points())
    (none,) = (remark for remark in remarks(make_view(run)) if remark.label == "none" and remark.verdict == "UNSAFE")
    counted = int(run.trials[run.trials["strategy"] == "none"]["double_grants"].sum())
    assert none.reason.startswith(f"{counted:,} double grants")


def test_one_cell_of_several_is_named_and_an_only_one_needs_no_name():
    points = [Point("naive", 1, 1), Point("naive", 16, 1, broken=True), Point("none", 1, 1, broken=True)]
    assert told(points) == [
        "UNSAFE naive with 16 clients: N double grants; this breaks its promise",
        f"UNSAFE none: N double grants; {EVIDENCE}",
    ]


def test_a_safe_run_needs_no_remark():
    assert told([Point("mutex", 4, 1)]) == []


def test_a_cell_that_was_interrupted_before_its_first_grant_says_so():
    run = make_run([Point("mutex", 4, 1)], trials=1, trial_status="interrupted")
    run.trials["grants"] = 0
    run.summary["verdict"] = "UNDECIDED"
    assert [remark.reason for remark in remarks(make_view(run))] == [
        "it was interrupted before it was granted anything"
    ]


def test_overlaps_without_a_promise_are_evidence_and_broken_promises_are_not():
    unsafe, evidence = unsafe_and_evidence(make_view(make_run(the_usual_points())))
    assert [remark.label for remark in unsafe] == ["naive"]
    assert [remark.label for remark in evidence] == ["none"]


def test_clients_on_one_session_are_promised_nothing_and_a_broken_promise_is_no_evidence():
    shared = Point("pg-advisory", 16, 1, args="session=shared", broken=True)
    run = make_run([shared, Point("mutex", 16, 1)])
    for broken in (False, True):
        run.trials["promise_broken"] = broken
        unsafe, evidence = unsafe_and_evidence(make_view(run))
        assert (len(unsafe), len(evidence)) == (broken, not broken)


def test_work_past_the_ttl_is_not_called_a_fault_of_the_lock():
    run = make_run([Point("mutex", 16, 1), Point("mutex", 1, 1)])
    run.trials["lease_overruns"] = 50
    run.summary["verdict"] = "UNSAFE"
    (remark,) = remarks(make_view(run))
    assert remark.reason.endswith("lease overruns; work outlived the ttl, which is not a fault of the lock")
    assert not remark.is_evidence


def test_who_worked_on_without_his_session_outlived_no_ttl():
    run = make_run([Point("pg-advisory", 16, 1)])
    run.trials["lease_overruns"] = 3
    run.summary["verdict"] = "UNSAFE"
    (remark,) = remarks(make_view(run))
    assert remark.reason.endswith(
        "; holders worked on after they had lost their session, which is not a fault of the lock"
    )


def test_cells_with_different_faults_are_not_said_to_be_under_those_of_the_first():
    run = make_run([Point("mutex", 16, 1), Point("mutex", 1, 1)])
    run.trials["lease_overruns"] = 50
    run.summary["verdict"] = "UNSAFE"
    for frame in (run.trials, run.summary):
        frame["faults"] = "pause redis[0] at 1s for 500ms"
    (remark,) = remarks(make_view(run))
    assert "lease overruns, under pause redis[0]; " in remark.reason
    for frame in (run.trials, run.summary):
        frame.loc[frame["concurrency"] == 1, "faults"] = "slow redis[0] at 1s for 500ms"
    (remark,) = remarks(make_view(run))
    assert "lease overruns; " in remark.reason
