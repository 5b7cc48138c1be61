"""Warm-ups until steady: when the core opens the window, and what it says of it."""

from __future__ import annotations

import time

import pytest

from pybench import _core
from tests.core_trials import MS, fixed
from tests.waiting import wait_until

STEADY = {"until_steady": True, "warmup_ns": 4_000 * MS, "duration_ns": 200 * MS}
STEP = 100 * MS


@pytest.mark.parametrize("threads", [1, 3])
def test_a_steady_load_opens_the_window_early_for_all_threads_at_once(make_spec, threads):
    # Each client holds for a millisecond, keys of its own: some hundred grants in each step.
    spec = make_spec(**STEADY, concurrency=6, keys=1_000, hold=fixed(1), threads=threads, strategy="none")
    result = _core.Trial(spec).run()
    totals = result.totals
    assert totals["window_ns"] == 200 * MS
    assert totals["warmup_ns"] % STEP == 0
    # The rule needs 20 steps. A busy machine may need more of them, but opens the window in any case.
    assert 2_100 * MS <= totals["warmup_ns"] <= 4_000 * MS
    if totals["warmup_ns"] < 3_900 * MS:
        assert totals["steady"] == 1
    assert totals["all_grants"] > totals["grants"] > 0
    # Every thread measured the whole window: each client was granted.
    assert (result.clients["grants"] > 0).all()
    # The time line is that of the window, without the warm-up.
    assert result.timeline["start_ns"].tolist() == [0, STEP]
    assert int(result.timeline["grants"].sum()) == totals["grants"]


def test_a_load_that_keeps_falling_behind_is_not_steady_and_still_opens_its_window(make_spec):
    # 400 arrivals a second for a key that is held for 10 ms: each waits longer than the one before.
    loop = {"kind": "open", "arrivals": "constant", "rate_per_s": 400.0, "max_in_flight": 100_000}
    spec = make_spec(
        **{**STEADY, "warmup_ns": 3_000 * MS}, strategy="fair-queue", args={}, concurrency=64, hold=fixed(10), loop=loop
    )
    totals = _core.Trial(spec).run().totals
    assert totals["steady"] == 0
    assert 3_000 * MS <= totals["warmup_ns"] <= 3_200 * MS
    assert totals["window_ns"] == 200 * MS


def test_a_trial_that_is_stopped_in_its_warm_up_has_no_window(make_spec):
    trial = _core.Trial(make_spec(**STEADY, hold=fixed(1)))
    trial.start()
    wait_until(lambda: trial.progress().phase == "warmup", "it warms up")
    began = time.monotonic()
    trial.stop()
    assert trial.wait(10)
    assert time.monotonic() - began < 5
    result = trial.result
    assert result is not None
    assert result.stopped
    assert "steady" not in result.totals
    assert result.totals["window_ns"] == result.totals["grants"] == 0
    assert len(result.timeline["start_ns"]) == 0


def test_a_fixed_warm_up_says_nothing_of_steadiness_and_stages_need_one(make_spec):
    assert "steady" not in _core.Trial(make_spec()).run().totals
    stages = [{"from": 1.0, "to": 8.0, "length_ns": 200 * MS}]
    with pytest.raises(ValueError, match="until_steady"):
        _core.Trial(make_spec(**STEADY, stages=stages))
