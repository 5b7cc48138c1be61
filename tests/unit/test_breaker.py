"""The breaker: when it opens, what its probe decides."""

from __future__ import annotations

import pytest

from pybench.service.answers import Problem
from pybench.service.breaker import OPEN_S, Breaker


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(3, clock)
    for _ in range(3):
        breaker.check()
        breaker.failed()
    return breaker


def is_closed_to(breaker: Breaker) -> bool:
    try:
        breaker.check()
    except Problem as problem:
        return (problem.status, problem.retry_s) == (503, 1)
    return False


def test_it_opens_after_so_many_failures_in_a_row(clock):
    breaker = Breaker(3, clock)
    for _ in range(2):
        breaker.check()
        breaker.failed()
    breaker.check()
    breaker.worked()
    for _ in range(3):
        assert not is_closed_to(breaker)
        breaker.failed()
    assert is_closed_to(breaker)


def test_one_probe_is_let_through_after_a_second(clock):
    breaker = opened(clock)
    clock.now += OPEN_S - 0.01
    assert is_closed_to(breaker)
    clock.now += 0.02
    assert not is_closed_to(breaker)
    assert is_closed_to(breaker), "the probe is under way"
    breaker.worked()
    assert not is_closed_to(breaker)
    assert not is_closed_to(breaker)


def test_a_probe_that_fails_opens_it_again(clock):
    breaker = opened(clock)
    clock.now += OPEN_S
    assert not is_closed_to(breaker)
    breaker.failed()
    assert is_closed_to(breaker)
    clock.now += OPEN_S
    assert not is_closed_to(breaker)


def test_a_probe_that_leaves_makes_room_for_another(clock):
    breaker = opened(clock)
    clock.now += OPEN_S
    assert not is_closed_to(breaker)
    breaker.left()
    assert not is_closed_to(breaker)


def test_a_breaker_of_0_never_opens(clock):
    breaker = Breaker(0, clock)
    for _ in range(1_000):
        breaker.check()
        breaker.failed()
