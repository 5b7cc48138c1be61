"""What is red on the page: only locks that broke the exclusion they promise. And where verdicts and figures stand."""

from __future__ import annotations

import json
import re

import pytest

from pybench.analysis.comparison import compare_locks
from pybench.cli.table import render
from pybench.columns import COLUMNS
from pybench.report import markdown
from pybench.report.page import build
from tests.report.support import Point, make_run
from tests.report.test_page import Page


@pytest.fixture(scope="module")
def usual_html() -> str:
    return build(make_run())


@pytest.fixture(scope="module")
def usual(usual_html) -> Page:
    return Page(usual_html)


def test_a_lock_that_broke_its_promise_comes_first_and_overlaps_without_a_lock_are_evidence(usual, usual_html):
    assert re.search(r"✕ UNSAFE naive in 2 of 6 cells: [\d,]+ double grants; this breaks its promise", usual.text)
    assert re.search(r"none in 4 of 6 cells, as expected: [\d,]+ double grants; none takes no lock", usual.text)
    red = re.findall(r'verdict unsafe">.*?<s>(.*?)</s>', usual_html.partition('id="ranking"')[0])
    assert red == ["naive"]


def test_a_cell_without_a_lock_is_nowhere_red(usual_html):
    rows = re.findall(r'<tbody data-load="\d+" id="cell-(\w+)[^>]*>(.*?)</tbody>\s', usual_html, re.DOTALL)
    assert len(rows) == 18
    alarms = {name for name, row in rows if "verdict unsafe" in row}
    assert (alarms, {name for name, row in rows if "verdict expected" in row}) == ({"naive"}, {"none"})


def test_violations_of_cells_without_a_lock_stand_below_as_evidence(usual):
    section = usual.text.partition(" In most violations")[2]
    broken, _, evidence = section.partition("Evidence that the checker works")
    assert re.search(r"naive , 16 clients, 1 key: [\d,]+ violations", broken)
    assert "none , " not in broken
    assert re.search(r"none , 16 clients, 1 key: [\d,]+ violations", evidence)
    run = make_run([Point("none", 16, 1, broken=True), Point("mutex", 16, 1)])
    alone = Page(build(run)).text
    assert "✓ None in 1 cell of locks that promise exclusion." in alone


def test_a_lock_is_struck_out_where_it_broke_its_promise_and_only_there(usual_html):
    chips = re.findall(r'data-series="(\w+)"[^>]*>.*?</button>', usual_html)
    struck = re.findall(r'data-series="(\w+)"[^>]*>[^\n]*?<s>\1</s>', usual_html)
    assert (chips, struck) == (["none", "naive", "mutex"], ["naive"])
    rows = re.findall(r'<tr class="(\w+)"[^>]*><th scope="row" data-sort="(\w+)">(.*?)</th>', usual_html)
    assert len(rows) == 6 * 18 + 6, "six tables of all cells, and one of those where clients waited for each other"
    assert all((verdict == "unsafe" and lock == "naive") == ("<s>" in name) for verdict, lock, name in rows)
    labels = [one["text"] for one in Page(usual_html).figures()["throughput-rate-0"]["layout"]["annotations"]]
    assert {label for label in labels if label.startswith("<s>")} == {"<s>naive</s>"}


def test_the_badge_stands_beside_the_name_and_the_bound_in_a_column_of_its_own(usual_html):
    heads = re.findall(r'</button> <span class="verdict \w+"', usual_html)
    assert len(heads) == 18
    bounds = re.findall(r'<td class="number" data-label="true rate below"[^>]*>([^<]*)</td>', usual_html)
    assert len(bounds) == 18
    assert {text == "n/a" or bool(re.fullmatch(r"0\.0*[1-9]\d\u00a0%", text)) for text in bounds} == {True}
    assert len(set(bounds)) > 3


def test_the_page_has_one_legend_and_each_chart_and_table_has_one_home(usual, usual_html):
    assert len([1 for _, attrs in usual.tags if attrs.get("class") == "legend"]) == 1
    answer = re.search(r'<section id="answer".*?</section>', usual_html, re.DOTALL)[0]
    assert "<table" not in answer
    assert 'class="plot"' not in answer
    captions = re.findall(r'<caption class="hidden">(.*?)</caption>', usual_html)
    assert len(captions) == len(set(captions)) > 6
    figures = usual.figures().values()
    drawn = [json.dumps([figure["layout"].get("yaxis", {}).get("title"), figure["data"]]) for figure in figures]
    assert len(drawn) == len(set(drawn))


def test_every_table_and_the_markdown_write_a_column_in_its_format(usual_html):
    run = make_run()
    row = run.summary[run.summary["cell"] == "mutex concurrency=16 keys=1"].iloc[0]
    columns = ("safe_grants_per_s", "acquire_p50_us", "longest_wait_us", "jain", "commands_per_grant")
    texts = [COLUMNS[column].format.text(row[column]) for column in columns]
    (line,) = [one for one in markdown.build(run).split("**16 clients, 1 key**")[1].splitlines()[2:6] if "mutex" in one]
    (terminal,) = [
        one.plain
        for one in render(run.summary.to_dict("records"), compare_locks(run.summary, run.trials), [], 200)
        if texts[0] in one.plain
    ]
    cell = re.search(r'id="cell-mutex-concurrency-16-keys-1".*?</tbody>', usual_html, re.DOTALL)[0].replace(
        "\u00a0", " "
    )
    for text in texts:
        assert text in line, text
        assert text in terminal, text
        assert f">{text}<" in cell, text
