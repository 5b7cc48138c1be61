from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybench.analysis import stats

figures = st.floats(min_value=0, max_value=1e9)


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=400), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_quantile_is_the_value_of_its_rank_or_n_a(samples, q):
    values, counts = np.unique(samples, return_counts=True)
    found = stats.quantile(values, counts, q)
    beyond = sorted(samples)[int(np.ceil(round(q * len(samples), 6))) :]
    if len(beyond) < 10:
        assert found is None
    else:
        assert found == np.quantile(samples, q, method="inverted_cdf")


@pytest.mark.parametrize(("q", "needed"), [(0.5, 20), (0.99, 1_000), (0.999, 10_000)])
def test_a_quantile_needs_ten_samples_beyond_it(q, needed):
    values = np.array([7], dtype=np.uint64)
    assert stats.quantile(values, np.array([needed - 1], dtype=np.uint64), q) is None
    assert stats.quantile(values, np.array([needed], dtype=np.uint64), q) == 7
    assert not stats.enough(needed - 1, q)
    assert stats.enough(needed, q)


def test_a_quantile_of_nothing_is_n_a():
    empty = np.array([], dtype=np.uint64)
    assert stats.quantile(empty, empty, 0.5) is None


def test_a_median_is_of_what_is_there():
    assert stats.median([3.0, None, 1.0, float("nan"), 2.0]) == 2.0
    assert stats.median([None, float("nan")]) is None
    assert stats.median([]) is None


@given(st.lists(figures, min_size=2, max_size=12))
def test_an_interval_holds_the_median_and_stays_in_range(samples):
    low, high = stats.median_interval(samples)
    assert min(samples) <= low <= stats.median(samples) <= high <= max(samples)


@given(st.lists(figures, min_size=2, max_size=5, unique=True))
def test_up_to_five_trials_are_bounded_by_their_range(samples):
    assert stats.median_interval(samples) == pytest.approx((min(samples), max(samples)), rel=1e-12)


@pytest.mark.parametrize("trials", [2, 5, 6, 9, 20])
def test_an_interval_covers_the_median_as_often_as_it_says(trials):
    rng = np.random.default_rng(trials)
    covered = [
        low <= np.log(2) <= high for low, high in map(stats.median_interval, rng.exponential(size=(4_000, trials)))
    ]
    assert np.mean(covered) == pytest.approx(stats.confidence(trials), abs=0.02)


@pytest.mark.parametrize("samples", [[5.0] * 5, [0.0, 0.0]])
def test_identical_trials_have_an_interval_of_one_point(samples):
    assert stats.median_interval(samples) == (samples[0], samples[0])


def test_nearly_identical_trials_neither_warn_nor_fail():
    assert stats.median_interval([1e9, 1e9, np.nextafter(1e9, 2e9)]) is not None


@pytest.mark.parametrize("samples", [[], [4.0], [4.0, None]])
def test_one_trial_has_no_interval(samples):
    assert stats.median_interval(samples) is None


def test_the_rule_of_three():
    assert stats.bound_per_million(0) is None
    assert stats.bound_per_million(1) == 1e6
    assert stats.bound_per_million(4_100_000) == pytest.approx(0.7317, abs=1e-4)


@given(st.integers(1, 10**12))
def test_the_bound_covers_what_it_says(chances):
    rate = stats.bound_per_million(chances) / 1e6
    assert 0 < rate <= 1
    # Were the rate as high as the bound, nothing would be seen in at most about one run of twenty.
    assert rate == 1 or (1 - rate) ** chances < 0.0502


def test_the_range_of_a_few_trials_is_as_sure_as_coins_are():
    assert [stats.confidence(trials) for trials in (0, 1, 2, 3, 4)] == [None, None, 0.5, 0.75, 0.875]
    assert stats.confidence(5) == 0.9375


@given(st.integers(6, 200))
def test_from_six_trials_on_an_interval_is_as_narrow_as_95_per_cent_allow(trials):
    low, _ = stats.median_interval(list(range(trials)))
    assert stats.confidence(trials) >= 0.95
    coins = math.comb(trials, int(low) + 1) / 2**trials
    assert stats.confidence(trials) - 2 * coins < 0.95
