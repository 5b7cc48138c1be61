"""The filter of cells: one choice for all charts and tables, which a link keeps."""

from __future__ import annotations

import re

import pytest

from pybench.analysis.between_runs import compare_runs
from pybench.report import changes_page
from pybench.report.cell_filter import cell_filter
from pybench.report.page import build, rendered_charts
from pybench.report.view import make_view
from tests.report.browsing import needs_chromium, until
from tests.report.support import Point, make_run, the_usual_points
from tests.report.test_database import figures

DRAWN = """id => document.getElementById(id).data.filter(one => one.visible && one.mode === "markers")
    .map(one => [one.meta, one.x.filter((_, n) => one.y[n] !== null)])"""
LINES = """id => document.getElementById(id).data.filter(one => one.visible && one.mode === "lines" && one.x.length)
    .map(one => [one.meta, one.line.dash, one.x])"""


def test_a_choice_is_offered_of_all_that_differs():
    points = [Point("mutex", 1, 1), Point("mutex", 16, 1), Point("pg-row", 16, 1, args="skip=yes", backend="db")]
    found = cell_filter(make_view(make_run(points, trials=1)))
    assert [(one.key, [value for value, _ in one.values]) for one in found.choices] == [
        ("lock", ["mutex", "pg-row(skip=yes)"]),
        ("backend", ["default", "db"]),
        ("concurrency", ["1", "16"]),
    ]
    assert found.cells == [[0, 0, 0, 0], [0, 0, 1, 0], [1, 1, 1, 0]]


def test_a_single_cell_leaves_nothing_to_choose():
    run = make_run([Point("mutex", 1, 1)], trials=1)
    assert cell_filter(make_view(run)) is None
    assert 'id="filter"' not in build(run)


def test_every_trace_and_every_row_of_a_cell_follows_the_filter():
    """A new section that forgets `ids` or `data-cell` would show cells that the reader left out."""
    database = Point("pg-row", 16, 1, database=figures())
    stages = Point("fair", 16, 1, stages="0 -> 16 over 1s, 16 for 1s")
    view = make_view(make_run([*the_usual_points(), database, stages], trials=2))
    sections = rendered_charts(view)
    assert {one.id for one in sections} >= {"throughput", "distribution", "handoff", "timeline", "stages"}
    for section in sections:
        for figure in section.figures:
            followed = {one["meta"] for one in figure.data if one.get("ids")}
            assert followed == {one["meta"] for one in figure.data if "meta" in one}, figure.id
        rows = re.findall(r"<tr[^>]*><t[hd]", re.sub(r"<thead>.*?</thead>", "", str(section.html), flags=re.DOTALL))
        assert rows
        assert all("data-cell" in row for row in rows), section.id


