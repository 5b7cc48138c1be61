"""The report of a run of many locks: more than loads, some of them not ranked, and axes that are kept as text."""

from __future__ import annotations

import pytest

from pybench.report.charts.axes import load_axis
from pybench.report.page import build
from pybench.report.sections import ranking, throughput
from pybench.report.view import make_view
from tests.report.browsing import needs_chromium
from tests.report.support import Point, make_run

NAMES = (
    *("mutex", "watchdog", "reentrant", "read-write", "fair", "fair-queue", "notify", "fenced", "replicated", "naive"),
)


def many_locks():
    points = [Point(name, clients, 1, cost=47.0) for name in NAMES for clients in (1, 16)]
    points += [Point("redlock", clients, 1, args="fanout=sequential, nodes=7", cost=300.0) for clients in (1, 16)]
    return [*points, *(Point("semaphore", clients, 1, cost=5.0) for clients in (1, 16))]


@pytest.fixture(scope="module")
def run():
    return make_run(many_locks(), trials=3)


def test_a_semaphore_is_neither_the_best_nor_ranked_and_says_why(run):
    view = make_view(run)
    entries = [entry for load in ranking.by_load(view) for entry in load.entries]
    mine = [entry for entry in entries if entry.cell.series.label == "semaphore"]
    assert [(entry.place, entry.bold, entry.reason.rpartition("; ")[2]) for entry in mine] == [
        ("", None, "not ranked, because it lets 4 hold a key at a time")
    ] * 2
    assert all("not ranked" in entry.notes for entry in mine)


def test_a_chart_is_scaled_to_the_locks_that_are_ranked(run):
    view = make_view(run)
    (chart,) = throughput.render(view).figures
    tops = [max(cell.number("grants_per_s") for cell in view.cells if cell.id not in view.not_ranked)]
    semaphore = max(cell.number("grants_per_s") for cell in view.cells if cell.id in view.not_ranked)
    assert max(tops) < chart.layout["yaxis"]["range"][1] < semaphore


def test_a_load_of_zero_stands_at_the_left_end():
    axis = load_axis([0, 0.5, 0.99], "read_share")
    assert axis.scale == "linear"
    assert axis.place(0) == 0
    assert 0.9 < axis.place(0.99) <= 1


@needs_chromium
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_is_no_wider_than_its_window(run, browser, tmp_path, width):
    # More loads than strategies too: whose overview is wide, and hides a word in each cell that was not measured.
    wide = [Point(f"lock{n}", clients, 1) for n in range(12) for clients in range(1, 14) if (n + clients) % 3]
    for name, of in (("rows", run), ("columns", make_run(wide, trials=2))):
        path = tmp_path / f"{name}.html"
        path.write_text(build(of), encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        page.close()
