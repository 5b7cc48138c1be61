from __future__ import annotations

import signal

import pytest

from pybench.running.interrupts import SIGNALS, Interrupts


def test_the_first_stops_what_may_be_stopped_and_the_second_leaves_wherever_it_comes():
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        assert (interrupts.asked, interrupts.insisted) == (True, False)
        with pytest.raises(KeyboardInterrupt), interrupts.stoppable():
            pytest.fail("one that came before raises on entry")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert interrupts.insisted


def test_what_is_shielded_is_not_torn_apart():
    reached = []

    def save(interrupts: Interrupts) -> None:
        with interrupts.shielded():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            reached.append("the end")

    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        save(interrupts)
    assert reached == ["the end"]


@pytest.mark.parametrize("number", SIGNALS)
def test_the_handlers_of_before_are_back_afterwards(number):
    before = signal.getsignal(number)
    with Interrupts():
        assert signal.getsignal(number) != before
    assert signal.getsignal(number) == before


def test_a_signal_that_was_ignored_before_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
            assert not interrupts.asked
    finally:
        signal.signal(signal.SIGHUP, before)
