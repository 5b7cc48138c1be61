"""What a probe of a search shows of its rate, and why it does not hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pybench.analysis.search_outcomes import HELD, ProbeOutcome, growth, of_a_probe, outcome_of
from pybench.matrix.thresholds import parse_threshold
from pybench.planning.limit_search import Shown

STEP_NS = 100_000_000
LATE = ProbeOutcome(Shown.LATE, "load generator", "p99 send delay 900 µs (limit 200 µs)")
NOTHING = SimpleNamespace(histograms=[], timeline={"start_ns": np.zeros(0), "p50_ns": np.zeros(0)})
SOUND = {
    "verdict": "SAFE",
    "violations": 0,
    "arrivals": 1_000,
    "drops": 0,
    "grants": 1_000,
    "send_delay_p99_us": 50.0,
    "longest_stall_ms": 0.0,
    "jain": 0.5,
    "strategy": "mutex",
    "args": "",
}


def shown(*, result=NOTHING, checks=(), **row: object) -> ProbeOutcome:
    return outcome_of(SOUND | row, result, [parse_threshold(check) for check in checks])


def time_line(medians_ms: list[float]) -> SimpleNamespace:
    starts = np.arange(len(medians_ms)) * STEP_NS
    return SimpleNamespace(histograms=[], timeline={"start_ns": starts, "p50_ns": np.array(medians_ms) * 1e6})


def test_a_rate_that_is_granted_in_time_holds():
    assert shown() == HELD
    assert shown(verdict="UNDECIDED", grants=980) == HELD
    assert shown(grants=1_010) == HELD, "grants of arrivals before the window count, too"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"verdict": "UNSAFE", "violations": 3}, ProbeOutcome(Shown.UNSAFE, "unsafe", "3 violations")),
        (
            {"send_delay_p99_us": 900.0},
            LATE,
        ),
        (
            {"longest_stall_ms": 250.0},
            ProbeOutcome(Shown.LATE, "load generator", "the load generator stood still for 250 ms"),
        ),
        ({"drops": 7}, ProbeOutcome(Shown.FAILED, "dropped arrivals", "7 arrivals were dropped")),
        ({"grants": 978}, ProbeOutcome(Shown.FAILED, "throughput", "granted 97.8 % of the arrivals")),
        ({"grants": 0}, ProbeOutcome(Shown.FAILED, "throughput", "granted 0 % of the arrivals")),
        # What a late generator offered says nothing about the lock, and a violation outranks all.
        (
            {"send_delay_p99_us": 900.0, "grants": 1},
            LATE,
        ),
        (
            {"verdict": "UNSAFE", "violations": 1, "grants": 1, "drops": 1},
            ProbeOutcome(Shown.UNSAFE, "unsafe", "1 violation"),
        ),
    ],
)
def test_a_rate_that_does_not_hold_has_its_reason(row: dict[str, Any], expected: ProbeOutcome):
    assert shown(**row) == expected


def test_waits_that_grow_show_a_lock_that_is_behind_even_while_it_grants_enough():
    behind = shown(result=time_line([5 + 2 * step for step in range(20)]))
    assert behind == ProbeOutcome(Shown.FAILED, "growing waits", "the median response grew by 2 % of the time")
    assert shown(result=time_line([5.0] * 20)) == HELD
    assert shown(result=time_line([5 + 0.5 * step for step in range(20)])) == HELD, "half a per cent"
    one_pause = [5.0] * 9 + [300.0, 200.0] + [5.0] * 9
    assert shown(result=time_line(one_pause)) == HELD, "a pause of the machine is no trend"


def test_growth_needs_eight_steps_with_grants():
    assert growth([step * STEP_NS for step in range(7)], [1e6 * step + 1 for step in range(7)]) is None
    medians = [0.0, *[1e6 * (step + 1) for step in range(8)]]
    assert growth([step * STEP_NS for step in range(9)], medians) == pytest.approx(0.01)


def test_a_threshold_on_a_figure_of_the_probe_must_hold():
    assert shown(checks=("violations == 0", "jain > 0.4")) == HELD
    assert shown(checks=("jain > 0.9",)) == ProbeOutcome(Shown.FAILED, "jain > 0.9", "jain was 0.500")
    assert shown(checks=("acquire.p99 < 50ms",)).limited_by == "acquire.p99 < 50ms", "without a sample nothing holds"


def test_a_threshold_on_what_the_rate_decides_is_for_the_whole_cell():
    tested = {
        check: of_a_probe(parse_threshold(check)) for check in ("acquire.p99 < 1s", "violations == 0", "jain > 0")
    }
    assert all(tested.values())
    whole = (
        "grants_per_s > 10",
        "safe_grants_per_s > 1",
        "limit_per_s >= 10",
        "grants > 5",
        "trials >= 2",
        "limit_low_per_s > 5",
        "limit_high_per_s < 500",
    )
    assert not any(of_a_probe(parse_threshold(check)) for check in whole)
