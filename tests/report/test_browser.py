"""The page in a real browser: it asks for nothing, complains of nothing, and works by mouse and by keyboard."""

from __future__ import annotations

import math

import pytest

from pybench.report.page import build
from tests.report.browsing import needs_chromium, until
from tests.report.support import Point, make_run, the_usual_points

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(build(make_run()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser):
    """A page that fails the test when it asked for anything else than itself, or complained."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert [url for url in asked if not url.endswith("/report.html")] == []
    assert complaints == []


def strategies(page):
    return page.locator("#ranking-table > tbody:visible button.open").all_text_contents()


def ranked(page):
    """The rates in the order of the rows; what does not rank is to stay below, whatever the order."""
    rates = page.eval_on_selector_all(
        "#ranking-table > tbody .rate", "cells => cells.map(cell => Number(cell.dataset.sort || NaN))"
    )
    loads = page.eval_on_selector_all("#ranking-table > tbody:not(.load)", "all => all.map(one => one.dataset.load)")
    found = []
    for load in dict.fromkeys(loads):
        of_load = [rate for rate, its in zip(rates, loads, strict=True) if its == load]
        known = [rate for rate in of_load if not math.isnan(rate)]
        assert known
        assert all(math.isnan(rate) for rate in of_load[len(known) :])
        found.append(known)
    assert len(found) == len(set(loads)) == 6
    return found


def test_every_chart_is_drawn_and_nothing_is_asked_for(page, address):
    page.goto(address)
    room = page.evaluate("document.querySelector('.plot').getBoundingClientRect().height")
    page.evaluate("dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))")
    until(page, "[...document.querySelectorAll('.plot')].every(one => one.querySelector('svg.main-svg'))")
    assert page.evaluate("document.querySelector('.plot').getBoundingClientRect().height") == room


def test_a_load_in_stages_stands_over_what_the_locks_made_of_it(page, tmp_path):
    stages = "0 -> 16 over 1s, 16 for 1s"
    run = make_run([Point(name, 16, 1, stages=stages) for name in ("mutex", "naive")])
    (tmp_path / "report.html").write_text(build(run), encoding="utf-8")
    page.goto((tmp_path / "report.html").as_uri())
    until(page, "document.querySelectorAll('#stages .subplot').length === 4")
    tops = [page.locator(f"#stages .subplot.{name}").bounding_box()["y"] for name in ("xy4", "xy3", "xy2", "xy")]
    assert tops == sorted(tops)
    titles = page.locator("#stages .annotation-text").all_text_contents()
    assert titles == ["clients offered", "grants/s", "p50 response", "p99 response"]
    places = [page.locator("#stages .annotation-text").nth(number).bounding_box() for number in range(4)]
    # Each title stands above its own part.
    assert [place["y"] < top for place, top in zip(places, tops, strict=True)] == [True] * 4
    shown = "[...document.querySelectorAll('#stages .scatterlayer .trace')].length"
    assert page.evaluate(shown) == 1 + 2 * 3
    page.locator('.chip[data-series="naive"]').click()
    until(page, f"{shown} === 1 + 3")


def test_an_injected_script_does_not_run(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(build(make_run([], status="interrupted")).replace("<h1>", "<script>window.bad = 1</script><h1>"))
    page = browser.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(path.as_uri())
    assert page.evaluate("window.bad") is None
    assert any("Content Security Policy" in text for text in complaints)
    assert page.locator("h1").count() == 1
    page.close()


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(page, address):
    page.goto(address)
    heading = page.locator("#ranking-table thead th", has_text="safe grants/s")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert ranked(page) == [sorted(of_load, reverse=True) for of_load in ranked(page)]
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert ranked(page) == [sorted(of_load) for of_load in ranked(page)]
    assert page.locator("#ranking-table thead th[aria-sort]").count() == 1


def test_the_keyboard_sorts_and_opens_too(page, address):
    page.goto(address)
    page.locator("#ranking-table thead button", has_text="lock").focus()
    page.keyboard.press("Enter")
    shown = page.eval_on_selector_all(
        "#ranking-table > tbody:not(.load)",
        "all => all.map(one => [one.dataset.load, one.querySelector('button.open').textContent])",
    )
    assert shown == sorted(shown)
    row = page.locator("#ranking-table > tbody button.open").first
    row.focus()
    page.keyboard.press("Space")
    assert row.get_attribute("aria-expanded") == "true"
    assert page.locator(".cell-details:visible").count() == 1
    page.locator("#latency details.data summary").press("Enter")
    heading = page.locator("#latency details.data thead th", has_text="p99 response")
    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    shown = page.eval_on_selector_all(
        "#latency details.data tbody tr", "rows => rows.map(row => Number(row.cells[3].dataset.sort))"
    )
    assert shown == sorted(shown)
    assert len(set(shown)) > 10


def test_a_link_to_a_cell_opens_it(page, address):
    page.goto(f"{address}#cell-naive-concurrency-64-keys-1")
    body = page.locator("#cell-naive-concurrency-64-keys-1")
    assert body.locator(".cell-details").is_visible()
    until(page, "document.activeElement !== document.body")
    assert page.evaluate("document.activeElement.closest('tbody').id") == "cell-naive-concurrency-64-keys-1"
    assert 0 < page.evaluate("document.activeElement.getBoundingClientRect().top") < 860
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    body.get_by_role("button", name="Copy link").click()
    until(page, "document.activeElement.textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{address}#cell-naive-concurrency-64-keys-1"
    page.locator("#cell-naive-concurrency-64-keys-1 a", has_text="Violations of this cell").click()
    assert page.locator("#violations-cell-naive-concurrency-64-keys-1").get_attribute("open") is not None


def test_the_filter_leaves_what_was_asked_for(page, address):
    page.goto(address)
    page.get_by_label("Filter", exact=True).fill("mutex 64")
    assert strategies(page) == ["mutex", "mutex"]
    assert page.locator("#filter-count").text_content() == "2 of 18 cells"


def test_the_legend_hides_a_strategy_in_all_charts(page, address):
    page.goto(address)
    page.locator(".chip", has_text="none").click()
    assert page.locator(".chip", has_text="none").get_attribute("aria-pressed") == "false"
    # Charts that are far from the window follow when the page has nothing else to do.
    shown = "document.getElementById('throughput-rate-0').data?.filter(one => one.visible).map(one => one.meta) ?? []"
    until(page, f"!({shown}).includes('none')")
    assert set(page.evaluate(shown)) == {"naive", "mutex"}


def test_charts_follow_the_theme(page, address):
    page.goto(address)
    page.wait_for_selector("#throughput-rate-0 svg.main-svg")
    ink = "document.getElementById('throughput-rate-0').layout.font.color"
    light = page.evaluate(ink)
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 20, 24)"
    # The chart is below the window, and follows when the page has time.
    until(page, f"{ink} !== '{light}'")
    page.reload()
    assert page.get_by_role("button", name="Dark").get_attribute("aria-pressed") == "true"


def test_on_paper_no_chart_is_cut_and_every_heading_is_text(page, address):
    page.goto(address)
    page.wait_for_selector("#throughput-rate-0 svg.main-svg")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    # Narrower than what the charts were drawn for, as paper is.
    page.set_viewport_size({"width": 700, "height": 900})
    cut = page.evaluate(
        """[...document.querySelectorAll(".plot")].filter(room => [...room.querySelectorAll(".main-svg")].some(
            one => one.getBoundingClientRect().right > room.getBoundingClientRect().right + 1 || !one.viewBox.baseVal
        )).map(room => room.id)"""
    )
    assert cut == []
    headings = page.eval_on_selector_all(
        "#ranking-table thead th", "all => all.map(one => getComputedStyle(one, '::before').content)"
    )
    assert '"safe grants/s"' in headings
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".main-svg[viewBox]").count() == 0


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_the_page_never_scrolls_sideways(page, address, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{address}#cell-mutex-concurrency-16-keys-1")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_long_names_break_into_lines_and_short_ones_do_not(page, tmp_path):
    args = f"fanout=sequential, name={'a_word_without_end' * 6}"
    points = [Point(name, clients, 1, args=args if name == "naive" else "") for name in ("naive", "mutex")
              for clients in (1, 16)]  # fmt: skip
    path = tmp_path / "report.html"
    path.write_text(build(make_run(points, trials=1)), encoding="utf-8")
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.evaluate("document.querySelectorAll('button.open').forEach(one => one.click())")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    heights = page.eval_on_selector_all(
        "#ranking-table button.open", "all => all.map(one => [one.textContent, one.getBoundingClientRect().height])"
    )
    assert all(height < 30 for text, height in heights if text == "mutex")
    assert all(height > 60 for text, height in heights if text != "mutex")


def test_of_many_strategies_charts_begin_with_those_that_lead(page, tmp_path):
    points = [Point(f"lock{n}", clients, 1, cost=40.0 + 20 * n) for n in range(9) for clients in (1, 16)]
    path = tmp_path / "report.html"
    path.write_text(build(make_run(points, trials=4)), encoding="utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector("#throughput-rate-0 svg.main-svg")
    drawn = "[...new Set(document.getElementById('throughput-rate-0').data"
    drawn += ".filter(one => one.visible).map(one => one.meta))]"
    assert page.evaluate(drawn) == [f"lock{n}" for n in range(6)]
    page.get_by_role("button", name="Show all 9").click()
    until(page, f"{drawn}.length === 9")


def test_many_cells_are_shown_when_asked_for(page, tmp_path):
    path = tmp_path / "report.html"
    points = [*the_usual_points(), *(Point("mutex", clients, 10) for clients in range(1, 20))]
    path.write_text(build(make_run(points, trials=1)), encoding="utf-8")
    page.goto(path.as_uri())
    assert len(strategies(page)) == 24
    page.get_by_role("button", name="Show all 37 cells").click()
    assert len(strategies(page)) == 37
