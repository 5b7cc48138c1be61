"""Where names break, what is bold, and which lines a chart over time has: all that the markup alone decides."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pybench.analysis.summary import summarise
from pybench.report.charts.dots import LINE_LETTERS, ROW
from pybench.report.html import _breakable
from pybench.report.sections import answer, latency, ranking, timeline
from pybench.report.view import make_view
from tests.report.support import Point, make_run

NOTE = "Bold: best, or statistically tied with it."


def bold(view):
    """How many figures of the ranking are bold, and whether the note says what that means."""
    html = str(ranking.render(view).html)
    entries = [entry for load in ranking.by_load(view) for entry in load.entries]
    assert html.count("<b>") == sum(entry.bold is not None for entry in entries)
    return html.count("<b>"), NOTE in html


@pytest.mark.parametrize("others", [[], ["none"], ["semaphore"]])
def test_a_lock_without_a_rival_is_not_the_best_of_anything(others):
    points = [Point(name, clients, 1, broken=name == "none") for name in ("mutex", *others) for clients in (1, 16)]
    assert bold(make_view(make_run(points, trials=3))) == (0, False)


def test_where_nothing_is_ranked_nobody_reads_what_bold_means():
    assert bold(make_view(make_run(caught=False))) == (0, False)


def test_a_lock_is_the_best_beside_one_that_was_unsafe():
    points = [Point(name, clients, 1, broken=name == "naive") for name in ("mutex", "naive") for clients in (16, 64)]
    assert bold(make_view(make_run(points, trials=3))) == (2, True)


def test_of_one_lock_the_best_retry_policies_are_bold():
    policies = [Point("mutex", 16, 1, retry=retry, cost=cost) for retry, cost in (("none", 45), ("fixed", 90))]
    assert bold(make_view(make_run(policies))) == (1, True)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Take mutex: nothing", "Take mutex: nothing"),
        ("pg-row, or mutex", '<span class="stem">pg-row,</span> or mutex'),
        ("Take a(b=1): it", 'Take <span class="term">a<wbr>(b=1):</span> it'),
        ("a(b=exp(2ms), c=1) wins", '<span class="term">a<wbr>(b=exp(2ms), c=1)</span> wins'),
        ("in 2.34 k grants", 'in <span class="stem">2.34 k</span> grants'),
        ("(2.34 ms)", '<span class="stem">(2.34 ms)</span>'),
        ("ahead (3,511 grants/s, 2 loads)", "ahead (3,511 grants/s, 2 loads)"),
        ("<b>(<i>)", '<span class="term">&lt;b&gt;<wbr>(&lt;i&gt;)</span>'),
        ("<script> pg-<b>", '&lt;script&gt; pg-&lt;b&gt;'),
        ("a-b" * 20, "a-b" * 20),
    ],
)  # fmt: skip
def test_in_a_sentence_a_name_and_a_figure_with_its_unit_stay_together(text, marked):
    assert str(_breakable(text)) == marked


def test_the_trials_of_a_lock_are_faint_behind_their_median():
    run = make_run([Point("mutex", 4, 1), Point("fair", 4, 1)], trials=3, steps=6)
    run.timeline["grants"] = 100 * run.timeline["trial"]
    section = timeline.render(make_view(run))
    trials, medians = section.figures[0].data[:2], section.figures[0].data[2:4]
    assert {trace["meta"] for trace in trials} == {trace["meta"] for trace in medians} == {"mutex", "fair"}
    assert {(trace["line"]["width"], trace["opacity"], trace["y"].count(None)) for trace in trials} == {(1, 0.25, 3)}
    assert {(trace["line"]["width"], trace.get("opacity"), *trace["y"]) for trace in medians} == {
        (2, None, *[200.0] * 6)
    }
    assert timeline.MEDIANS in str(section.html)


def test_a_single_trial_is_its_own_line():
    section = timeline.render(make_view(make_run([Point("mutex", 4, 1)], trials=1, steps=6)))
    assert [trace["mode"] for trace in section.figures[0].data] == ["lines", "markers"]
    assert timeline.MEDIANS not in str(section.html)


def test_names_too_long_to_stand_beside_their_dots_stand_above_them_in_lines_that_fit():
    args = f"fanout=sequential, nodes=5, name={'endless' * 12}"
    points = [Point("mutex", 16, 1), Point("redlock", 16, 1, args=args, broken=True)]
    figure = latency.render(make_view(make_run(points, trials=2))).figures[0]
    above = {name["name"]: name["text"] for name in figure.layout["annotations"]}
    assert above.pop("mutex") == "mutex"
    (struck,) = above.values()
    lines = re.fullmatch("<s>(.*)</s>", struck)[1].split("<br>")
    assert max(map(len, lines)) <= LINE_LETTERS
    assert lines[:2] == ["redlock(fanout=sequential, nodes=5,", f"name={'endless' * 12}"[:LINE_LETTERS]]
    assert figure.height > 2 * (ROW + 15 * len(lines) - 15)


def test_where_waits_place_the_locks_of_an_open_loop_they_are_shown_and_the_best_is_bold():
    run = make_run([Point(lock, 16, 1) for lock in ("mutex", "fair-queue")])
    waits = {"mutex": 2_100e3, "fair-queue": 104e3}
    trials = run.trials.assign(rate_per_s=1_000.0, acquire_p99_us=float("nan"), acquire_p999_us=float("nan"))
    trials["grants_per_s"] = 1_000.0
    trials["longest_wait_us"] = trials["strategy"].map(waits) * (1 + trials["block"] / 1_000)
    summary = summarise(trials)
    view = make_view(replace(run, trials=trials, summary=summary))
    told = re.sub(r"<[^>]*>", "", str(answer.render(view).html))
    assert "Take fair-queue: longest wait 105 ms, mutex&#39;s is 2.11 s." in told
    assert "Longest wait of fair-queue" in told
    assert "too few grants for a p99" in told
    assert [entry.bold for load in ranking.by_load(view) for entry in load.entries] == ["longest_wait_us", None]
