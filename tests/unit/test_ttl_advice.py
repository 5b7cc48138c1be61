"""Which share of the holds outlived their lease, and which ttl would leave few of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from pybench.analysis import ttl_advice
from pybench.analysis.histograms import Buckets
from pybench.analysis.ttl_advice import Advice, advise, outlived_share, sentence
from pybench.matrix.durations import MS
from pybench.matrix.values import Distribution
from pybench.planning.forecast import needed_ttl_ns

DRAWN = Distribution.parse("quantiles(p50=50ms, p99=2s)")


def buckets(*pairs: tuple[int, int]) -> Buckets:
    """Of milliseconds and how many holds took as long."""
    return Buckets(np.array([ms * MS for ms, _ in pairs], dtype=np.uint64), np.array([n for _, n in pairs], np.uint64))


NO_HOLDS = buckets()


def advice(kept: Buckets, lost: Buckets, cut: Buckets = NO_HOLDS, drawn: Distribution | None = None) -> Advice:
    return advise(kept, lost, cut, call_ns=0, drawn=drawn)


def hold(outcome: str, count: int):
    return SimpleNamespace(phase="hold", outcome=outcome, count=count)


def test_the_share_is_of_the_holds_that_ended_and_of_no_other_phase():
    rows = [hold("granted", 979), hold("lost", 21), SimpleNamespace(phase="release", outcome="lost", count=500)]
    assert outlived_share(rows) == 0.021
    assert outlived_share([hold("granted", 5)]) == 0.0
    assert outlived_share([]) is None


def test_a_hold_that_is_cut_short_past_its_lease_has_outlived_it():
    assert outlived_share([hold("granted", 8), hold("lost", 1), hold("waiting", 1)]) == 0.2
    found = advice(buckets((50, 8)), buckets((600, 1)), buckets((700, 1)))
    assert (found.holds, found.outlived) == (10, 2)


def test_what_was_cut_short_would_have_been_longer_than_it_was():
    kept, lost = buckets((50, 1_960)), buckets((1_000, 20))
    assert advice(kept, lost).measured_ns[0] == needed_ttl_ns(1_000 * MS, 0)
    assert advice(kept, lost, buckets((600, 20))).measured_ns[0] == needed_ttl_ns(1_000 * MS, 0)
    assert advice(kept, buckets(), buckets((600, 40))).measured_ns[0] is None, "nobody knows by how much"


def test_a_ttl_covers_the_hold_the_call_and_the_margin():
    # (2,360 + 5 + 2) / 0.99 = 2,390.9, to two digits upwards.
    assert needed_ttl_ns(2_360 * MS, 5 * MS) == 2_400 * MS
    ttl_ns = needed_ttl_ns(100 * MS, 0)
    assert ttl_ns - 0.01 * ttl_ns - 2 * MS >= 100 * MS
    assert ttl_ns == 110 * MS


def test_both_ttls_are_named_where_ten_holds_were_longer():
    kept, lost = buckets((50, 19_580)), buckets((2_360, 300), (3_000, 100), (4_000, 20))
    found = advise(kept, lost, NO_HOLDS, call_ns=5 * MS, drawn=None)
    assert (found.holds, found.outlived) == (20_000, 420)
    assert sentence(found, 2_000) == (
        "2.1 % of 20,000 holds outlived their lease under the ttl of 2 s; a ttl of 2.4 s would leave 1 % and "
        "a ttl of 3.1 s would leave 0.1 %"
    )


def test_a_ttl_is_not_named_for_a_share_that_few_holds_show():
    some = advice(buckets((50, 1_960)), buckets((3_000, 40)))
    assert some.measured_ns[0] is not None
    assert some.measured_ns[1] is None
    assert sentence(some, 2_000).endswith("too few holds to compute the ttl that would leave 0.1 %")
    few = advice(buckets((50, 90)), buckets((3_000, 10)))
    assert sentence(few, 2_000).endswith("too few holds to compute the ttl that would leave 1 %")


def test_where_the_holds_are_too_few_the_distribution_says_which_ttl():
    few = advice(buckets((50, 40)), buckets((600, 3)), buckets((700, 2)), drawn=DRAWN)
    assert sentence(few, 500) == (
        "11.1 % of 45 holds outlived their lease under the ttl of 500 ms; by the distribution of the "
        "hold, a ttl of 2.1 s would leave 1 % and a ttl of 6.8 s would leave 0.1 %"
    )
    some = advice(buckets((50, 1_960)), buckets((3_000, 40)), drawn=DRAWN)
    assert sentence(some, 2_000) == (
        "2 % of 2,000 holds outlived their lease under the ttl of 2 s; a ttl of 3.1 s would leave 1 %; by the "
        "distribution of the hold, a ttl of 6.8 s would leave 0.1 %"
    )
    even = advice(buckets((5, 20)), buckets((30, 20)), drawn=Distribution.parse("uniform(5ms, 40ms)"))
    assert sentence(even, 25).endswith("; by the distribution of the hold, a ttl of 43 ms would leave 0.1 %")


def test_no_ttl_is_named_that_is_no_longer_than_the_one_that_was_outlived():
    """Holds of 85 ms fit into a lease of 100 ms; they were granted when much of it was over."""
    late = advice(buckets((85, 1_880)), buckets((86, 120)))
    assert sentence(late, 100) == (
        "6 % of 2,000 holds outlived their lease under the ttl of 100 ms; the holds fit into the ttl, so grants came "
        "late: slow acquires, or paused clients"
    )
    drawn = advice(buckets((85, 40)), buckets((86, 3)), drawn=Distribution.parse("85ms"))
    assert "a ttl of" not in sentence(drawn, 100).partition(";")[2]


def test_a_share_that_is_below_already_gets_no_ttl_that_leaves_more():
    said = sentence(advice(buckets((50, 99_500)), buckets((3_000, 500))), 2_000)
    assert "0.5 %" in said
    assert "leave 1 %" not in said
    assert "leave 0.1 %" in said


def advice_of(*, renewals: int, lease_ms: int | None = 2_000) -> str | None:
    trials = {"cell": "c", "status": "complete", "renewals": renewals, "release_p99_us": 100.0}
    holds = {"granted": buckets((50, 1_960)), "lost": buckets((3_000, 40)), "waiting": NO_HOLDS}
    return ttl_advice.advice_of(
        "c", {"lease_ms": lease_ms}, pd.DataFrame([trials]), lambda _cell, _phase, outcome: holds[outcome]
    )


def test_locks_that_renew_and_locks_without_a_lease_get_no_advice():
    said = advice_of(renewals=0)
    assert said is not None
    assert said.startswith(
        "c: 2 % of 2,000 holds outlived their lease under the ttl of 2 s; a ttl of 3.1 s would leave 1"
    )
    assert advice_of(renewals=3) is None
    assert advice_of(renewals=0, lease_ms=None) is None


@pytest.mark.parametrize("column", ["release_p50_us", "release_p99_us"])
def test_the_call_is_as_long_as_a_release(column):
    assert ttl_advice.call_ns(pd.DataFrame({column: [100.0, 300.0]})) == 200_000
    assert ttl_advice.call_ns(pd.DataFrame({"cell": ["c"]})) == 0
