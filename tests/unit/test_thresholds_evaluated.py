from __future__ import annotations

import pandas as pd
import pytest
from support.trials import cell, record

from pybench.analysis.summary import summarise
from pybench.analysis.thresholds import evaluate
from pybench.columns import COLUMNS, SUMMARY_FIGURES
from pybench.matrix.thresholds import parse_check, parse_threshold
from pybench.notation import BadValue


@pytest.fixture
def summary():
    cells = [cell("mutex", keys=1), cell("mutex", args=(("nodes", 5),), keys=2), cell("naive", keys=2)]
    frame = summarise(pd.DataFrame([record(one).row for one in cells]))
    frame["cell"] = ["a", "b", "c"]
    frame["acquire_p99_us"] = [100.0, 60_000.0, float("nan")]
    return frame


def test_every_cell_is_held_against_a_threshold(summary):
    results = evaluate([parse_check("acquire.p99 < 50ms")], summary)
    assert [(result.cell, result.figure, result.passed) for result in results] == [
        ("a", 100.0, True),
        ("b", 60_000.0, False),
        ("c", None, False),
    ]
    assert [result.figure_text for result in results] == ["100 µs", "60 ms", "not measured"]


@pytest.mark.parametrize(
    ("where", "cells"),
    [
        ((("strategy", ("mutex",)),), ["a"]),
        ((("strategy", ("mutex(nodes=5)", "naive")),), ["b", "c"]),
        ((("keys", ("2",)),), ["b", "c"]),
        ((("keys", ("2",)), ("strategy", ("naive",))), ["c"]),
    ],
)
def test_where_selects_cells(summary, where, cells):
    assert [result.cell for result in evaluate([parse_check("violations == 0", where)], summary)] == cells


@pytest.mark.parametrize("where", [(("keys", ("7",)),), (("ttl", ("9s",)),)])
def test_a_threshold_that_meets_no_cell_is_missed(summary, where):
    (result,) = evaluate([parse_check("violations == 0", where)], summary)
    assert (result.cell, result.figure, result.passed) == (None, None, False)


@pytest.mark.parametrize(
    ("op", "passes"), [("<", False), ("<=", True), (">", False), (">=", True), ("==", True), ("!=", False)]
)
def test_every_comparison_does_what_it_says(summary, op, passes):
    (result, *_) = evaluate([parse_check(f"grants_per_s {op} 1")], summary.assign(grants_per_s=1.0))
    assert result.passed is passes


def test_no_thresholds_have_no_results(summary):
    assert evaluate([], summary) == []


def test_a_threshold_may_name_every_number_of_the_summary():
    numbers = [name for name in SUMMARY_FIGURES if COLUMNS[name].is_number]
    assert {"conflicts", "stale_writes", "starved_clients", "longest_wait_us", "trials"} <= set(numbers)
    for name in numbers:
        assert parse_threshold(f"{name} == 0").column == name
    for name in ("verdict", "judged_by_probe", "acquire_p99_pooled"):
        with pytest.raises(BadValue):
            parse_threshold(f"{name} == 0")
