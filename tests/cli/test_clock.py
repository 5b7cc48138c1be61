"""The estimated time left, for trials with given durations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pybench.cli.clock import Clock
from pybench.running.watch import Slot
from tests.unit.support.trials import cell as cell_of

BEFORE_S = 0.37 + 2 * 0.32 + 2 * 0.37
"""A control, two baselines and both parts of the probe of one lock, with their overhead."""


class Time:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr("pybench.cli.clock.time.monotonic", time)
    return time


def slot(cell: str, *, seconds: float = 2.0, number: int = 1) -> Slot:
    return Slot(number=number, cell=replace(cell_of("mutex"), id=cell), block=1, planned_s=seconds)


def test_before_the_first_trial_the_time_left_is_the_planned_time(now: Time):
    clock = Clock([slot("a"), slot("b"), slot("b")])
    assert clock.left_s() == pytest.approx(BEFORE_S + 3 * 2.07)
    clock.begin(slot("control", number=0))
    now.now += 0.5
    assert clock.left_s() == pytest.approx(BEFORE_S - 0.5 + 3 * 2.07)
    clock.end(slot("control", number=0))
    now.now += 10.0
    assert clock.left_s() == pytest.approx(3 * 2.07)


def test_a_cell_is_expected_to_take_its_mean_so_far_and_a_new_cell_the_mean_of_the_others(now: Time):
    slow, quick, unseen = slot("slow"), slot("quick"), slot("unseen")
    clock = Clock([slow, quick, slow, unseen])
    for each, took in ((slow, 5.0), (quick, 2.5)):
        clock.begin(each)
        now.now += took
        clock.end(each)
    assert clock.left_s() == pytest.approx(5.0 + 2.0 + (3.0 + 0.5) / 2)
    now.now += 0.25  # between two trials: part of the next
    clock.begin(slow)
    now.now += 1.0
    assert clock.left_s() == pytest.approx(3.75 + 2.0 + 1.75)
    now.now += 60.0
    assert clock.left_s() == pytest.approx(2.0 + 1.75)  # it takes nothing of the next one's time


def test_the_time_left_of_a_run_with_fast_and_slow_cells_is_never_off_by_a_fifth(now: Time):
    took = {"fast": 2.05, "slow": 2.9, "connecting": 2.6, "persistent": 2.15}
    blocks = [("fast", "persistent", "connecting", "slow"), ("slow", "fast", "connecting", "persistent")] * 3
    slots = [slot(cell) for block in blocks for cell in block]
    clock = Clock(slots)
    whole = BEFORE_S + sum(took[each.cell.id] for each in slots)
    shown = [(whole, clock.left_s())]
    now.now += BEFORE_S
    end = 100.0 + whole
    for each in slots:
        clock.begin(each)
        for _ in range(4):
            now.now += took[each.cell.id] / 4
            shown.append((end - now.now, clock.left_s()))
        clock.end(each)
    assert [(real, left) for real, left in shown[:-1] if abs(left - real) > real / 5] == []
    assert clock.left_s() == pytest.approx(0.0, abs=1e-9)
