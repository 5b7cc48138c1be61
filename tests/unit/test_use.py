from __future__ import annotations

import pytest
from support.trials import SECOND, FakeResult, cell, record, totals

from pybench.strategies import CATALOGUE


def use(of, **counts: int):
    counted = totals(window_ns=SECOND, **counts)
    args = {"strategy": CATALOGUE[of.strategy].with_arguments(of.args), "round_trip_us": 100.0}
    found = record(of, result=FakeResult(totals=counted), **args).row
    return found["utilisation"], found["efficiency"]


def test_permits_share_the_time_of_a_key():
    of = cell("semaphore", args=(("permits", 4),))
    assert use(of, grants=1_000, nominal_hold_ns=2 * SECOND) == (0.5, pytest.approx(0.525))


def test_a_set_of_keys_holds_each_of_them():
    of = cell("multilock", keys=4, keys_per_grant=2)
    assert use(of, grants=1_000, nominal_hold_ns=SECOND)[0] == 0.5


@pytest.mark.parametrize("kind", ["double_grants", "double_grants_after_overrun", "sessions_lost", "lease_overruns"])
def test_holds_that_overlap_are_no_share_of_the_time(kind):
    assert use(cell(), nominal_hold_ns=7 * SECOND, **{kind: 1}) == (None, None)


def test_readers_and_works_that_keep_nobody_out_are_no_share_of_the_time():
    assert use(cell("read-write", read_share=0.9), nominal_hold_ns=7 * SECOND) == (None, None)
    assert use(cell("pg-optimistic"), nominal_hold_ns=7 * SECOND) == (None, None)


def test_no_lock_that_keeps_others_out_is_used_for_more_than_all_of_the_time():
    # The last hold goes on when the window has ended.
    assert use(cell(), grants=3, nominal_hold_ns=3 * SECOND) == (1.0, 1.0)
