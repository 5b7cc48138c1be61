"""Findings in words, as JSON, CSV and page: every figure that was seen stands in each of them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pybench.exits import Exit
from pybench.lab import telling
from pybench.lab.buyers_that_retry import Buyer
from pybench.lab.catalogue import EXPERIMENTS
from pybench.lab.experiments import retry
from pybench.lab.findings import Case, ClientRow, Expected, Figure, Findings, LeftOut, NotRun
from pybench.lab.page import page
from pybench.strategies import Count
from tests.report.browsing import needs_chromium

CLIENT = ClientRow(process_id=7, lock_acquired=True, success=True, duration_ms=1.5, stock_before=1, stock_after=0)


def case(label: str, expected: Expected, *, wrong: bool) -> Case:
    figures = (
        Figure("duration_ms", "duration", 12.5),
        Figure("contention_share", "contention rate", 0.98),
        Figure("final_stock", "final stock", -49),
        Figure("lost_ms", "lost after", None),
    )
    return Case(label, expected, went_wrong=wrong, sentence=f"what {label} did", figures=figures, clients=(CLIENT,))


def findings(*cases: Case, name: str = "oversell") -> Findings:
    return Findings(
        name=name,
        summary="Who sells too many",
        steps=("50 buyers want <one> piece.",),
        learn="Take a lock.",
        cases=cases,
        left_out=(LeftOut("a", "it waits for nobody"), LeftOut("b", "it waits for nobody")),
        seconds=1.25,
        settings={"stock": "1"},
        servers=("valkey 9.1.2",),
    )


WRONG, RIGHT, EITHER = Expected.WRONG, Expected.RIGHT, Expected.EITHER


@pytest.mark.parametrize(
    ("cases", "code", "words"),
    [
        (
            [("none", WRONG, True), ("mutex", RIGHT, False)],
            Exit.OK,
            "As expected: what is wrong was caught (none);",
        ),
        ([("none", WRONG, False), ("mutex", RIGHT, False)], Exit.CONTROL_NOT_CAUGHT, "VOID: none did not go wrong"),
        ([("none", WRONG, True), ("mutex", RIGHT, True)], Exit.PROMISE_BROKEN, "A LOCK BROKE ITS PROMISE: mutex."),
        ([("none", WRONG, False), ("mutex", RIGHT, True)], Exit.PROMISE_BROKEN, "mutex; none did not go wrong"),
        ([("semaphore", EITHER, True), ("fair", EITHER, False)], Exit.OK, "wrong without a broken promise: semaphore."),
    ],
)
def test_the_verdict_and_the_exit_code_follow_from_what_was_expected(cases, code, words):
    found = findings(*(case(label, expected, wrong=wrong) for label, expected, wrong in cases))
    assert found.exit is code
    assert words in telling.verdict(found)


def test_of_many_cases_a_sentence_says_how_many_there_are():
    found = findings(*(case(f"lock-{number}", RIGHT, wrong=False) for number in range(6)))
    assert telling.verdict(found) == "As expected: what is right held (6 cases)."


def test_labels_with_commas_are_told_apart():
    cases = [case("none", WRONG, wrong=True), case("mutex", RIGHT, wrong=False), case("a, b", RIGHT, wrong=False)]
    assert "was caught (none); what is right held (mutex; a, b)." in telling.verdict(findings(*cases))


def test_figures_are_shown_with_their_units():
    shown = [telling.figure_text(figure) for figure in case("mutex", RIGHT, wrong=False).figures]
    assert shown == ["12.5 ms", "98 %", "-49", "n/a"]


def test_json_has_every_figure_under_its_own_name():
    told = telling.to_json(findings(case("none", WRONG, wrong=True)))
    assert json.loads(json.dumps(told)) == told
    assert (told["experiment"], told["exit_code"], told["void"], told["seconds"]) == ("oversell", 0, False, 1.25)
    (only,) = told["cases"]
    assert only["figures"] == {"duration_ms": 12.5, "contention_share": 0.98, "final_stock": -49, "lost_ms": None}
    assert (only["expected"], only["went_wrong"], only["seen"]) == ("wrong", True, "shown")


def test_the_log_has_a_row_for_each_client():
    rows = list(csv.DictReader(io.StringIO(telling.log_text([findings(case("none", WRONG, wrong=True))]))))
    assert rows == [
        {
            "process_id": "7",
            "lock_acquired": "true",
            "stock_before": "1",
            "stock_after": "0",
            "duration_ms": "1.5",
            "success": "true",
            "error": "",
            "experiment": "oversell",
            "case": "none",
        }
    ]


def test_one_line_names_the_locks_that_one_reason_keeps_out():
    assert telling.left_out_lines(findings()) == ["Left out: a, b: each waits for nobody."]
    alone = replace(findings(), left_out=(LeftOut("a", "it waits"), LeftOut("b", "the lease ends"), LeftOut("c", "it")))
    assert telling.left_out_lines(alone)[:2] == ["Left out: a: it waits.", "Left out: b: the lease ends."]


def test_the_steps_count_in_words_and_tell_only_of_the_cases_that_took_part():
    told = EXPERIMENTS["transfer"].told
    texts = {"concurrency": "2", "transfers": "1", "accounts": "2", "work": "2ms", "window": "1s"}
    assert told(texts, ["none", "mutex"])[0] == "2 clients make 1 transfer each between 2 accounts with 1,000 on each."
    assert not any("Both at once" in step for step in told(texts, ["none", "mutex"]))
    assert any("Both at once" in step for step in told(texts, ["none", "multilock, both at once"]))
    assert any("Both at once" in step for step in told(texts)), "the help tells of all"
    fencing = EXPERIMENTS["fencing"]
    values = {one.name: one.default for one in fencing.parameters}
    assert not any("Checked" in step for step in fencing.told(values, ["mutex unchecked", "fenced unchecked"]))
    assert "Checked" in fencing.told(values, ["fenced unchecked", "fenced checked"])[-1]


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_no_step_counts_one_of_many(experiment):
    least = {
        one.name: str(one.allowed.lowest) if isinstance(one.allowed, Count) else one.default
        for one in experiment.parameters
    }
    assert not re.search(r"(?<!Client )\b1 (?!of\b|ms\b)[a-z]+s\b", " ".join(experiment.told(least)))


@pytest.mark.parametrize(
    ("fixed", "full", "code", "words"),
    [
        (18, 4, Exit.OK, "4 attempts of 20 buyers came within one millisecond, 18 with fixed pauses"),
        (18, 18, Exit.CONTROL_NOT_CAUGHT, "18 attempts of 20 buyers came within one millisecond, 18 with full jitter"),
        (18, 40, Exit.CONTROL_NOT_CAUGHT, "40 attempts of 20 buyers came within one millisecond, 18 with fixed pauses"),
        (3, 1, Exit.CONTROL_NOT_CAUGHT, "1 attempt of 20 buyers came within one millisecond, 3 with fixed pauses"),
    ],
)
def test_a_policy_of_pauses_is_no_lock_and_breaks_no_promise(fixed, full, code, words):
    stage = SimpleNamespace(count=lambda _name: 10)
    bought = [Buyer(asked=1.0, granted=1.5, attempts=2)] * 20
    cases = [
        retry._case(stage, name, peak, bought, fixed=fixed, full=full)
        for name, peak in (("fixed", fixed), ("full", full))
    ]
    assert findings(*cases).exit is code
    assert words in [one.sentence for one in cases]


@pytest.fixture
def pages() -> dict[str, str]:
    cases = [case("none", WRONG, wrong=True), case("fenced(renew=off) checked", RIGHT, wrong=False)]
    several = [findings(*cases, name=name) for name in ("oversell", "crash")]
    return {"one": page(several[:1]), "all": page(several, [NotRun("pooler", "skipped", "it needs pgbouncer")])}


def test_a_page_escapes_what_it_shows_and_has_no_id_twice(pages: dict[str, str]):
    for text in pages.values():
        assert "&lt;one&gt;" in text
        assert "<one>" not in text
        ids = Counter(re.findall(r' id="([^"]+)"', text))
        assert [one for one, count in ids.items() if count > 1] == []
    assert 'href="#crash"' in pages["all"]
    assert "pooler: skipped, it needs pgbouncer." in pages["all"]


def test_the_headline_of_several_names_those_that_did_not_run():
    good, bad = case("mutex", RIGHT, wrong=False), case("mutex", RIGHT, wrong=True)
    missing, lost = NotRun("pooler", "skipped", "it needs pgbouncer"), NotRun("crash", "failed", "the server ended")
    assert _headline(page([findings(good)], [missing, lost])) == (
        "1 experiment saw what was expected; skipped: pooler; failed: crash"
    )
    assert _headline(page([findings(bad), findings(good, name="retry")], [lost])) == (
        "Not as expected: oversell; failed: crash"
    )
    assert _headline(page([], [lost])) == "Failed: crash"


def _headline(text: str) -> str:
    (found,) = re.findall("<h1[^>]*>([^<]*)</h1>", text)
    return str(found)


@needs_chromium
@pytest.mark.parametrize("name", ["one", "all"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_page_fits_every_window_and_complains_of_nothing(browser, pages, tmp_path, name, width, scheme):
    (tmp_path / "page.html").write_text(pages[name], encoding="utf-8")
    shown = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
    complaints: list[str] = []
    shown.on("console", lambda message: complaints.append(message.text))
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.goto((tmp_path / "page.html").as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.locator("td", has_text="-49").first.is_visible()
    background = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    shown.close()
    assert complaints == []
