"""The section of loads in stages, and the length of the steps of the time line."""

from __future__ import annotations

import dataclasses
import math
import re

import pandas as pd
import pytest

from pybench.report import page
from pybench.report.markdown import build as markdown
from pybench.report.sections import stages, timeline
from pybench.report.view import View, make_view
from tests.report.support import Point, make_run

RAMP = "0 -> 64 over 1s, 64 for 2s, 0 over 1s"
OTHER = "0 -> 500/s over 4s"
POINTS = [Point(name, 64, 1, stages=RAMP, cost=cost) for name, cost in (("mutex", 47.0), ("naive", 62.0))]
OPENED = [Point(name, 16, 1, stages=OTHER, rate_per_s=500.0) for name in ("mutex", "naive")]


def view_of(points: list[Point], **changed: object) -> View:
    return make_view(make_run(points, steps=40, **changed))


def without_values(view: View, column: str, cell: str | None = None) -> View:
    steps = view.run.timeline.copy()
    steps.loc[slice(None) if cell is None else steps["cell"] == cell, column] = math.nan
    return dataclasses.replace(view, run=dataclasses.replace(view.run, timeline=steps))


def traces(figure, name: str) -> list[dict]:
    return [trace for trace in figure.data if trace["name"] == name]


def test_a_run_with_steady_loads_has_no_such_section():
    assert stages.render(make_view(make_run())) is None


def test_the_parts_of_a_panel_stand_above_each_other_over_one_time():
    (figure,) = stages.render(view_of(POINTS)).figures
    axes = {name: given for name, given in figure.layout.items() if name.startswith("yaxis")}
    assert [axes[name]["title"]["text"] for name in ("yaxis4", "yaxis3", "yaxis2", "yaxis")] == [
        "clients offered",
        "grants/s",
        "p50 response",
        "p99 response",
    ]
    lows, highs = zip(*(axes[name]["domain"] for name in ("yaxis4", "yaxis3", "yaxis2", "yaxis")), strict=True)
    assert (highs[0], lows[-1]) == (1.0, 0.0)
    assert all(above > below for above, below in zip(lows, highs[1:], strict=False)), "no part covers another"
    assert figure.layout["xaxis"]["range"] == [0.0, 4.0]
    (area,) = traces(figure, "offered")
    assert (area["fill"], area["yaxis"]) == ("tozeroy", "y4")
    assert {trace["yaxis"] for trace in traces(figure, "mutex")} == {"y3", "y2", "y"}


def test_what_was_offered_and_granted_is_drawn_at_the_middle_of_each_step():
    (figure,) = stages.render(view_of(POINTS, trials=1)).figures
    (area,) = traces(figure, "offered")
    assert area["x"][:2] == [0.05, 0.15]
    assert area["y"][:2] == pytest.approx([3.2, 9.6])
    assert area["customdata"][20] == "64.0 clients"
    view = view_of(POINTS, trials=1)
    grants = view.run.timeline.query("cell == @POINTS[0].id").sort_values("start_ns")["grants"]
    (line,) = [trace for trace in traces(figure, "mutex") if trace["yaxis"] == "y3"]
    assert line["y"] == pytest.approx((grants * 10.0).tolist(), rel=1e-3)


def test_a_line_is_the_median_over_the_trials():
    view = view_of(POINTS, trials=3)
    (figure,) = stages.render(view).figures
    (line,) = [trace for trace in traces(figure, "mutex") if trace["yaxis"] == "y3"]
    at_2_s = view.run.timeline.query("cell == @POINTS[0].id and start_ns == 2_000_000_000")["grants"]
    assert line["y"][20] == pytest.approx(at_2_s.median() * 10, rel=1e-3)
    assert len(at_2_s) == 3


def test_a_step_without_a_quantile_is_a_gap_and_a_measure_without_any_has_no_part():
    view = view_of(POINTS)
    (figure,) = stages.render(view).figures
    (line,) = [trace for trace in traces(figure, "mutex") if trace["yaxis"] == "y"]
    assert line["y"][0] is None
    assert line["customdata"][0] == "n/a"
    assert "Here no step has a p99." not in stages.render(view).html
    section = stages.render(without_values(view, "p99_ns"))
    assert "Here no step has a p99." in section.html
    (figure,) = section.figures
    titles = [given["title"]["text"] for name, given in figure.layout.items() if name.startswith("yaxis")]
    assert titles == ["clients offered", "grants/s", "p50 response"]
    assert {trace["yaxis"] for trace in figure.data} == {"y3", "y2", "y"}
    assert "p99 response n/a" in figure.alt


def test_each_load_has_a_panel_with_its_own_unit():
    section = stages.render(view_of([*POINTS, *OPENED]))
    titles = [figure.title for figure in section.figures]
    assert titles == [f"stages ({RAMP})", "16 clients, stages (0 -> 500/s over 4s)"]
    assert section.figures[1].layout["yaxis4"]["title"]["text"] == "arrivals/s offered"
    assert "Offered load in arrivals/s, 0/s -> 500/s over 4s" in section.figures[1].alt


