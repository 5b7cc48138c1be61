"""What a chart draws as its lines: the locks, or the values of the axis that varies where a run has a single lock."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from pybench.report.sections import distribution, latency, throughput
from pybench.report.view import make_view
from tests.report.support import Point, make_run

RETRIES = ("none", "fixed", "exponential", "full-jitter", "equal-jitter", "decorrelated-jitter")


def test_one_lock_under_six_retry_policies_is_one_panel_with_six_lines():
    """Charts colour the axis that varies: a run with a single lock must not be a panel for each line."""
    points = [Point("mutex", n, 1, retry=retry, cost=40 + i) for i, retry in enumerate(RETRIES) for n in (1, 16, 64)]
    view = make_view(make_run(points))
    assert [line.label for line in view.lines] == ["no retry", *RETRIES[1:]]
    assert len({(line.colour, line.shape, line.dash) for line in view.lines}) == len(RETRIES)
    figures = throughput.render(view).figures
    assert len(figures) == 1
    assert {trace["meta"] for trace in figures[0].data} == {"no retry", *RETRIES[1:]}
    assert all(f"{line.label}: " in figures[0].alt for line in view.lines)


def test_of_several_locks_the_locks_are_the_lines_whatever_else_varies():
    points = [Point(lock, 16, 1, retry=retry) for lock in ("mutex", "fair") for retry in RETRIES]
    view = make_view(make_run(points))
    assert [line.label for line in view.lines] == ["mutex", "fair"]
    assert view.line_axis is None


def test_clients_without_a_lock_are_drawn_beside_a_single_lock_as_what_they_are():
    points = [Point(lock, 16, 1, retry=retry) for lock in ("none", "mutex") for retry in RETRIES[:2]]
    view = make_view(make_run(points))
    assert [line.label for line in view.lines] == ["none (retry none)", "none (retry fixed)", "no retry", "fixed"]


def test_the_distribution_says_how_many_waits_no_curve_shows():
    run = make_run([Point("mutex", 64, 1)], trials=2)
    assert "not over when a window closed" not in str(distribution.render(make_view(run)).html)
    waits = run.latency.assign(outcome="waiting", count=31)
    with_waits = replace(run, latency=pd.concat([run.latency, waits], ignore_index=True))
    told = str(distribution.render(make_view(with_waits)).html)
    assert "Only grants are shown: 62 waits were not over when a window closed" in told


def test_latency_is_drawn_over_the_offered_rate_where_that_has_more_values_than_the_clients():
    points = [
        Point(lock, n, 8, rate_per_s=rate) for lock in ("mutex", "fair") for n in (16, 64) for rate in (1e3, 2e3, 4e3)
    ]
    view = make_view(make_run(points, trials=1))
    assert view.load_axis == "rate_per_s"
    figures = latency.render(view).figures
    assert {figure.title.split(" · ")[1] for figure in figures} == {"16 clients", "64 clients"}
    markers = [trace["x"] for trace in figures[0].data if trace.get("mode") == "markers"]
    assert markers == [[1e3, 2e3, 4e3]] * 2


def test_added_round_trips_of_one_length_each_are_the_horizontal_axis_in_milliseconds():
    lengths = ("20ms", "0", "500us")
    points = [Point(lock, 16, 1, rtt=rtt) for lock in ("mutex", "redlock") for rtt in lengths]
    view = make_view(make_run(points))
    assert view.load_axis == "rtt"
    (figure,) = throughput.render(view).figures
    assert figure.layout["xaxis"]["title"] == {"text": "rtt (ms)"}
    assert [trace["x"] for trace in figure.data if trace.get("mode") == "markers"] == [[0.0, 0.5, 20.0]] * 2
    assert "rtt 500us" in figure.alt


def test_added_round_trips_that_are_drawn_or_differ_by_server_are_panels():
    points = [Point(lock, n, 1, rtt=rtt) for lock in ("mutex", "fair") for n in (1, 8) for rtt in ("0", "exp(1ms)")]
    view = make_view(make_run(points))
    assert view.load_axis == "concurrency"
    assert len(throughput.render(view).figures) == 2
    by_server = [Point(lock, 8, 1, rtt=rtt) for lock in ("mutex", "fair") for rtt in ("0", "per-server(1ms, 2ms)")]
    assert make_view(make_run(by_server)).load_axis is None
