"""The limit of a cell over its searches, its curve, and the knee."""

from __future__ import annotations

import pandas as pd
import pytest

from pybench.analysis.limits import LoadPoint, curve_of, interval_text, knee_of, limit_columns
from pybench.analysis.verdicts import Verdict

NOTHING = dict.fromkeys(("limit_per_s", "limit_low_per_s", "limit_high_per_s", "limited_by"))


def trials(*searches: tuple[float | None, float | None, str | None]) -> pd.DataFrame:
    columns = ["limit_per_s", "limit_high_per_s", "limited_by"]
    frame = pd.DataFrame(searches, columns=columns).astype(dict.fromkeys(columns[:2], "float64"))
    return frame.assign(cell="mutex", trial=range(1, len(searches) + 1))


def test_the_limit_is_the_median_of_the_searches_and_its_interval_covers_their_brackets():
    searches = trials((100, 105, "throughput"), (90, 99, "throughput"), (110, 115, "load generator"))
    assert limit_columns(searches, Verdict.SAFE) == {
        "limit_per_s": 100.0,
        "limit_low_per_s": 90.0,
        "limit_high_per_s": 115.0,
        "limited_by": "throughput",
    }


def test_a_single_search_has_its_own_bracket():
    found = limit_columns(trials((80, 84, "throughput")), Verdict.UNDECIDED)
    assert (found["limit_low_per_s"], found["limit_per_s"], found["limit_high_per_s"]) == (80.0, 80.0, 84.0)
    assert interval_text(found) == "80.0 to 84.0"


@pytest.mark.parametrize("verdict", [Verdict.UNSAFE, Verdict.VOID])
def test_an_unsafe_lock_has_no_limit(verdict: Verdict):
    assert limit_columns(trials((80, 84, "throughput")), verdict) == NOTHING


def test_a_limit_that_most_searches_did_not_find_is_none():
    lost = (None, None, "throughput")
    assert limit_columns(trials((80, 84, "throughput"), lost), Verdict.SAFE) == NOTHING
    assert (
        limit_columns(trials((80, 84, "throughput"), lost, (80, 84, "throughput")), Verdict.SAFE)["limit_per_s"] == 80
    )


def test_a_search_that_no_rate_stopped_leaves_the_interval_open():
    found = limit_columns(trials((80, 84, "throughput"), (90, None, None)), Verdict.SAFE)
    assert found["limit_high_per_s"] is None
    assert interval_text(found) == "at least 80.0"


def points(*loads: tuple[float, float, float]) -> list[LoadPoint]:
    return [LoadPoint(share, grants, grants, 1.0, 1.0, system, 3) for share, grants, system in loads]


def test_the_knee_is_the_load_of_the_highest_power():
    # An M/M/1 queue has its highest power at half of its capacity.
    queue = points(*((share, 100 * share, 1e4 / (1 - share * 0.999)) for share in (0.3, 0.5, 0.8, 0.95, 1.0)))
    knee = knee_of(queue)
    assert knee is not None
    assert knee.share == 0.5


def test_a_latency_that_does_not_grow_has_no_knee_and_neither_have_loads_without_a_figure():
    flat = points(*((share, 100 * share, 1e4) for share in (0.3, 0.6, 0.8, 0.95, 1.0)))
    assert knee_of(flat) is None
    assert knee_of([*flat[:2], LoadPoint(0.8, 80.0, None, None, None, None, 1)]) is None
    assert knee_of([]) is None


def probe(trial: int, phase: str, rate: float, p50: float, shown: str = "held") -> dict[str, object]:
    row = {"cell": "mutex", "trial": trial, "phase": phase, "rate_per_s": rate, "shown": shown, "grants_per_s": rate}
    return row | {"acquire_p50_us": p50, "acquire_p99_us": None, "mean_in_system_us": p50}


def test_the_curve_has_the_medians_over_the_trials_at_each_share_of_their_own_limits():
    searches = trials((100, 105, "throughput"), (200, 210, "throughput"), (None, None, None))
    probes = pd.DataFrame(
        [
            probe(1, "bisect", 100, 7),
            *(probe(1, "confirm", 100, 40) for _ in range(3)),
            probe(1, "confirm", 103, 9, "failed"),
            probe(1, "curve", 30, 10),
            probe(1, "curve", 95, 30),
            *(probe(2, "confirm", 200, 60) for _ in range(3)),
            probe(2, "curve", 60, 20),
            probe(2, "curve", 190, 50),
            probe(3, "confirm", 10, 1),
        ]
    )
    found = curve_of(probes, searches, "mutex")
    assert [(one.share, one.rate_per_s, one.p50_us, one.probes) for one in found] == [
        (0.3, 45.0, 15.0, 2),
        (0.95, 142.5, 40.0, 2),
        (1.0, 150.0, 50.0, 6),
    ]
    assert {one.p99_us for one in found} == {None}
    assert curve_of(probes, searches, "other") == []
    assert curve_of(probes[probes["phase"] != "curve"], searches, "mutex") == [], "a search alone has no curve"
