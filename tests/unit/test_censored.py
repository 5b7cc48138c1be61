from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf
from support.trials import FakeResult, histogram, record

from pybench.analysis import stats
from pybench.analysis.censored_quantiles import ACQUIRE, Quantile, of_cell, quantile
from pybench.analysis.histograms import Buckets
from pybench.analysis.summary import summarise

MS = 1_000_000
LENGTHS = st.lists(st.integers(1, 60), max_size=300)


def buckets(values) -> Buckets:
    counted = sorted(Counter(values).items())
    return Buckets(
        np.array([value for value, _ in counted], dtype=np.uint64),
        np.array([count for _, count in counted], dtype=np.uint64),
    )


def row_of(phase: str, outcome: str, values):
    values = list(values)
    return type("Row", (), {"phase": phase, "outcome": outcome, "count": len(values), "hdr": histogram(values)})()


@given(LENGTHS, LENGTHS.filter(len), st.sampled_from([0.25, 0.5, 0.9, 0.99]))
def test_a_quantile_is_that_of_the_estimator_that_scipy_has(ended, unfinished, q):
    found = quantile(buckets(ended), buckets(unfinished), q)
    if not stats.enough(len(ended) + len(unfinished), q):
        assert found == Quantile()
        return
    expected = ecdf(CensoredData(uncensored=ended, right=unfinished)).cdf
    reached = np.flatnonzero(expected.probabilities >= q - 1e-9)
    if len(reached):
        assert found == Quantile(float(expected.quantiles[reached[0]]))
    else:
        assert found == Quantile(None, float(max(unfinished)))


@given(LENGTHS, st.sampled_from([0.5, 0.99]))
def test_where_all_ended_a_quantile_is_the_plain_one(ended, q):
    assert quantile(buckets(ended), buckets([]), q) == Quantile(stats.quantile(*buckets(ended), q))


@given(LENGTHS, LENGTHS)
def test_a_higher_quantile_is_never_below_a_lower_one(ended, unfinished):
    found = [quantile(buckets(ended), buckets(unfinished), q) for q in (0.1, 0.5, 0.9, 0.95)]
    least = [one.least for one in found if not math.isnan(one.least)]
    assert least == sorted(least)
    assert [one.value is None for one in found] == sorted(one.value is None for one in found)


def test_waits_that_are_not_over_make_the_tail_longer_than_grants_alone():
    ended = buckets([1] * 980)
    assert quantile(ended, buckets([]), 0.99) == Quantile()
    assert quantile(ended, buckets([400] * 20), 0.5) == Quantile(1.0)
    assert quantile(ended, buckets([400] * 20), 0.99) == Quantile(None, 400.0)


def test_a_bound_is_where_the_bucket_of_the_longest_wait_begins():
    """430,178,303 ns stands for all lengths from 429,916,160 on; a lower quantile may lie in the same bucket."""
    ended, unfinished = buckets([1] * 980), buckets([430_178_303] * 20)
    assert quantile(ended, unfinished, 0.99) == Quantile(None, 429_916_160.0)
    beside = buckets([1] * 979 + [430_178_303])
    assert quantile(beside, unfinished, 0.99) == Quantile(None, 430_178_303.0)


def trials_of(*of_trials: tuple[Iterable[int], Iterable[int]]):
    """The frame of a cell's trials, whose acquires are `(granted, waiting)` in ms, and their histograms."""
    rows, latency = [], []
    for trial, (granted, waiting) in enumerate(of_trials, start=1):
        histograms = [row_of("response", "granted", (ms * MS for ms in granted))]
        if waiting:
            histograms.append(row_of("response", "waiting", (ms * MS for ms in waiting)))
        kept = record(trial=trial, result=FakeResult(histograms=histograms))
        rows.append(kept.row)
        latency += [{"cell": kept.cell, "trial": trial, **one} for one in kept.latency]
    return pd.DataFrame(rows), pd.DataFrame(latency)


def in_ms(us: float | None) -> float:
    assert us is not None
    return us / 1e3


def test_a_trial_says_by_how_much_its_tail_is_longer_at_least():
    frame, _ = trials_of((range(1, 990), [2_000] * 20))
    (row,) = frame.to_dict("records")
    assert row["acquire_p50_us"] == pytest.approx(505_000, rel=0.002)
    assert row["acquire_p50_at_least_us"] is None
    assert row["acquire_p99_us"] is None
    assert row["acquire_p99_at_least_us"] == pytest.approx(2e6, rel=0.002)


