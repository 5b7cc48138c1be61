"""The time left, by trials whose durations are written here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pybench.cli.clock import Clock
from pybench.running.watch import Slot
from tests.unit.support.trials import cell as cell_of

BEFORE_S = 0.37 + 2 * 0.32 + 2 * 0.37
"""A control, two baselines and both parts of the probe of one lock, with what surrounds them."""


class Time:
    """A clock that goes when it is told to."""

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


def test_before_anything_was_seen_it_is_what_the_plan_says(now: Time):
    clock = Clock([slot("a"), slot("b"), slot("b")])
    assert clock.left_s() == pytest.approx(BEFORE_S + 3 * 2.07)
    clock.begin(slot("control", number=0))
    now.now += 0.5
    assert clock.left_s() == pytest.approx(BEFORE_S - 0.5 + 3 * 2.07)
    clock.end(slot("control", number=0))
    now.now += 10.0
    assert clock.left_s() == pytest.approx(3 * 2.07)


def test_a_cell_is_expected_to_take_what_it_took_and_an_unseen_one_what_the_others_take(now: Time):
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


def test_of_a_run_with_fast_and_slow_cells_it_is_never_off_by_a_fifth(now: Time):
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
