"""The estimated time left, for trials with given durations."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from pybench.cli.clock import Clock, TimeLeft
from pybench.matrix import expand, matrix_from_mapping
from pybench.matrix.search_modes import SearchMode
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
    assert clock.left().seconds == pytest.approx(BEFORE_S + 3 * 2.07 + 4.0)
    clock.begin(slot("control", number=0))
    now.now += 0.5
    assert clock.left().seconds == pytest.approx(BEFORE_S - 0.5 + 3 * 2.07 + 4.0)
    clock.end(slot("control", number=0))
    now.now += 10.0
    assert clock.left().seconds == pytest.approx(3 * 2.07 + 4.0)


def test_a_cell_is_expected_to_take_its_mean_so_far_and_a_new_cell_the_mean_of_the_others(now: Time):
    slow, quick, unseen = slot("slow"), slot("quick"), slot("unseen")
    clock = Clock([slow, quick, slow, unseen])
    for each, took in ((slow, 5.0), (quick, 2.5)):
        clock.begin(each)
        now.now += took
        clock.end(each)
    assert clock.left().seconds == pytest.approx(5.0 + 2.0 + (3.0 + 0.5) / 2)
    now.now += 0.25  # between two trials: part of the next
    clock.begin(slow)
    now.now += 1.0
    assert clock.left().seconds == pytest.approx(3.75 + 2.0 + 1.75)
    now.now += 60.0
    assert clock.left().seconds == pytest.approx(2.0 + 1.75)  # it takes nothing of the next one's time


def test_trials_that_take_no_longer_than_planned_leave_the_planned_time(now: Time):
    # A warm-up until the lock is steady may be shorter than planned.
    slots = [slot(cell) for _ in range(4) for cell in "abcd"]
    clock, planned_s = Clock(slots), 2.0 * len(slots)
    for each, took in zip(slots, [2.3, *[1.9] * 15], strict=True):
        clock.begin(each)
        now.now += took
        clock.end(each)
        planned_s -= 2.0
        assert planned_s <= clock.left().seconds <= planned_s + 0.3 * len(slots)
    assert clock.left().text == "about 0 s"


def test_the_time_left_of_a_run_with_fast_and_slow_cells_is_never_off_by_a_fifth(now: Time):
    took = {"fast": 2.05, "slow": 2.9, "connecting": 2.6, "persistent": 2.15}
    blocks = [("fast", "persistent", "connecting", "slow"), ("slow", "fast", "connecting", "persistent")] * 3
    slots = [slot(cell) for block in blocks for cell in block]
    clock = Clock(slots, around(slots))
    whole = BEFORE_S + sum(took[each.cell.id] for each in slots)
    shown = [(whole, clock.left().seconds)]
    now.now += BEFORE_S
    end = 100.0 + whole
    for each in slots:
        clock.begin(each)
        for _ in range(4):
            now.now += took[each.cell.id] / 4
            shown.append((end - now.now, clock.left().seconds))
        clock.end(each)
    assert [(real, left) for real, left in shown[:-1] if abs(left - real) > real / 5] == []
    assert clock.left().seconds == pytest.approx(0.0, abs=1e-9)


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
            shown.append((left, clock.left().seconds))
    assert [(real, told) for real, told in shown if abs(told - real) > real / 5 + 0.1] == []
    steps = [later - sooner for (_, sooner), (_, later) in pairwise(shown)]
    # The time left falls by a trial each time. What a trial took beyond its expectation may add a little.
    assert max(steps) < 0.05 * shown[0][1]


def test_a_resumed_run_measures_no_probe_again_and_expects_the_overhead_of_its_earlier_part(now: Time):
    slots = [slot("a"), slot("b")]
    clock = Clock(slots, around(slots, is_resumed=True, overhead_s=0.5))
    assert clock.left().seconds == pytest.approx(2 * 0.32 + 2 * 2.5)
    clock.begin(slot("a"))
    assert clock.left().seconds == pytest.approx(2 * 2.5)
    now.now += 3.0
    clock.end(slot("a"))
    # One slow cell does not outweigh the earlier part, which counts as ten cells.
    assert clock.left().seconds == pytest.approx(2.0 + (10 * 0.5 + 1.0) / 11)


def test_the_overhead_of_an_earlier_part_is_that_of_trials_in_sequence_without_the_pause_between_two_parts():
    slots = [replace(slot("a", number=number), block=number) for number in range(1, 9)]
    noon = datetime(2026, 1, 2, 12)
    seconds = {1: 0.0, 2: 2.5, 3: 5.0, 4: 3_600.0, 5: 3_602.5, 7: 3_700.0}
    starts = {("a", block): noon + timedelta(seconds=after) for block, after in seconds.items()}
    assert overhead_of(slots, starts) == pytest.approx(0.5)
    assert overhead_of(slots, {}) is None
    assert overhead_of(slots, {("a", 1): noon, ("a", 3): noon + timedelta(seconds=5)}) is None
    assert overhead_of(slots, {("a", 1): noon, ("a", 2): noon + timedelta(seconds=1)}) == 0.0, "the clock was set"


def shown(now: Time, overheads: list[list[float]], planned_s: float = 0.4) -> list[tuple[float, TimeLeft]]:
    """The real time left, and the shown one, after each trial of a run; a list of overheads a cell, one a block."""
    blocks = list(zip(*overheads, strict=True))
    order = Random(7)
    slots = [
        (slot(f"cell {cell}", seconds=planned_s), block[cell])
        for block in blocks
        for cell in order.sample(range(len(overheads)), len(overheads))
    ]
    clock = Clock([each for each, _ in slots])
    left, found = sum(planned_s + beyond for _, beyond in slots), []
    for each, beyond in slots:
        clock.begin(each)
        now.now += planned_s + beyond
        left -= planned_s + beyond
        clock.end(each)
        found.append((left, clock.left()))
    return found


def levels(cells: int) -> list[float]:
    draw = Random(3)
    return [0.2 * draw.lognormvariate(0, 0.4) for _ in range(cells)]


def is_right(real_s: float, told: TimeLeft) -> bool:
    """Whether the shown time, or an end of the shown range, is within an eighth, or 2 s, of the real one."""
    low, high = (told.low_s, told.high_s) if " to " in told.text else (told.seconds, told.seconds)
    off = max(real_s / 8, 2.0)
    return low - off <= real_s <= high + off


@pytest.mark.parametrize(("cells", "blocks"), [(4, 16), (12, 10), (40, 6)])
def test_when_the_overhead_triples_half_way_the_time_left_is_right_a_block_later(now: Time, cells: int, blocks: int):
    draw, half = Random(11), blocks // 2
    overheads = [
        [level * draw.lognormvariate(0, 0.15) * (1 if block < half else 3) for block in range(blocks)]
        for level in levels(cells)
    ]
    found = shown(now, overheads)
    wrong = [(real, told.text) for real, told in found[cells * (half + 1) :] if not is_right(real, told)]
    assert wrong == []
    # Before the change nobody can know of it.
    real, told = found[cells * half - 1]
    assert told.high_s < 0.8 * real


@pytest.mark.parametrize("seed", range(4))
def test_where_the_overhead_varies_wildly_a_range_is_shown_and_nine_of_ten_are_right(now: Time, seed: int):
    draw = Random(seed)
    found = shown(now, [[level * draw.lognormvariate(0, 0.8) for _ in range(10)] for level in levels(12)])[12:]
    assert sum(is_right(real, told) for real, told in found) >= 0.9 * len(found)
    if seed == 0:
        assert any(" to " in told.text for _, told in found)


def test_where_the_overhead_is_steady_one_number_is_shown_and_right(now: Time):
    draw = Random(5)
    found = shown(now, [[level * draw.lognormvariate(0, 0.1) for _ in range(8)] for level in levels(12)])[24:]
    assert [told.text for real, told in found if " to " in told.text or not is_right(real, told)] == []


def test_a_range_is_rounded_to_the_outside():
    assert TimeLeft(300, 241, 359).text == "about 4 to 6 min"
    assert TimeLeft(60, 43, 81).text == "about 40 to 85 s"
    assert TimeLeft(10_000, 8_000, 12_000).text == "about 2 h 13 min to 3 h 20 min"
    assert TimeLeft(300, 280, 320).text == "about 5 min 00 s"
    assert TimeLeft(8, 2, 14).text == "about 8 s"


def test_of_searches_what_they_took_counts_and_not_what_was_planned(now: Time):
    cells = [replace(cell_of("mutex"), id=name, mode=SearchMode("saturate")) for name in "ab"]
    slots = [Slot(1 + place, cells[place % 2], 1 + place // 2, 60.0) for place in range(8)]
    clock = Clock(slots)
    assert clock.left().seconds == pytest.approx(8 * 60.0)
    for each in slots[:4]:
        probe = replace(each, cell=each.cell.at_rate(100.0), probe=1)
        clock.begin(probe)
        now.now += 40.0
        clock.end(each)
    assert clock.left().seconds == pytest.approx(4 * 40.0)
    clock.begin(replace(slots[4], cell=slots[4].cell.at_rate(100.0), probe=1))
    now.now += 30.0
    assert clock.left().seconds == pytest.approx(4 * 40.0 - 30.0)
