"""Why cells are not safe: one remark for all cells of a strategy that are so for the same reason."""

from __future__ import annotations

import re

from pybench.report.verdict_reasons import remarks
from pybench.report.view import make_view
from tests.report.support import Point, make_run, the_usual_points


def told(points: list[Point]) -> list[str]:
    return [
        re.sub(r"[\d,]+(?= double)", "N", f"{remark.verdict} {remark.subject}: {remark.reason}")
        for remark in remarks(make_view(make_run(points)))
    ]


def test_cells_of_a_strategy_are_told_together_and_the_unsafe_first():
    assert told(the_usual_points()) == [
        "UNSAFE none in 4 of 6 cells: N double grants; it promises nothing",
        "UNSAFE naive in 2 of 6 cells: N double grants; this breaks what it promises",
        "UNDECIDED none in 2 of 6 cells: the lock promises nothing, and no overlap was seen here; "
        "unsafe at another load",
    ]


def test_counts_are_of_the_cells_that_are_told_of():
    run = make_run(the_usual_points())
    (none,) = (remark for remark in remarks(make_view(run)) if remark.label == "none" and remark.verdict == "UNSAFE")
    counted = int(run.trials[run.trials["strategy"] == "none"]["double_grants"].sum())
    assert none.reason.startswith(f"{counted:,} double grants")


def test_one_cell_of_several_is_named_and_an_only_one_needs_no_name():
    points = [Point("naive", 1, 1), Point("naive", 16, 1, broken=True), Point("none", 1, 1, broken=True)]
    assert told(points) == [
        "UNSAFE naive with 16 clients: N double grants; this breaks what it promises",
        "UNSAFE none: N double grants; it promises nothing",
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
