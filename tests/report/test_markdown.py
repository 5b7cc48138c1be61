from __future__ import annotations

import re

from pybench.report.markdown import build
from tests.report.support import Point, make_run, many_points


def test_it_is_the_answer_the_table_and_how_to_repeat_it():
    text = build(make_run())
    lines = text.splitlines()
    assert lines[0].startswith("### quickstart: Take mutex: ahead at 4 of 4 loads (")
    # The name of a lock is written as it is given on the command line, also where it begins a sentence.
    assert any(line.startswith("- naive is behind at 4 of 4 loads, ") for line in lines)
    assert "- ✕ **UNSAFE** naive in 2 of 6 cells: " in text
    rows = [line for line in text.partition("<details>")[0].splitlines() if line.startswith("|")]
    assert [row.split(" | ")[0] for row in rows].count("| #") == 6
    assert len(rows) == 6 * 2 + 18
    assert [line for line in lines if line.startswith("**")][:2] == ["**1 client, 1 key**", "**16 clients, 1 key**"]
    assert len({row.count(" | ") for row in rows}) == 1
    assert text.endswith("```sh\npybench run examples/quickstart.yaml --seed 20260314\n```\n")
    assert "valkey 9.1.0" in text
    assert "seed 20260314" in text


def test_unsafe_cells_are_struck_out():
    ranking, _, _ = build(make_run()).partition("<details>")
    rows = [line for line in ranking.splitlines() if "✕ UNSAFE" in line and line.startswith("|")]
    assert len(rows) == 6
    assert all(re.match(r"\| - \| (~~naive~~|none) \|", row) for row in rows)


def test_text_of_a_run_does_not_break_the_table_or_the_page():
    text = build(make_run([Point("mu|tex<b>", 1, 1, args="a=`x`"), Point("mutex", 16, 1)], name="a\n# b", trials=2))
    assert r"mu\|tex\<b\>" in text
    assert text.splitlines()[0].startswith("### a \\# b: ")


def test_a_large_run_stays_short():
    text = build(make_run(many_points(), trials=1))
    rows = [line for line in text.splitlines() if re.match(r"\| (-|=?\d+) \| ", line)]
    assert len(rows) == 30
    assert all("✓ SAFE" in row or "| none |" in row for row in rows)
    assert "170 further cells in the report." in text
    assert "**One trial.** " in text


def test_a_void_run_and_an_empty_one_say_so():
    assert "> **VOID.** " in build(make_run(caught=False, trials=1))
    assert "No trial was completed" in build(make_run([], status="interrupted"))
