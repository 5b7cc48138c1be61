"""A cell without a figure has a mark in the chart at its place, with the text n/a."""

from __future__ import annotations

import math
from dataclasses import replace

from pybench.report.page import build
from pybench.report.sections import distribution, latency, timeline
from pybench.report.view import make_view
from tests.report.browsing import needs_chromium, until
from tests.report.support import Point, make_run

SHOWN = "[...document.querySelectorAll('#latency-p999-0 .annotation-text')].map(one => one.textContent)"


def run_with_gaps(*loads: int):
    """Of mutex at its first load p99.9 is n/a; of none it is 0, which a logarithmic axis has no place for."""
    points = [Point(name, n, 1, cost=cost) for name, cost in (("none", 5), ("mutex", 47), ("fair", 60)) for n in loads]
    run = make_run(points, trials=2)
    for frame in (run.trials, run.summary):
        of_mutex = (frame["strategy"] == "mutex") & (frame["concurrency"] == loads[0])
        frame.loc[of_mutex, "acquire_p999_us"] = None
        frame.loc[frame["strategy"] == "none", "acquire_p999_us"] = 0.0
    return run


def panel(run):
    figures = latency.render(make_view(run)).figures
    return next(one for one in figures if one.id == "latency-p999-0")


def test_a_panel_names_the_load_and_the_lines_of_its_gaps():
    found = panel(run_with_gaps(1, 16))
    gaps = {
        gap["x"]: {group["text"]: [one["label"] for one in group["series"]] for group in gap["groups"]}
        for gap in found.layout["meta"]["gaps"]
    }
    assert gaps == {1: {"0": ["none"], "n/a": ["mutex"]}, 16: {"0": ["none"]}}
    assert "mutex: n/a at 1 client" in found.alt


def test_a_panel_without_gaps_has_no_room_for_them():
    whole = make_run([Point("mutex", n, 1) for n in (1, 16)], trials=2)
    figure = latency.render(make_view(whole)).figures[0]
    assert "meta" not in figure.layout


def test_the_scale_keeps_room_below_the_lowest_figure():
    found = panel(run_with_gaps(1, 16))
    low, high = found.layout["yaxis"]["range"]
    drawn = [value for trace in found.data if trace["mode"] == "markers" for value in trace["y"]]
    share = (min(math.log10(value) for value in drawn) - low) / (high - low)
    assert share > 4 * 13 / 190


def test_a_panel_of_dots_keeps_the_row_of_a_gap():
    found = panel(run_with_gaps(16))
    rows = {trace["meta"]: trace for trace in found.data}
    assert set(rows) == {"none", "mutex", "fair"}
    assert (rows["mutex"]["mode"], rows["mutex"]["text"]) == ("text", ["n/a"])
    assert rows["none"]["text"] == ["0"]
    assert rows["fair"]["mode"] == "markers"
    assert found.layout["yaxis"]["ticktext"] == ["none", "mutex", "fair"]


@needs_chromium
def test_the_browser_shows_the_gaps_and_hides_them_with_their_line(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(build(run_with_gaps(1, 16)), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.goto(path.as_uri())
    until(page, "document.querySelector('#latency-p999-0 svg.main-svg')")
    shown = page.evaluate(SHOWN)
    # The base line and the first lock both have the circle as their shape.
    assert {"0●n/a●", "0●"} <= set(shown)
    page.locator(".chip", has_text="mutex").click()
    until(page, f"!({SHOWN}).some(text => text.includes('n/a'))")
    page.close()


@needs_chromium
def test_a_row_of_dots_shows_its_gap(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(build(run_with_gaps(16)), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.goto(path.as_uri())
    until(page, "document.querySelector('#latency-p999-0 svg.main-svg')")
    texts = page.eval_on_selector_all("#latency-p999-0 .textpoint text", "all => all.map(one => one.textContent)")
    assert sorted(texts) == ["0", "n/a"]
    page.close()


def test_a_quantile_beyond_the_window_has_its_bound_in_the_text_of_the_chart():
    run = run_with_gaps(1, 16)
    run.summary["acquire_p999_at_least_us"] = 430_000.0
    assert "mutex: > 430 ms at 1 client" in panel(run).alt


def test_a_lock_without_any_curve_or_step_is_named_below_its_chart():
    run = make_run([Point(name, 16, 1) for name in ("mutex", "fair")], trials=2)
    without_fair = {
        "latency": run.latency[~run.latency["cell"].str.startswith("fair")],
        "timeline": run.timeline[~run.timeline["cell"].str.startswith("fair")],
    }
    view = make_view(replace(run, **without_fair))
    for section in (distribution.render(view), timeline.render(view)):
        assert section.figures[0].missing == ["fair"]
        assert '<p class="missing">n/a: fair</p>' in section.html
    whole = distribution.render(make_view(run))
    assert "n/a: " not in whole.html.partition("<details")[0]
