"""The estimated time left, for trials with given durations."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from pybench.cli.clock import Clock
from pybench.matrix import expand, matrix_from_mapping
from pybench.planning.plan import before_trials_ns
from pybench.records import load
from pybench.running.pace import overhead_of
from pybench.running.watch import Around, Slot
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


def around(slots: list[Slot], *, is_resumed: bool = False, **seconds: float) -> Around:
    before_ns = before_trials_ns([one.cell for one in slots], is_resumed=is_resumed)
    return Around(before_s=before_ns / 1e9, **seconds)


def test_before_the_first_trial_the_time_left_is_the_planned_time(now: Time):
    slots = [slot("a"), slot("b"), slot("b")]
    clock = Clock(slots, around(slots, ending_s=4.0))
    assert clock.left_s() == pytest.approx(BEFORE_S + 3 * 2.07 + 4.0)
    clock.begin(slot("control", number=0))
    now.now += 0.5
    assert clock.left_s() == pytest.approx(BEFORE_S - 0.5 + 3 * 2.07 + 4.0)
    clock.end(slot("control", number=0))
    now.now += 10.0
    assert clock.left_s() == pytest.approx(3 * 2.07 + 4.0)


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
    clock = Clock(slots, around(slots))
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


RESULTS = Path(__file__).parents[2] / "results"


def recorded(name: str) -> list[tuple[Slot, float]]:
    """The trials of a committed run in their order, each with the seconds until the next one began."""
    run = load(RESULTS / name)
    matrix = matrix_from_mapping(run.manifest["matrix"]["expanded"])
    cells = {one.id: one for one in expand(matrix)}
    planned_s = (matrix.warmup_ns + matrix.duration_ns) / 1e9
    trials = sorted(run.trials.itertuples(), key=lambda trial: trial.started_at)
    slots = [Slot(number, cells[trial.cell], trial.block, planned_s) for number, trial in enumerate(trials, start=1)]
    begins = [datetime.fromisoformat(trial.started_at) for trial in trials]
    return [
        (one, (later - sooner).total_seconds()) for one, (sooner, later) in zip(slots, pairwise(begins), strict=False)
    ]


@pytest.mark.parametrize("name", ["reference", "redis-vs-postgres"])
def test_the_time_left_of_a_real_run_is_never_off_by_a_fifth_and_never_jumps_after_its_first_block(
    now: Time, name: str
):
    trials = recorded(name)
    assert len(trials) > 70
    slots = [each for each, _ in trials]
    clock = Clock(slots, around(slots))
    left = sum(took for _, took in trials)
    shown: list[tuple[float, float]] = []
    for each, took in trials:
        clock.begin(each)
        now.now += took
        clock.end(each)
        left -= took
        if each.block > 1:
            shown.append((left, clock.left_s()))
    assert [(real, told) for real, told in shown if abs(told - real) > real / 5 + 0.1] == []
    steps = [later - sooner for (_, sooner), (_, later) in pairwise(shown)]
    # The time left falls by a trial each time. What a trial took beyond its expectation may add a little.
    assert max(steps) < 0.05 * shown[0][1]


def test_a_resumed_run_measures_no_probe_again_and_expects_the_overhead_of_its_earlier_part(now: Time):
    slots = [slot("a"), slot("b")]
    clock = Clock(slots, around(slots, is_resumed=True, overhead_s=0.5))
    assert clock.left_s() == pytest.approx(2 * 0.32 + 2 * 2.5)
    clock.begin(slot("a"))
    assert clock.left_s() == pytest.approx(2 * 2.5)
    now.now += 3.0
    clock.end(slot("a"))
    # One slow cell does not outweigh the earlier part, which counts as ten cells.
    assert clock.left_s() == pytest.approx(2.0 + (10 * 0.5 + 1.0) / 11)


def test_the_overhead_of_an_earlier_part_is_that_of_trials_in_sequence_without_the_pause_between_two_parts():
    slots = [replace(slot("a", number=number), block=number) for number in range(1, 9)]
    noon = datetime(2026, 1, 2, 12)
    seconds = {1: 0.0, 2: 2.5, 3: 5.0, 4: 3_600.0, 5: 3_602.5, 7: 3_700.0}
    starts = {("a", block): noon + timedelta(seconds=after) for block, after in seconds.items()}
    assert overhead_of(slots, starts) == pytest.approx(0.5)
    assert overhead_of(slots, {}) is None
    assert overhead_of(slots, {("a", 1): noon, ("a", 3): noon + timedelta(seconds=5)}) is None
    assert overhead_of(slots, {("a", 1): noon, ("a", 2): noon + timedelta(seconds=1)}) == 0.0, "the clock was set"