def test_the_locks_of_a_closed_loop_share_a_panel_in_a_run_that_has_an_open_loop_too():
    view = view_of([Point(name, 16, 1, rate_per_s=rate) for name in ("mutex", "naive") for rate in (None, 500.0)])
    panels = [(dict(conditions)["rate_per_s"], len(cells)) for conditions, cells in view.panels()]
    assert panels == [(None, 2), (500.0, 2)]


def test_a_run_of_one_lock_has_its_lines_under_their_own_loads():
    section = stages.render(view_of([POINTS[0], Point("mutex", 32, 1, stages="32 for 4s")]))
    assert [figure.title for figure in section.figures] == [RAMP, "32 for 4s"]


def test_a_cell_with_a_steady_load_beside_is_left_out_and_one_without_a_time_line_is_named():
    view = view_of([*POINTS, Point("mutex", 8, 1)])
    (figure,) = stages.render(view).figures
    assert figure.missing == []
    (figure,) = stages.render(without_values(view, "offered", POINTS[1].id)).figures
    assert figure.missing == ["naive"]


def test_the_table_has_the_figures_of_each_stage():
    text = stages.render(view_of(POINTS)).html
    rows = re.findall(r"<tr.*?</tr>", text, flags=re.S)
    told = [re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", row)).strip() for row in rows]
    found = [
        re.search(r"(\S+ -&gt; \S+ over \S+|\S+ for \S+) (\S+)", text).groups() for text in told if "mutex" in text
    ]
    assert found == [("0 -&gt; 64 over 1s", "32.0"), ("64 for 2s", "64.0"), ("64 -&gt; 0 over 1s", "32.0")]


def test_many_steps_are_averaged_so_that_the_report_stays_small(monkeypatch):
    view = view_of(POINTS)
    whole = sum(len(trace["x"]) for figure in stages.render(view).figures for trace in figure.data)
    monkeypatch.setattr(stages, "POINTS", 60)
    section = stages.render(view)
    assert sum(len(trace["x"]) for figure in section.figures for trace in figure.data) <= whole / 4
    assert "4 steps are averaged into one point" in section.html
    (area,) = traces(section.figures[0], "offered")
    assert area["x"][0] == 0.2
    assert area["y"][0] == pytest.approx(12.8)


def test_the_report_and_its_text_name_such_cells_without_the_clients_that_stages_set():
    run = make_run([*POINTS, Point("mutex", 8, 1), Point("naive", 8, 1)], steps=40)
    text = markdown(run)
    assert "stages (0 -\\> 64 over 1s, 64 for 2s, 0 over 1s)" in text
    assert "64 clients" not in text
    assert page.build(run).count('id="stages"') == 1


def widened(view: View, factor: int) -> View:
    """The same run with steps that are longer, and so have more grants each."""
    steps = view.run.timeline.copy()
    steps["start_ns"] *= factor
    steps["grants"] *= factor
    trials = view.run.trials.assign(window_s=view.run.trials["window_s"] * factor)
    return make_view(dataclasses.replace(view.run, timeline=steps, trials=trials))


def test_grants_of_longer_steps_are_given_per_100_ms_too():
    usual = make_view(make_run(steps=20))
    longer = widened(usual, 4)
    (before, after) = (timeline.render(view).figures[0] for view in (usual, longer))
    for one, other in zip(before.data, after.data, strict=True):
        assert other["y"] == one["y"]
        assert [None if x is None else round(x / 4, 3) for x in other["x"]] == pytest.approx(one["x"], abs=2e-3)
    assert after.layout["xaxis"]["range"] == [0.0, 8.0]
    assert "Steps of a long window take up to 400ms." in timeline.render(longer).html
    assert "long window" not in timeline.render(usual).html


def test_grants_a_second_of_longer_steps_are_the_same_as_those_of_short_ones():
    usual = view_of(POINTS)
    (before, after) = (stages.render(view).figures[0] for view in (usual, widened(usual, 4)))
    for one, other in zip(before.data, after.data, strict=True):
        assert other["y"] == one["y"]
        assert [round(x / 4, 4) for x in other["x"]] == pytest.approx(one["x"], abs=1e-3)


def test_a_window_without_a_step_has_neither_section():
    for view in (make_view(make_run()), view_of(POINTS)):
        empty = dataclasses.replace(view, run=dataclasses.replace(view.run, timeline=view.run.timeline.iloc[:0]))
        assert timeline.render(empty) is None
        assert stages.render(empty) is None


def test_the_step_is_the_smallest_distance_within_a_trial():
    starts = [("a", 1, 400), ("a", 1, 0), ("a", 1, 200), ("a", 2, 0), ("b", 1, 0), ("b", 1, 100)]
    steps = pd.DataFrame(
        [(cell, trial, ms * 1_000_000) for cell, trial, ms in starts], columns=["cell", "trial", "start_ns"]
    )
    assert (timeline.step_lengths_ns(steps) / 1e6).tolist() == [200, 200, 200, 100, 100, 100]