def test_the_median_over_trials_has_only_a_bound_where_most_trials_have_no_more():
    tail = ([1] * 980, [400] * 20)
    whole = ([1] * 980 + [500] * 20, [])
    found = of_cell(*trials_of(tail, tail, whole))
    assert found["acquire_p99"].value is None
    assert in_ms(found["acquire_p99"].at_least) == pytest.approx(400, rel=0.002)
    assert in_ms(of_cell(*trials_of(tail, whole, whole))["acquire_p99"].value) == pytest.approx(500, rel=0.002)


def test_what_a_trial_has_too_few_samples_of_is_taken_from_all_together_and_marked():
    one = ([*range(1, 401)], [])
    found = of_cell(*trials_of(one, one, one))
    assert in_ms(found["acquire_p50"].value) == pytest.approx(200, rel=0.002)
    assert not found["acquire_p50"].pooled
    assert in_ms(found["acquire_p99"].value) == pytest.approx(396, rel=0.002)
    assert found["acquire_p99"].pooled
    assert found["acquire_p999"] == Quantile(), "1,200 samples are too few for it"
    assert of_cell(*trials_of(one))["acquire_p99"] == Quantile(), "a single trial is all there is"


def test_a_pooled_quantile_is_of_complete_trials_only():
    one = ([*range(1, 401)], [])
    frame, latency = trials_of(one, one, one)
    assert of_cell(frame[frame["trial"] < 3], latency)["acquire_p99"] == Quantile()


def test_a_pooled_quantile_above_a_median_takes_the_lower_one_with_it():
    # In two of three trials p99 is 900 ms; of all samples together 99.9 % are not above 1 ms.
    slow = ([1] * 989 + [900] * 11, [])
    fast = ([1] * 40_000, [])
    found = of_cell(*trials_of(slow, slow, fast))
    assert found["acquire_p999"].pooled
    assert found["acquire_p99"].pooled
    assert in_ms(found["acquire_p99"].value) <= in_ms(found["acquire_p999"].value) == pytest.approx(1, rel=0.002)


# Encoding a histogram in Python takes long.
@settings(max_examples=6)
@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 900), max_size=150), st.lists(st.integers(1, 900), max_size=40)),
        max_size=4,
        min_size=1,
    )
)
def test_the_quantiles_of_a_cell_are_ordered(of_trials):
    found = of_cell(*trials_of(*((granted * 9, waiting * 9) for granted, waiting in of_trials)))
    least = [one.least for one in found.values() if not math.isnan(one.least)]
    assert list(found) == list(ACQUIRE)
    assert least == sorted(least)
    for one in found.values():
        assert one.value is None or one.at_least is None


def test_records_of_before_there_were_unfinished_waits_are_read():
    frame, _ = trials_of(([*range(1, 401)], []))
    old = frame.drop(columns=[name for name in frame if "at_least" in name])
    (row,) = summarise(old).to_dict("records")
    assert row["acquire_p50_us"] == pytest.approx(200_000, rel=0.002)
    assert math.isnan(row["acquire_p99_us"])
    assert row["acquire_p50_pooled"] is False


def test_the_summary_has_the_longest_wait_of_any_trial():
    frame, latency = trials_of(*[([1] * 30, [])] * 3)
    frame["longest_wait_us"] = [5.0, math.nan, 70.0]
    (row,) = summarise(frame, latency).to_dict("records")
    assert row["longest_wait_us"] == 70.0


@pytest.mark.parametrize(("each", "pooled"), [(12, True), (3, False), (30, False)])
def test_few_hand_offs_of_each_trial_are_taken_together(each, pooled):
    rows, latency = [], []
    for trial in (1, 2, 3):
        kept = record(trial=trial, result=FakeResult(histograms=[row_of("handoff", "granted", [5 * MS] * each)]))
        rows.append(kept.row)
        latency += [{"cell": kept.cell, "trial": trial, **one} for one in kept.latency]
    (row,) = summarise(pd.DataFrame(rows), pd.DataFrame(latency)).to_dict("records")
    assert row["handoff_p50_pooled"] is pooled
    assert math.isnan(row["handoff_p50_us"]) is (each == 3), "nine are too few"
