"""What a reader sees in a real browser: nothing is cut without a hint, nothing overlaps, every line has its name."""

from __future__ import annotations

from functools import cache

import pytest

from pybench.report.page import build
from tests.report.browsing import needs_chromium, until
from tests.report.support import Point, make_run

pytestmark = needs_chromium

WITH_ARGUMENTS = "pg-advisory(scope=transaction)"
LONG = "redlock(fanout=sequential, nodes=5)"
# Texts of a chart that lie over each other, stand beyond its edge, or are turned.
CROWDED = """[...document.querySelectorAll(".plot")].flatMap(room => {
    const edge = room.getBoundingClientRect();
    const texts = [...room.querySelectorAll(".xtick text, .ytick text, .xtitle, .annotation-text")].map(
        one => ({text: one.textContent, turned: /rotate\\((?!0)/.test(one.getAttribute("transform") ?? ""),
                 at: one.getBoundingClientRect()})).filter(one => one.text.trim() && one.at.width);
    const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1.5;
    return texts.flatMap((one, place) => [
        ...(one.turned ? [`${room.id}: ${one.text} is turned`] : []),
        ...(one.at.left < edge.left - 1 || one.at.right > edge.right + 1 ? [`${room.id}: ${one.text} is cut`] : []),
        ...texts.slice(place + 1).filter(other => over(one.at, other.at)).map(
            other => `${room.id}: ${one.text} over ${other.text}`),
    ]);
})"""


@cache
def locks(*, clients=(1, 16)):
    """A run of short names, one with arguments and a long one, whose figures differ."""
    named = [("mutex", "", 47), ("fair", "", 60), ("pg-advisory", "scope=transaction", 130)]
    named.append(("redlock", "fanout=sequential, nodes=5", 300))
    points = [Point(name, n, 1, args=args, cost=cost) for name, args, cost in named for n in clients]
    return make_run(points, trials=3)