def test_the_rows_of_two_compared_runs_follow_the_filter_too():
    old, new = (make_run(trials=4, seed=seed) for seed in (1, 2))
    html = changes_page.build(compare_runs(old, new), old, new)
    assert html.count('<tr data-cell="0 1">') == 1
    assert len(re.findall(r'<tr data-cell="\d+ \d+">', html)) == 18


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("filter") / "report.html"
    path.write_text(build(make_run(trials=2)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser):
    """A page that fails the test when a script of it complained."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert complaints == []


def ranking(page):
    return page.locator("#ranking-table > tbody:not(.load):visible").evaluate_all("all => all.map(one => one.id)")


def pick(page, facet, value):
    page.locator(f'.pick[data-facet="{facet}"][data-value="{value}"]').click()


@needs_chromium
def test_one_choice_is_followed_by_all_sections_and_a_reset_ends_it(page, address):
    page.goto(address)
    page.get_by_role("button", name="Choose by").click()
    pick(page, "lock", "mutex")
    pick(page, "lock", "naive")
    pick(page, "concurrency", "16")
    assert page.locator("#filter-count").text_content() == "4 of 18 cells"
    assert page.locator(".top .filtered b").text_content() == "4 of 18 cells"
    assert {name.split("-keys")[0] for name in ranking(page)} == {
        "cell-mutex-concurrency-16",
        "cell-naive-concurrency-16",
    }
    until(page, f"({DRAWN})('throughput-rate-0').flatMap(one => one[1]).every(x => x === 16)")
    assert page.evaluate(f"({DRAWN})('throughput-rate-0')") == [["naive", [16]], ["mutex", [16]]]
    # Charts and maps of the other loads are gone; the legend has no name that is not drawn.
    assert page.locator("#timeline .chart:visible figcaption").all_text_contents() == [
        "16 clients, 1 key",
        "16 clients, 1,000 keys",
    ]
    heads = page.locator("#heatmaps .chart:visible thead th:visible").all_text_contents()
    assert heads == ["lock", "clients 16"] * 2 + ["lock", "keys 1", "keys 1,000"]
    assert page.locator(".legend .chip:visible").all_text_contents() == ["naive", "mutex"]
    page.locator("#latency details.data summary").click()
    page.locator("#latency details.data tbody tr:visible").nth(3).wait_for()
    assert page.locator("#latency details.data tbody tr:visible").count() == 4
    assert page.locator("#violations details:visible").count() == 1
    assert "lock=mutex&lock=naive&concurrency=16" in page.url
    page.locator(".top .filter-reset").click()
    assert len(ranking(page)) == 18
    assert "#" not in page.url
    assert page.locator("#latency details.data tbody tr:visible").count() == 18
    until(page, f"({DRAWN})('throughput-rate-0').flatMap(one => one[1]).length === 9")


@needs_chromium
def test_a_link_keeps_the_choice_and_leads_to_its_section(page, address):
    page.goto(f"{address}#latency?lock=mutex&concurrency=1&concurrency=64&keys=1")
    assert page.locator("#filter-count").text_content() == "2 of 18 cells"
    until(page, "document.getElementById('latency').getBoundingClientRect().top < 200")
    assert page.locator('.pick[aria-pressed="true"]').count() == 4
    until(page, "document.querySelector('#latency-p50-0 svg.main-svg')")
    # The point between the two is left out, and the line goes on without it.
    assert page.evaluate(f"({LINES})('latency-p50-0')") == [["mutex", "solid", [1, 64, None]]]
    page.locator("nav.side a", has_text="Fairness").click()
    until(page, "location.hash.startsWith('#fairness?')")
    assert page.locator("#filter-count").text_content() == "2 of 18 cells"
    # A link to a cell that is left out shows the cell.
    page.evaluate("location.hash = '#cell-naive-concurrency-16-keys-1000'")
    until(page, "document.querySelector('#cell-naive-concurrency-16-keys-1000 .cell-details')")
    assert page.locator("#filter-count").text_content() == ""
    assert len(ranking(page)) == 18


@needs_chromium
def test_the_line_beside_an_unsafe_point_is_dotted_after_a_choice_too(page, address):
    page.goto(f"{address}#?lock=naive&concurrency=1&concurrency=64&keys=1")
    until(page, "document.querySelector('#latency-p50-0 svg.main-svg')")
    assert page.evaluate(f"({LINES})('latency-p50-0')") == [["naive", "dot", [1, 64, None]]]


@needs_chromium
def test_the_keyboard_chooses_and_words_do_too(page, address):
    page.goto(address)
    page.locator("#filter-find").focus()
    page.keyboard.type("64 clients mutex")
    assert page.locator("#filter-count").text_content() == "2 of 18 cells"
    assert "find=64+clients+mutex" in page.url
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.closest('.pick')?.getAttribute('aria-pressed')") == "true"


@needs_chromium
def test_what_matches_nothing_says_so(page, address):
    page.goto(f"{address}#?find=nothing-like-it")
    assert page.locator("#filter-count").text_content() == "0 of 18 cells"
    assert ranking(page) == []
    assert page.locator(".chart:visible").count() == 0


@needs_chromium
def test_a_chosen_chart_is_in_sight_although_it_was_folded_up(page, tmp_path):
    points = [Point(name, n, keys) for name in ("mutex", "fair") for keys in range(1, 10) for n in (1, 16)]
    path = tmp_path / "report.html"
    path.write_text(build(make_run(points, trials=1)), encoding="utf-8")
    page.goto(f"{path.as_uri()}#throughput?keys=9")
    assert page.locator("#throughput .chart:visible figcaption").all_text_contents() == ["9 keys"]
    assert page.locator("#throughput details.more").is_hidden()
    until(page, "document.querySelector('#throughput-rate-8 svg.main-svg')")
    page.locator(".filter .filter-reset").click()
    assert page.locator("#throughput .chart:visible figcaption").all_text_contents()[0] == "1 key"
    assert page.locator("#throughput details.more summary").text_content() == "3 further charts"


@needs_chromium
def test_without_javascript_all_cells_are_there(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}#?lock=mutex")
    assert page.locator("#ranking-table button.open:visible").count() == 18
    assert not page.locator("#filter").is_visible()
    page.locator("#latency details.data summary").click()
    assert page.locator("#latency details.data tbody tr:visible").count() == 18
    context.close()
