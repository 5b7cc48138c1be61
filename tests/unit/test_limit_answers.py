"""What a run says of its searches for a limit: who has the highest, as far as the intervals tell."""

from __future__ import annotations

from typing import Any

import pytest

from pybench.analysis.answer import answer_of
from pybench.analysis.comparison import Out, Place, compare_locks
from tests.unit.support.comparisons import lock, run_of, unsafe


def searched(name: str, limit: float | None, **fields: object) -> dict[str, Any]:
    """A lock whose searches found about this limit, each in an interval of 7 %."""
    found = {"limit_per_s": limit, "limit_low_per_s": 0.98 * limit, "limit_high_per_s": 1.05 * limit} if limit else {}
    # Nothing about the order of the limits may follow from the grants.
    grants = 1_000 - (limit or 0.0)
    usual = lock(name, grants, mode="saturate", limited_by="throughput", acquire_p99_us=5e4)
    return {**usual, **found, **fields}


def text_of(*cells: dict[str, Any]) -> str:
    return answer_of(*run_of(*cells)).text


def test_the_lock_with_the_highest_limit_is_taken_and_both_limits_are_named():
    assert text_of(searched("mutex", 80.0), searched("redlock", 66.0)) == (
        "Take mutex: its limit is 80.0 arrivals/s, 1.21 times redlock's; "
        "limits: 80.0/s for mutex and 66.0/s for redlock."
    )


def test_limits_whose_intervals_overlap_are_tied_whatever_their_trials_say():
    cells = searched("mutex", 80.0), searched("redlock", 66.0, limit_high_per_s=79.0)
    (load,) = compare_locks(*run_of(*cells)).loads
    assert {one.place for one in load.standings} == {Place.TIED}
    assert "limits: 80.0/s for mutex and 66.0/s for redlock" in text_of(*cells)


@pytest.mark.parametrize("fields", [{"limit_high_per_s": None}, {"limited_by": "load generator"}])
def test_a_limit_that_is_not_the_locks_is_never_behind(fields: dict[str, Any]):
    (load,) = compare_locks(*run_of(searched("mutex", 80.0), {**searched("redlock", 66.0), **fields})).loads
    assert {one.place for one in load.standings} == {Place.TIED}


def test_a_tie_between_limits_is_broken_by_what_the_locks_are_and_not_by_figures_at_different_rates():
    slower = {"acquire_p99_us": 9e4, "jain": 0.5}
    assert text_of(searched("mutex", 80.0, **slower), searched("redlock", 79.0, jain=0.9)) == (
        "Take mutex: tied with redlock on the limit, and mutex needs fewer servers than redlock: 1 against 5; "
        "limits: 80.0/s for mutex and 79.0/s for redlock."
    )


def test_with_too_few_searches_limits_are_not_compared():
    cells = [searched(name, limit, trials=3) for name, limit in (("mutex", 80.0), ("redlock", 66.0))]
    assert text_of(*cells).startswith(
        "Take mutex: limits were not compared (3 trials per cell, and a comparison needs 4), and mutex needs fewer"
    )


def test_one_lock_alone_says_what_it_sustains():
    assert text_of(searched("mutex", 80.0)) == (
        "mutex sustains 80.0 arrivals/s; there is no other lock to compare it with."
    )
    assert text_of(searched("mutex", 80.0), unsafe("naive", mode="saturate")) == (
        "Take mutex: no other lock of this run is ranked; mutex sustains 80.0 arrivals/s; "
        "naive is unsafe at 1 of 1 load."
    )


def test_a_search_without_a_limit_is_not_ranked():
    cells = searched("mutex", 80.0), searched("redlock", None)
    (load,) = compare_locks(*run_of(*cells)).loads
    assert load.of("redlock").out is Out.NO_LIMIT
    assert "not ranked (its search found no limit): redlock" in text_of(*cells)
    assert text_of(searched("mutex", None)).startswith("No lock can be recommended")


def test_with_several_loads_the_lead_names_its_load_and_the_one_behind_both_limits():
    cells = [
        searched(name, limit, concurrency=clients)
        for clients, limits in ((4, (80.0, 66.0)), (16, (40.0, 55.0)))
        for name, limit in zip(("mutex", "redlock"), limits, strict=True)
    ]
    assert text_of(*cells) == (
        "Take redlock: ahead at 1 of 2 loads (its limit is 55.0 arrivals/s, 1.38 times mutex's with 16 clients); "
        "but redlock is behind with 4 clients: its limit is 66.0 arrivals/s, mutex's is 1.21 times as high."
    )


def test_in_a_mixed_matrix_grants_are_those_of_measured_loads():
    cells = [lock("mutex", 500, mode="measure"), searched("mutex", 80.0)]
    assert text_of(*cells).startswith("mutex gives 500 safe grants/s with")
    cells += [lock("redlock", 300, mode="measure"), searched("redlock", 66.0)]
    text = text_of(*cells)
    assert text.startswith("Take mutex: ahead at 2 of 2 loads (")
    assert "limits with " in text
