"""The search for the limit of a lock: it ends, stays within its bounds, and finds the limit of simulated systems."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybench.planning.limit_search import (
    CONFIRMATIONS,
    Ask,
    Bounds,
    Ended,
    Phase,
    Shown,
    most_probes,
    next_step,
)

Lock = Callable[[Ask], Shown]


def probed(bounds: Bounds, lock: Lock) -> tuple[Ended, list[Ask], list[Shown]]:
    asked: list[Ask] = []
    shown: list[Shown] = []
    while True:
        step = next_step(bounds, shown)
        if isinstance(step, Ended):
            return step, asked, shown
        asked.append(step)
        shown.append(lock(step))
        assert len(shown) <= most_probes(bounds), "the search does not end"


def sharp(limit: float) -> Lock:
    return lambda ask: Shown.HELD if ask.rate_per_s <= limit else Shown.FAILED


@st.composite
def bounds_of_any_search(draw: st.DrawFn) -> Bounds:
    least = draw(st.floats(0.01, 1e4))
    start = least * draw(st.floats(1, 1e3))
    most = start * draw(st.floats(1, 1e3))
    shares = draw(st.sampled_from([(), (0.3, 0.6, 0.8, 0.95)]))
    return Bounds(start, least, most, draw(st.floats(0.005, 0.5)), shares)


@given(bounds_of_any_search(), st.lists(st.sampled_from(list(Shown)), max_size=400))
def test_whatever_the_probes_show_a_search_ends_and_stays_within_its_bounds(bounds: Bounds, shown: list[Shown]):
    outcomes = iter(shown)
    _, asked, _ = probed(bounds, lambda _: next(outcomes, Shown.FAILED))
    for ask in asked:
        lowest = bounds.least * (min(bounds.shares) if ask.phase is Phase.CURVE else 1)
        assert lowest * (1 - 1e-9) <= ask.rate_per_s <= bounds.most * (1 + 1e-9)


@given(bounds_of_any_search(), st.floats(1e-3, 1e9))
def test_the_limit_of_a_sharp_lock_lies_in_an_interval_as_narrow_as_asked(bounds: Bounds, limit: float):
    ended, asked, _ = probed(bounds, sharp(limit))
    if limit < bounds.least:
        assert ended == Ended(None, bounds.least)
        return
    assert ended.limit_per_s is not None
    assert ended.limit_per_s <= limit
    if ended.high_per_s is None:
        assert ended.limit_per_s == bounds.most
    else:
        assert limit < ended.high_per_s <= ended.limit_per_s * (1 + bounds.within) * (1 + 1e-9)
    confirmations = [ask for ask in asked if ask.phase is Phase.CONFIRM]
    assert confirmations == [Ask(ended.limit_per_s, Phase.CONFIRM)] * CONFIRMATIONS
    curve = [ask.rate_per_s for ask in asked if ask.phase is Phase.CURVE]
    assert curve == pytest.approx([share * ended.limit_per_s for share in bounds.shares])


def noisy(limit: float, drawn: random.Random, *, spread: float, disturbed: float, late: float) -> Lock:
    """A lock whose probes near the limit hold by chance, on a machine that disturbs some of them."""

    def lock(ask: Ask) -> Shown:
        if drawn.random() < late:
            return Shown.LATE
        if drawn.random() < disturbed:
            return Shown.FAILED
        holds = NormalDist().cdf(math.log(limit / ask.rate_per_s) / spread)
        return Shown.HELD if drawn.random() < holds else Shown.FAILED

    return lock


@pytest.mark.parametrize(
    ("spread", "disturbed", "late"),
    [(0.002, 0.0, 0.0), (0.01, 0.02, 0.05), (0.02, 0.03, 0.1), (0.03, 0.05, 0.1)],
)
def test_the_interval_holds_the_limit_of_a_noisy_lock_in_95_percent_of_searches(
    spread: float, disturbed: float, late: float
):
    drawn = random.Random(17)
    searches, found, widths, probes = 400, 0, [], []
    for _ in range(searches):
        limit = math.exp(drawn.uniform(math.log(20), math.log(200_000)))
        bounds = Bounds(start=limit / drawn.uniform(2, 100), least=limit / 1_000, most=limit * 1_000, within=0.05)
        ended, asked, _ = probed(bounds, noisy(limit, drawn, spread=spread, disturbed=disturbed, late=late))
        probes.append(len(asked))
        if ended.limit_per_s is not None and ended.high_per_s is not None:
            found += ended.limit_per_s <= limit <= ended.high_per_s
            widths.append(ended.high_per_s / ended.limit_per_s)
    assert found / searches >= 0.95
    assert sorted(widths)[len(widths) // 2] <= 1.12
    assert sorted(probes)[len(probes) // 2] <= 30
