from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybench import stats

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


@settings(deadline=None)
@given(st.lists(figures, min_size=2, max_size=12))
def test_an_interval_holds_the_median_and_stays_in_range(samples):
    low, high = stats.median_interval(samples)
    assert min(samples) <= low <= stats.median(samples) <= high <= max(samples)


@settings(deadline=None)
@given(st.lists(figures, min_size=2, max_size=5, unique=True))
def test_up_to_five_trials_are_bounded_by_their_range(samples):
    assert stats.median_interval(samples) == pytest.approx((min(samples), max(samples)), rel=1e-12)


def test_the_range_is_what_resampling_would_give_of_few(monkeypatch):
    samples = [3.0, 8.0, 1.0, 9.0, 4.0]
    monkeypatch.setattr(stats, "FEW", 0)
    for count in range(2, 6):
        few = samples[:count]
        assert stats.median_interval(few) == (min(few), max(few))


def test_the_interval_covers_the_median_of_most_samples():
    rng = np.random.default_rng(2)
    covered = [low <= np.log(2) <= high for low, high in map(stats.median_interval, rng.exponential(size=(200, 20)))]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.05)


def test_an_interval_repeats_and_hangs_on_its_seed_alone():
    samples = [float(n * n % 101) for n in range(30)]
    assert stats.median_interval(samples, seed=1) == stats.median_interval(samples, seed=1)


@pytest.mark.parametrize("samples", [[5.0] * 5, [0.0, 0.0]])
def test_identical_trials_have_an_interval_of_one_point(samples):
    assert stats.median_interval(samples) == (samples[0], samples[0])


def test_nearly_identical_trials_neither_warn_nor_fail():
    assert stats.median_interval([1e9, 1e9, np.nextafter(1e9, 2e9)]) is not None


@pytest.mark.parametrize("samples", [[], [4.0], [4.0, None]])
def test_one_trial_has_no_interval(samples):
    assert stats.median_interval(samples) is None


def test_intervals_that_touch_overlap():
    assert stats.Interval(1, 2).overlaps(stats.Interval(2, 3))
    assert not stats.Interval(1, 2).overlaps(stats.Interval(2.1, 3))


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
    assert stats.confidence(6) == stats.confidence(50) == 0.95


def test_a_range_of_trials_covers_the_median_as_often_as_it_says():
    rng = np.random.default_rng(1)
    draws = rng.exponential(size=(4_000, 4))
    covered = np.mean((draws.min(axis=1) <= np.log(2)) & (np.log(2) <= draws.max(axis=1)))
    assert covered == pytest.approx(stats.confidence(4), abs=0.02)


def test_medians_differ_where_intervals_do_not_overlap_over_enough_trials():
    low, high = stats.Interval(1, 2), stats.Interval(3, 4)
    assert stats.told_apart(low, high, trials=4)
    assert not stats.told_apart(low, high, trials=3)
    assert not stats.told_apart(low, stats.Interval(2, 3), trials=9)
    assert not stats.told_apart(low, None, trials=9)
