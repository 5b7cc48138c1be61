"""The pages of two runs, of `compare` and of `gate`, in a real browser: their charts, filter and tables work."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import pytest

from pybench.analysis.between_runs import compare_runs
from pybench.analysis.between_runs.gate_answer import Outcome, answer_of
from pybench.analysis.significance import Ratio
from pybench.records import Run
from pybench.report import changes_page, gate_markdown, gate_page, gate_words
from pybench.report.changes_words import interval
from pybench.report.page import build
from tests.report.browsing import needs_chromium, until
from tests.report.support import Point, make_run

POINTS = [Point(name, clients, 1) for name in ("mutex", "fair") for clients in (8, 16)]


def side(name: str, seed: int) -> Run:
    run = make_run(POINTS, trials=8, seed=seed)
    gate = {"job": "1", "side": name, "blocks": 8, "pairs": {point.id: point.id for point in POINTS}}
    return dataclasses.replace(run, manifest={**run.manifest, "gate": gate})


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    old, new = (make_run(POINTS, trials=4, seed=seed) for seed in (1, 2))
    base, head, again = (side(name, seed) for seed, name in enumerate(("base", "head", "again"), 1))
    return {
        "report": build(old),
        "compare": changes_page.build(compare_runs(old, new), old, new),
        "gate": gate_page.build(answer_of(base, head, again), base, head),
    }


@pytest.mark.parametrize("name", ["report", "compare", "gate"])
def test_no_two_elements_of_a_page_have_one_id(pages, name):
    ids = Counter(re.findall(r'<[a-z][^<>]* id="([^"]+)"', pages[name]))
    assert {"answer", "throughput", "data-figures", "data-cells"} <= set(ids)
    assert [one for one, count in ids.items() if count > 1] == []


@needs_chromium
@pytest.mark.parametrize("name", ["compare", "gate"])
@pytest.mark.parametrize("width", [1280, 390])
def test_charts_are_drawn_the_filter_works_and_nothing_is_wider_than_the_window(browser, pages, tmp_path, name, width):
    (tmp_path / "page.html").write_text(pages[name], encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 860})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    page.evaluate("dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))")
    until(page, "[...document.querySelectorAll('.plot')].every(one => one.querySelector('svg.main-svg'))")
    assert page.locator(".changes tr[data-cell]:visible").count() >= len(POINTS)
    page.locator("#filter-find").fill("fair 16")
    until(page, "document.querySelectorAll('#cells tr[data-cell]:not([hidden])').length === 1")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
    assert complaints == []


def test_a_gate_names_figures_that_are_worse_and_do_not_decide():
    base, again = side("base", 1), side("again", 1)
    head = side("head", 1)
    slow = head.trials.assign(acquire_p50_us=head.trials["acquire_p50_us"] * 9)
    head = dataclasses.replace(head, trials=slow, summary=head.summary.assign(acquire_p50_us=9_000.0))
    answer = answer_of(base, head, again)
    assert answer.outcome is Outcome.PASS
    note = gate_words.notes(answer)[0]
    assert note.startswith("Worse, in figures that do not decide: p50 of mutex with 8 clients (")
    assert note.count("p50 of") == len(POINTS)
    assert note in " ".join(gate_markdown.build(answer, base, head).replace("\\", "").split())
    assert gate_words.notes(answer_of(base, again, again))[0] == gate_words.RULE


def test_an_interval_that_says_nothing_has_no_long_numbers():
    assert interval(Ratio(0.93, 0.89, 0.97, 0.95, 8)) == "0.930 [0.890 .. 0.970]"
    assert interval(Ratio(2.86, 4.5e-12, 1.8e12, 0.95, 8)) == "2.86 [<0.001 .. >1,000]"
