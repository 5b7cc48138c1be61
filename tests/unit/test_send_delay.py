from __future__ import annotations

import pandas as pd
import pytest

from pybench.analysis.send_delay import late_cells, late_reason, under_test_is_limit

IN_TIME = {
    "arrivals": 1_000,
    "drops": 0,
    "under_test_is_limit": False,
    "send_delay_p99_us": 50.0,
    "acquire_us": 1_000.0,
}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"drops": 20},
        {"drops": 900, "under_test_is_limit": True},
        {"send_delay_p99_us": 200.0},
        {"send_delay_p99_us": 499.0, "acquire_us": 10_000.0},
        {"send_delay_p99_us": None},
        {"send_delay_p99_us": 200.0, "acquire_us": None},
    ],
)
def test_in_time(fields):
    assert late_reason(**{**IN_TIME, **fields}) is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"drops": 21}, "started 979 of 1,000 arrivals"),
        ({"send_delay_p99_us": 201.0}, "p99 send delay 201 µs (limit 200 µs)"),
        ({"send_delay_p99_us": 501.0, "acquire_us": 10_000.0}, "(limit 500 µs)"),
        ({"send_delay_p99_us": 201.0, "acquire_us": None}, "(limit 200 µs)"),
        ({"send_delay_p99_us": 201.0, "drops": 900, "under_test_is_limit": True}, "p99 send delay"),
    ],
)
def test_late(fields, reason):
    assert reason in late_reason(**{**IN_TIME, **fields})


@pytest.mark.parametrize(
    ("share", "utilisation", "contention", "limit"),
    [
        (0.95, 0.1, 0.0, True),
        (0.1, 0.97, 0.0, True),
        (0.1, 0.1, 0.8, True),
        (0.5, 0.5, 0.3, False),
        (None, None, None, False),
    ],
)
def test_the_limit_is_a_busy_server_or_a_busy_lock(share, utilisation, contention, limit):
    found = under_test_is_limit(server_cpu_share=share, utilisation=utilisation, contention_rate=contention)
    assert found is limit


def test_arrivals_that_wait_for_an_added_round_trip_do_not_wait_for_the_generator():
    idle = {"server_cpu_share": 0.1, "utilisation": 0.1, "contention_rate": 0.0}
    assert under_test_is_limit(**idle, rtt_ms=20.0)
    assert not under_test_is_limit(**idle, rtt_ms=0.0)


def trial(**fields: object):
    usual = {
        "cell": "a",
        "status": "complete",
        "arrivals": 1_000.0,
        "drops": 0.0,
        "server_cpu_share": 0.2,
        "utilisation": 0.1,
        "contention_rate": 0.1,
        "send_delay_p99_us": 50.0,
        "acquire_p50_us": 500.0,
        "acquire_p99_us": 1_000.0,
    }
    return {**usual, **fields}


def test_a_cell_is_late_by_the_median_of_its_trials():
    once = pd.DataFrame([trial(), trial(), trial(send_delay_p99_us=5_000.0)])
    mostly = pd.DataFrame([trial(), trial(send_delay_p99_us=5_000.0), trial(send_delay_p99_us=5_000.0)])
    assert late_cells(once) == {}
    assert list(late_cells(mostly)) == ["a"]


def test_without_a_p99_the_p50_says_what_is_allowed():
    nothing = float("nan")
    assert (
        late_cells(pd.DataFrame([trial(send_delay_p99_us=800.0, acquire_p99_us=nothing, acquire_p50_us=20_000.0)]))
        == {}
    )
    assert late_cells(pd.DataFrame([trial(send_delay_p99_us=800.0, acquire_p99_us=nothing, acquire_p50_us=nothing)]))


def test_waits_that_are_not_over_are_as_long_as_they_have_been():
    """The lock, not the generator: 5,000 arrivals a second at a lock that grants 700."""
    nothing = float("nan")
    quantiles = {"acquire_p99_us": nothing, "acquire_p50_us": nothing, "acquire_p99_at_least_us": 399_000.0}
    assert late_cells(pd.DataFrame([trial(send_delay_p99_us=6_700.0, **quantiles)])) == {}
    assert late_cells(pd.DataFrame([trial(send_delay_p99_us=25_000.0, **quantiles)]))


def test_closed_loops_and_interrupted_trials_are_never_late():
    nothing = float("nan")
    frame = pd.DataFrame(
        [
            trial(cell="closed", arrivals=nothing, drops=nothing, send_delay_p99_us=9_000.0),
            trial(cell="interrupted", status="interrupted", send_delay_p99_us=9_000.0),
        ]
    )
    assert late_cells(frame) == {}
