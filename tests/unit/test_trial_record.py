from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import numpy as np
import pytest
from support.trials import FakeResult, cell, histogram, record, totals, violation

from pybench.matrix.cells import CELL_COLUMNS
from pybench.matrix.values import Distribution, Retry
from pybench.records import schema
from pybench.records.parts import OF_CLIENTS


def row(of=None, result=None, **fields: object):
    return record(of, result=result, **fields).row


def test_a_row_says_which_cell_it_is_of():
    of = cell(
        "mutex",
        args=(("fanout", "sequential"), ("nodes", 5)),
        hold=Distribution.parse("exp(2ms)"),
        retry=Retry.parse("fixed(base=2ms)"),
        ttl_ms=50,
        poll="spin",
    )
    found = row(of)
    assert found["args"] == "fanout=sequential, nodes=5"
    assert (found["hold"], found["retry"], found["server"]) == ("exp(2ms)", "fixed(base=2ms)", "redis 8.0 (path)")
    assert (found["ttl_ms"], found["poll"], found["rate_per_s"]) == (50, "spin", None)
    assert set(found) == set(schema.TRIAL_COLUMNS)


def test_the_start_is_recorded_in_utc():
    noon_in_delhi = datetime(2026, 1, 2, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert row(started_at=noon_in_delhi)["started_at"] == "2026-01-02T06:30:00.000+00:00"


def test_a_stopped_trial_is_interrupted():
    assert row()["status"] == "complete"
    assert row(result=FakeResult(stopped=True))["status"] == "interrupted"


def test_rates_are_of_the_window():
    found = row(result=FakeResult(totals=totals(grants=3_000, window_ns=1_500_000_000)))
    assert (found["grants_per_s"], found["safe_grants_per_s"], found["window_s"]) == (2_000, 2_000, 1.5)


def test_an_unsafe_trial_has_no_safe_grants():
    found = row(result=FakeResult(totals=totals(double_grants=3, lease_overruns=2, outlived=9)))
    assert (found["safe_grants_per_s"], found["violations"], found["verdict"]) == (0, 5, "UNSAFE")
    assert found["promise_broken"] is True
    assert found["bound_per_million"] is None


def test_an_inversion_is_a_violation_of_a_lock_that_promises_order_and_a_figure_of_one_that_does_not():
    seen = FakeResult(
        totals=totals(fifo_inversions=4), violations=[violation(kind="fifo-inversion"), violation(kind="double-grant")]
    )
    queue, stream = record(cell("fair-queue"), result=seen), record(cell("fair"), result=seen)
    assert (queue.row["promises"], queue.row["verdict"], queue.row["violations"]) == ("fifo", "UNSAFE", 4)
    assert [row["kind"] for row in queue.violations] == ["fifo-inversion", "double-grant"]
    assert (stream.row["promises"], stream.row["verdict"], stream.row["violations"]) == ("", "SAFE", 0)
    assert stream.row["fifo_inversions"] == 4
    assert [row["kind"] for row in stream.violations] == ["double-grant"]


def test_where_no_place_is_acknowledged_there_is_no_figure_of_inversions():
    assert row(cell("mutex"))["fifo_inversions"] is None
    assert row(cell("fair"))["fifo_inversions"] == row(cell("fair-queue"))["fifo_inversions"] == 0


def test_a_lock_that_promises_nothing_is_undecided():
    found = row(cell("none"))
    assert (found["exclusion"], found["verdict"], found["safe_grants_per_s"]) == ("nothing", "UNDECIDED", None)


def test_costs_are_per_grant():
    counted = totals(
        grants=1_000,
        attempts=4_000,
        refused_attempts=3_000,
        commands=6_000,
        bytes_out=70_000,
        bytes_in=30_000,
        client_cpu_ns=5_000_000,
        all_grants=2_000,
        no_quorum=20,
        renewals=1_500,
        orphan_ns=2_500_000,
    )
    found = row(result=FakeResult(totals=counted), server_cpu_us=8_000.0, wall_s=4.0)
    assert (found["no_quorum"], found["no_quorum_per_1000"]) == (20, 5)
    assert (found["renewals"], found["renewals_per_grant"]) == (1_500, 1.5)
    assert found["orphan_s"] == 0.0025
    assert (found["attempts_per_grant"], found["commands_per_grant"], found["bytes_per_grant"]) == (4, 6, 100)
    assert found["contention_rate"] == 0.75
    assert found["client_cpu_us_per_grant"] == 5
    assert found["server_cpu_us_per_grant"] == 4
    assert found["server_cpu_share"] == 0.002


def test_the_servers_own_count_of_commands_is_kept():
    assert row(server_calls={"set": 7, "evalsha": 3})["commandstats"] == '{"evalsha": 3, "set": 7}'
    assert row()["commandstats"] is None


def test_without_a_reading_of_the_server_its_figures_are_n_a():
    found = row()
    assert found["server_cpu_us_per_grant"] is None
    assert found["server_cpu_share"] is None
    assert row(server_cpu_us=5.0)["server_cpu_share"] is None


def test_without_a_grant_what_is_per_grant_is_n_a():
    idle = dict.fromkeys(OF_CLIENTS, np.zeros(2, dtype=np.uint64))
    found = row(result=FakeResult(totals=totals(grants=0), histograms=[], clients=idle, jain=None), server_cpu_us=5.0)
    per_grant = [name for name in found if name.endswith("_per_grant") and name not in CELL_COLUMNS]
    assert len(per_grant) == 6
    assert {found[name] for name in [*per_grant, "jain", "wait_std_us", "longest_wait_us", "contention_rate"]} == {None}
    assert (found["verdict"], found["grants_per_s"]) == ("UNDECIDED", 0)


def test_a_trial_that_ended_before_its_window_has_no_rate():
    found = row(result=FakeResult(totals=totals(grants=0, window_ns=0), stopped=True), round_trip_us=50.0)
    assert (found["grants_per_s"], found["utilisation"], found["efficiency"]) == (None, None, None)


def test_fairness_is_over_clients():
    clients = {
        **dict.fromkeys(OF_CLIENTS, np.zeros(3, dtype=np.uint64)),
        "grants": np.array([10, 30, 0], dtype=np.uint64),
        "attempts": np.array([10, 30, 1], dtype=np.uint64),
        "wait_sum_ns": np.array([100_000, 900_000, 50_000], dtype=np.uint64),
    }
    counted = totals(grants=40, longest_wait_ns=70_000, longest_streak=6, overtakes=2)
    found = row(result=FakeResult(totals=counted, clients=clients, jain=0.53))
    assert found["jain"] == 0.53
    assert found["wait_std_us"] == 10
    assert (found["longest_wait_us"], found["longest_streak"], found["overtakes"]) == (70, 6, 2)


def test_utilisation_and_efficiency_measure_against_what_one_key_can_do():
    # 1,000 grants of 1 ms in 2 s, with 0.5 ms a round trip: 500/s of at most 667/s.
    counted = totals(grants=1_000, nominal_hold_ns=1_000_000_000)
    found = row(result=FakeResult(totals=counted), round_trip_us=500.0)
    assert (found["utilisation"], found["efficiency"]) == (0.5, 0.75)
    assert row(result=FakeResult(totals=counted))["efficiency"] is None
    several = row(cell(keys=10), result=FakeResult(totals=counted), round_trip_us=500.0)
    assert (several["utilisation"], several["efficiency"]) == (0.05, None)


def test_arrivals_are_n_a_in_a_closed_loop():
    counted = totals(arrivals=900, drops=4)
    assert row(result=FakeResult(totals=counted))["arrivals"] is None
    found = row(cell(rate_per_s=1000.0, arrival_process="poisson", max_in_flight=64), result=FakeResult(totals=counted))
    assert (found["arrivals"], found["drops"]) == (900, 4)


def part(phase, outcome, values):
    return SimpleNamespace(phase=phase, outcome=outcome, count=len(values), hdr=histogram(values))


def test_latencies_are_of_grants_and_a_release_is_one_however_it_ended():
    parts = [
        part("response", "granted", [1_000_000] * 30),
        part("response", "timeout", [9_000_000] * 3_000),
        part("release", "granted", [2_000] * 20),
        part("release", "lost", [8_000] * 40),
    ]
    found = row(result=FakeResult(histograms=parts))
    assert found["acquire_p50_us"] == pytest.approx(1_000, rel=1e-3)
    assert found["acquire_p99_us"] is None
    assert found["release_p50_us"] == pytest.approx(8, rel=1e-3)
    assert found["service_p50_us"] is None


def test_latency_rows_keep_every_outcome_lossless():
    parts = [part("response", "granted", [1_000]), part("response", "refused", [5_000])]
    kept = record(result=FakeResult(histograms=parts)).latency
    assert [(one["phase"], one["outcome"], one["count"]) for one in kept] == [
        ("response", "granted", 1),
        ("response", "refused", 1),
    ]
    assert kept[1]["hdr"] == parts[1].hdr


def test_a_step_of_the_time_line_with_too_few_grants_has_no_quantile():
    columns = {
        "start_ns": [0, 100, 200],
        "grants": [1_000, 20, 19],
        "refused": [0, 1, 0],
        "errors": [0, 0, 2],
        "p50_ns": [5, 6, 7],
        "p99_ns": [8, 9, 10],
    }
    arrays = {name: np.array(values, dtype=np.uint64) for name, values in columns.items()}
    steps = record(result=FakeResult(timeline=arrays)).timeline
    assert [(step["p50_ns"], step["p99_ns"]) for step in steps] == [(5, 8), (6, None), (None, None)]
    assert [(step["start_ns"], step["refused"], step["errors"]) for step in steps] == [
        (0, 0, 0),
        (100, 1, 0),
        (200, 0, 2),
    ]


def test_a_violation_is_kept_with_its_sentence():
    (kept,) = record(result=FakeResult(violations=[violation()])).violations
    assert kept["sentence"].startswith("client 7 was granted key 1")
    assert kept["schema"] == 7
    assert kept["second_ended_ns"] is None
