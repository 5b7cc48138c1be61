"""Tables on wide and narrow windows: names stay in sight, and below 600 px each row is a card."""

from __future__ import annotations

import pytest

from pybench.report.page import build
from tests.report.browsing import needs_chromium, until
from tests.report.support import Point, make_run
from tests.report.test_database import figures

pytestmark = needs_chromium

# A heat map stays a map, and scrolls sideways.
TABLES = ".scroll > table:not(.heat)"
FIRST_COLUMNS = """[...document.querySelectorAll(".scroll > table")].filter(one => one.offsetParent).map(table => {
    const box = table.parentElement;
    box.scrollTo({left: 9999, behavior: "instant"});
    const name = table.querySelector("tbody th[scope=row]").getBoundingClientRect();
    return [box.scrollLeft > 0, Math.round(name.left - box.getBoundingClientRect().left)];
})"""
LINES = """[...document.querySelectorAll(
    "#ranking-table > tbody:not(.load):not([hidden]) > tr:first-child")].map(row => {
    const shown = [...row.cells].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
    const tops = shown.map(one => Math.round(one.getBoundingClientRect().top));
    return {
        head: shown[0].innerText, tops, order: tops.every((top, n) => n === 0 || top > tops[n - 1]),
        labels: shown.slice(1).map(one => getComputedStyle(one, "::before").content.replaceAll('"', "")),
        right: Math.max(...shown.map(one => one.getBoundingClientRect().right)),
    };
})"""


@pytest.fixture
def page(browser, tmp_path):
    lock = Point("pg-row", 16, 1, backend="postgres", database=figures())
    points = [lock, Point("pg-row", 1, 1, backend="postgres", database=figures())]
    names = ("mutex", "none", "naive")
    points += [Point(name, n, 1, backend="redis", broken=name != "mutex") for name in names for n in (1, 16)]
    points += [Point("redlock", n, 1, args="fanout=sequential, nodes=5", backend="redis") for n in (1, 16)]
    path = tmp_path / "report.html"
    path.write_text(build(make_run(points, trials=4)), encoding="utf-8")
    page = browser.new_page(viewport={"width": 620, "height": 860})
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    until(page, "document.querySelectorAll('.frame').length > 0")
    yield page
    page.close()


def test_the_name_of_a_row_stays_in_sight_in_every_table_that_scrolls(page):
    found = page.evaluate(FIRST_COLUMNS)
    scrolled = [left for is_scrolled, left in found if is_scrolled]
    assert len(scrolled) >= 3
    assert set(scrolled) <= {0, 1}


@pytest.mark.parametrize("width", [599, 400, 320])
def test_below_600_px_each_row_is_a_card(page, width):
    page.set_viewport_size({"width": width, "height": 860})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(f"[...document.querySelectorAll('{TABLES} > thead')].every(one => !one.offsetParent)")
    cards = page.evaluate(LINES)
    assert len(cards) == 10
    for card in cards:
        assert card["order"], card
        assert card["labels"][:4] == ["rank", "safe grants/s", "true rate below", "p50"]
        assert "none" not in card["labels"]
        assert card["right"] <= width
    assert " ".join(cards[0]["head"].split()).startswith("mutex ✓ SAFE")
    # No table scrolls sideways inside of the page either.
    boxes = "[...document.querySelectorAll('.scroll:not(:has(> .heat))')]"
    boxes += ".filter(one => one.scrollWidth > one.clientWidth + 1).length"
    assert page.evaluate(boxes) == 0


def test_every_figure_of_every_card_has_its_label(page):
    page.set_viewport_size({"width": 400, "height": 860})
    bare = f"""[...document.querySelectorAll("{TABLES} > tbody > tr:not(.details) > td")].filter(
        one => getComputedStyle(one, "::before").content === "none").map(one => one.outerHTML.slice(0, 90))"""
    assert page.evaluate(bare) == []


def test_a_card_opens_and_keeps_to_the_page(page):
    page.set_viewport_size({"width": 400, "height": 860})
    page.locator("#ranking-table button.open").first.click()
    assert page.locator(".cell-details").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_at_600_px_tables_are_tables(page):
    page.set_viewport_size({"width": 600, "height": 860})
    assert page.locator("#ranking-table > thead").is_visible()


def test_a_card_is_still_a_row_to_a_screen_reader(page):
    page.set_viewport_size({"width": 400, "height": 860})
    # Written out, because browsers take the roles of a table away from elements that are laid out as blocks.
    row = page.locator("#ranking-table[role=table] > tbody[role=rowgroup]:not(.load) > tr[role=row]").first
    assert row.locator("> th[role=rowheader]").count() == 1
    assert row.locator("> td[role=cell]").count() >= 9


def test_the_one_legend_stays_in_sight_beside_the_charts(page):
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 860})
        assert page.locator(".legend").count() == 1
        page.evaluate("document.getElementById('cost').scrollIntoView({behavior: 'instant'})")
        legend, title = page.locator(".legend").bounding_box(), page.locator("#cost-title").bounding_box()
        assert 0 <= legend["y"] < 80
        assert title["y"] >= legend["y"] + legend["height"] - 1
        page.evaluate("document.getElementById('method').scrollIntoView({behavior: 'instant'})")
        assert page.locator(".legend").bounding_box()["y"] < 0
