"""Heat maps: a lock over an axis; what may not be ranked has no colour, and an unsafe cell has no figure."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from pybench.report import markdown
from pybench.report.heat import P99, RATE, STEPS, heat_maps, scale_of, scales_of
from pybench.report.html import asset
from pybench.report.page import build
from pybench.report.sections import heatmaps
from pybench.report.view import make_view
from tests.report.browsing import needs_chromium, until
from tests.report.support import Point, make_run
from tests.report.test_palette import contrast


def maps_of(points, trials=5):
    view = make_view(make_run(points, trials=trials))
    return heat_maps(view, "concurrency", scales_of(view))


def boxes(heat):
    """The texts of the boxes by the name of their lock: the words, or the safe grants/s."""
    return {
        line.label: [None if one is None else one.words or one.figures[0].text for one in row]
        for line, row in heat.rows
    }


@pytest.fixture(scope="module")
def usual():
    return make_view(make_run())


def test_an_unsafe_cell_has_no_figure_and_clients_without_a_lock_no_row(usual):
    one_key, many_keys = heat_maps(usual, "concurrency", scales_of(usual))
    assert dict(one_key.conditions) == {"keys": 1}
    assert one_key.columns == ["1", "16", "64"]
    found = boxes(one_key)
    assert list(found) == ["naive", "mutex"]
    assert found["naive"][1:] == ["✕ UNSAFE"] * 2
    unsafe = [box for _, row in one_key.rows for box in row if box.cell.unsafe]
    assert len(unsafe) == 2
    assert all(box.figures == [] for box in unsafe)
    assert "✕ UNSAFE" not in str(boxes(many_keys))


def test_no_map_mixes_loads():
    points = [Point(name, n, k, retry=r) for name in ("mutex", "fair") for n in (1, 16) for k in (1, 8)
              for r in ("none", "fixed")]  # fmt: skip
    found = maps_of(points, trials=1)
    assert len(found) == 4
    for heat in found:
        for _, row in heat.rows:
            assert all(box.cell.without("concurrency") == heat.conditions for box in row)


def test_there_is_a_map_only_with_two_locks_and_two_values():
    assert maps_of([Point("mutex", n, 1) for n in (1, 16)], trials=1) == []
    assert maps_of([Point(name, 16, 1) for name in ("mutex", "fair")], trials=1) == []
    assert maps_of([Point(name, n, 1) for name in ("mutex", "none") for n in (1, 16)], trials=1) == []
    assert len(maps_of([Point(name, n, 1) for name in ("mutex", "fair") for n in (1, 16)], trials=1)) == 1


def test_a_cell_that_was_not_measured_is_a_box_without_anything():
    points = [Point("mutex", 1, 1), Point("mutex", 16, 1), Point("fair", 1, 1), Point("fenced", 16, 1)]
    (heat,) = maps_of(points, trials=1)
    assert boxes(heat)["fair"][1] is None
    assert boxes(heat)["fenced"][0] is None


def test_what_is_not_ranked_has_a_figure_without_a_colour():
    points = [Point(name, n, 1) for name in ("mutex", "fair", "semaphore") for n in (1, 16)]
    (heat,) = maps_of(points, trials=1)
    row = {line.label: row for line, row in heat.rows}["semaphore"]
    assert [(box.words, box.figures[0].step) for box in row] == [("not ranked", None)] * 2
    assert all(box.figures[0].text != "n/a" for box in row)


def test_the_best_figure_has_the_last_step_and_the_worst_the_first(usual):
    for measure in (RATE, P99):
        scale = scale_of(usual, measure)
        values = [
            measure.value(cell) for cell in usual.cells if cell.verdict == "SAFE" and cell.series.strategy != "none"
        ]
        best, worst = (min(values), max(values)) if measure is P99 else (max(values), min(values))
        assert (scale.step(best), scale.step(worst)) == (STEPS - 1, 0)
        assert scale.step((best * worst) ** 0.5) in (STEPS // 2 - 1, STEPS // 2)


def test_bold_is_what_the_ranking_has_bold(usual):
    bold = {
        box.cell.id
        for heat in heat_maps(usual, "concurrency", scales_of(usual))
        for _, row in heat.rows
        for box in row
        if any(one.is_bold for one in box.figures)
    }
    assert bold == {cell.id for cell in usual.cells if cell.series.label == "mutex"}


def test_a_run_whose_control_was_missed_has_no_colour_and_no_figure():
    points = [Point(name, n, 1) for name in ("mutex", "fair") for n in (1, 16)]
    assert heatmaps.render(make_view(make_run(points, caught=False, trials=1))) is None


def test_the_report_for_a_pull_request_has_the_maps_as_tables():
    text = markdown.build(make_run())
    assert "<details><summary>Heat maps: safe grants/s</summary>" in text
    assert "**over clients, 1 key**" in text
    assert re.search(r"\| naive \| [\d,]+ \| ✕ UNSAFE \| ✕ UNSAFE \|", text)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_figure_is_readable_on_every_step_and_the_steps_differ_in_lightness(theme):
    found = []
    for step in range(STEPS):
        rule = re.search(rf"\.heat-{step} {{ background: light-dark\((.*?)\); color: light-dark\((.*?)\);",
                         asset("assets/heat.css"))  # fmt: skip
        background, ink = (text.split(", ")[theme] for text in rule.groups())
        assert contrast(background, ink) >= 4.5, step
        found.append(background)
    # Lightness alone tells neighbours apart, so that no colour has to be seen.
    light = [contrast(one, "#000000") for one in found]
    assert light == sorted(light, reverse=theme == 0)
    assert all(contrast(one, other) > 1.1 for one, other in pairwise(found))


@needs_chromium
def test_the_figure_is_chosen_by_keyboard_and_a_box_leads_to_its_cell(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(build(make_run(trials=2)), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.goto(path.as_uri())
    shown = page.locator("#heatmaps td a > span:visible")
    assert "µs" not in "".join(shown.all_text_contents())
    page.locator("#heat-rate").focus()
    page.keyboard.press("ArrowRight")
    assert all(re.search("[mµ]s|n/a", text) for text in shown.all_text_contents())
    box = page.locator("#heatmaps table.heat tbody tr", has_text="mutex").first.locator("td a").nth(1)
    box.focus()
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#cell-mutex-concurrency-16-keys-1 .cell-details')")
    page.close()