@cache
def usual():
    """The run of most tests."""
    return make_run()


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens the report of a run, in a window of a width and a theme."""
    contexts = []

    def opened(run, width=1280, theme="light"):
        path = tmp_path / "report.html"
        path.write_text(build(run), encoding="utf-8")
        contexts.append(browser.new_context(viewport={"width": width, "height": 860}, color_scheme=theme))
        page = contexts[-1].new_page()
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def all_are_drawn(page):
    until(page, "[...document.querySelectorAll('.plot')].every(one => one.querySelector('svg.main-svg'))")


@pytest.mark.parametrize(("width", "theme"), [(620, "light"), (800, "dark")])
def test_a_table_that_goes_on_beyond_its_edge_says_so_and_keeps_the_names_in_sight(open_page, width, theme):
    page = open_page(locks(), width, theme)
    region = page.get_by_role("region", name="Ranking, table")
    hint = "getComputedStyle(document.querySelector('#ranking .frame'), '::after').visibility"
    until(page, f"{hint} === 'visible'")
    region.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('#ranking .scroll').scrollLeft > 100")
    edge = region.bounding_box()["x"]
    names = page.eval_on_selector_all(
        "#ranking-table th:has(button.open), #ranking-table > thead th:nth-child(2), #ranking-table tbody.load span",
        "all => all.map(one => one.getBoundingClientRect().left)",
    )
    assert names == [pytest.approx(edge, abs=1)] * (4 * 2 + 1 + 2)
    under = "document.elementFromPoint({0}, {1}).closest('th')?.querySelector('button.open')?.textContent"
    row = page.locator("#ranking-table button.open").first.bounding_box()
    assert page.evaluate(under.format(edge + 20, row["y"] + 8)) == "mutex"
    region.evaluate("one => one.scrollTo({left: 9999, behavior: 'instant'})")
    until(page, f"{hint} === 'hidden'")


def test_a_table_that_has_room_says_nothing(open_page):
    page = open_page(usual(), 1600)
    until(page, "document.querySelectorAll('.frame').length > 0")
    assert page.locator("#ranking .frame.more-right").count() == 0


@pytest.mark.parametrize("width", [400, 800])
def test_no_section_is_cut_out_of_the_navigation(open_page, width):
    page = open_page(locks(), width)
    ends = page.eval_on_selector_all("nav.side a", "all => all.map(one => one.getBoundingClientRect().right)")
    assert len(ends) > 8
    assert max(ends) <= width


def short_names():
    """Locks whose names stand beside their dots and leave little room, with figures far apart."""
    costs = {"mutex": 47, "fair": 60, "fenced": 90, "pg-advisory": 130, "redlock": 300}
    return make_run([Point(name, 16, 1, cost=cost) for name, cost in costs.items()], trials=3)


@pytest.mark.parametrize(
    "run", [short_names, lambda: locks(clients=(16,)), locks], ids=["short names", "long names", "lines"]
)
def test_no_text_of_a_chart_lies_over_another_or_is_cut_at_any_width(open_page, run):
    page = open_page(run(), 1600)
    all_are_drawn(page)
    for width in (1600, 1280, 800, 400):
        page.set_viewport_size({"width": width, "height": 860})
        follows = "one => Math.abs(one.querySelector('.main-svg').getAttribute('width') - one.clientWidth) < 1"
        until(page, f"[...document.querySelectorAll('.plot')].every({follows})")
        assert page.evaluate(CROWDED) == [], width


def test_the_name_at_the_end_of_a_line_has_the_marker_of_the_line(open_page):
    page = open_page(usual())
    page.wait_for_selector("#throughput-rate-0 svg.main-svg")
    named = page.locator("#throughput-rate-0 .annotation-text")
    assert {"● naive", "■ mutex"} <= set(named.all_text_contents())
    colour = "[...document.querySelectorAll('#throughput-rate-0 .annotation-text tspan')].find(one => /[●■]/.test("
    colour += "one.textContent)).style.fill"
    assert page.evaluate(colour) in ("rgb(23, 134, 203)", "rgb(201, 130, 0)")


def test_a_command_breaks_into_lines_and_is_not_cut(open_page):
    page = open_page(usual(), 400)
    room = "[...document.querySelectorAll('pre')].map(one => [one.scrollWidth, one.clientWidth])"
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert all(within <= width for within, width in page.evaluate(room))


def test_where_there_is_room_a_name_with_arguments_is_one_line(open_page):
    page = open_page(locks())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    lines = page.eval_on_selector_all(
        "h1 .term, main span.label",
        "all => all.map(one => [one.textContent, one.getBoundingClientRect().height "
        "/ parseFloat(getComputedStyle(one).lineHeight)])",
    )
    assert {WITH_ARGUMENTS, LONG} <= {text for text, _ in lines}
    assert [text for text, height in lines if height > 1.5] == []


@pytest.mark.parametrize("args", ["", "scope=transaction, synchronous_commit=off"])
def test_at_a_narrow_width_a_name_breaks_before_its_arguments_and_not_at_a_hyphen(open_page, args):
    points = [Point("mutex", 16, 1), Point("pg-advisory", 16, 1, args=args, cost=60)]
    page = open_page(make_run(points, trials=3), 400)
    stems = page.eval_on_selector_all(
        ".stem", "all => all.map(one => [one.textContent, one.getClientRects().length]).filter(one => one[1])"
    )
    assert "pg-advisory" in {text for text, _ in stems}
    assert {count for _, count in stems} == {1}
    if args:
        name = "document.querySelector('#ranking .stem').closest('.label').getBoundingClientRect().height"
        assert page.evaluate(name) > 30


def test_a_line_that_is_pointed_at_stands_out_and_the_others_step_back(open_page):
    page = open_page(locks())
    all_are_drawn(page)
    seen = "Object.fromEntries(document.getElementById('timeline-0').data.map(one => [`${one.meta} ${one.mode} "
    seen += "${one.line?.width}`, one.opacity ?? 1]))"
    before = page.evaluate(seen)
    assert (before["mutex lines 1"], before["mutex lines 2"], before["fair lines 2"]) == (0.25, 1, 1)
    page.evaluate("document.getElementById('timeline').scrollIntoView({behavior: 'instant'})")
    page.wait_for_timeout(200)
    chip = page.locator(".chip", has_text="mutex")
    chip.hover()
    during = page.evaluate(seen)
    assert (during["mutex lines 1"], during["mutex lines 2"]) == (0.8, 1)
    assert max(value for name, value in during.items() if not name.startswith("mutex")) < 0.2
    page.mouse.move(0, 0)
    assert page.evaluate(seen) == before
    chip.focus()
    assert page.evaluate(seen) == during


def test_charts_are_there_without_scrolling_for_a_picture_of_the_whole_page(open_page):
    page = open_page(usual())
    all_are_drawn(page)
    assert page.evaluate("scrollY") == 0


def test_on_paper_all_charts_are_there_and_those_that_were_folded_too(open_page):
    points = [Point(name, n, keys) for name in ("mutex", "fair") for keys in (1, 10, 1000) for n in (1, 16)]
    page = open_page(make_run(points, trials=2))
    folded = "document.querySelectorAll('details.more .plot').length"
    assert page.evaluate(folded) > 2
    assert page.evaluate("document.querySelectorAll('details.more .plot svg').length") == 0
    page.pdf()
    assert page.evaluate("document.querySelectorAll('details.more .plot:has(svg.main-svg)').length") == page.evaluate(
        folded
    )
    assert page.locator("details.more[open]").count() == 0


def test_on_paper_tables_have_nearly_its_width_and_nothing_is_a_button(open_page):
    points = [Point(f"pg-advisory{n}", c, 1, args="scope=transaction", cost=40 + n) for n in range(9) for c in (1, 16)]
    page = open_page(make_run(points, trials=2))
    all_are_drawn(page)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 900})
    # What is a little wider than the paper makes a browser print all of the page smaller.
    assert page.evaluate("document.documentElement.scrollWidth") < 1.15 * 700
    assert page.locator(".chip.every:visible").count() == 0


@pytest.mark.parametrize("args", ["", "fanout=sequential"], ids=["beside", "above"])
def test_a_panel_of_dots_has_no_row_for_what_is_hidden(open_page, args):
    page = open_page(make_run([Point(f"lock{n}", 16, 1, args=args, cost=40 + n) for n in range(9)], trials=4))
    all_are_drawn(page)
    names = "#throughput-rate-0 :is(.ytick text, .annotation-text)"
    height = page.locator("#throughput-rate-0").bounding_box()["height"]
    assert page.locator(names).count() == 6
    page.get_by_role("button", name="Show all 9").click()
    until(page, f"document.querySelectorAll('{names}').length === 9")
    assert page.locator("#throughput-rate-0").bounding_box()["height"] == pytest.approx(
        height + (height - 48) / 2, abs=1
    )
    assert page.evaluate(CROWDED) == []
