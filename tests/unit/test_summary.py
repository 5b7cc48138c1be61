from __future__ import annotations

import pandas as pd
import pytest
from support.trials import FakeResult, cell, record, totals

from pybench.analysis.summary import summarise
from pybench.columns import SUMMARY_FIGURES
from pybench.matrix.cells import CELL_COLUMNS
from pybench.records import schema


def trials(*records: object):
    return pd.DataFrame([one.row for one in records])


def grants(count, **fields: object):
    return FakeResult(totals=totals(grants=count), **fields)


def test_figures_are_medians_and_counts_are_sums():
    frame = trials(*(record(trial=n, result=grants(count)) for n, count in enumerate((2_000, 9_000, 4_000), start=1)))
    (row,) = summarise(frame).to_dict("records")
    assert (row["trials"], row["grants_per_s"]) == (3, 2_000)
    assert (row["grants_per_s_low"], row["grants_per_s_high"]) == (1_000, 4_500)
    assert (row["grants"], row["contended_grants"]) == (15_000, 7_500)
    assert row["bound_per_million"] == 400
    assert (row["verdict"], row["safe_grants_per_s"]) == ("SAFE", 2_000)


def test_the_columns_are_those_of_the_readme():
    frame = trials(record())
    assert list(summarise(frame)) == [*CELL_COLUMNS, *SUMMARY_FIGURES]


def test_inversions_are_summed_and_are_no_violations_of_a_lock_that_promises_no_order():
    passed = FakeResult(totals=totals(fifo_inversions=40))
    frame = trials(*(record(cell("fair"), trial=n, result=passed) for n in (1, 2)), record(cell("mutex")))
    stream, mutex = summarise(frame).to_dict("records")
    assert (stream["fifo_inversions"], stream["violations"], stream["verdict"]) == (80, 0, "SAFE")
    assert mutex["fifo_inversions"] == 0


def test_one_trial_has_no_interval():
    (row,) = summarise(trials(record())).to_dict("records")
    assert pd.isna(row["grants_per_s_low"])
    assert pd.isna(row["grants_per_s_high"])


def test_an_interrupted_trial_counts_as_evidence_and_not_as_a_figure():
    broken = FakeResult(totals=totals(grants=50, double_grants=1), stopped=True)
    (row,) = summarise(trials(record(trial=1, result=grants(2_000)), record(trial=2, result=broken))).to_dict("records")
    assert (row["trials"], row["grants_per_s"], row["grants"]) == (1, 1_000, 2_050)
    assert (row["verdict"], row["violations"], row["safe_grants_per_s"]) == ("UNSAFE", 1, 0)


def test_a_cell_with_interrupted_trials_only_has_no_figures():
    (row,) = summarise(trials(record(result=grants(50, stopped=True)))).to_dict("records")
    assert row["trials"] == 0
    assert pd.isna(row["grants_per_s"])


def quantiles(*of_trials: tuple[float, float | None]):
    """A cell whose trials have these p50 and p99.9, and what the summary makes of them."""
    frame = trials(*(record(trial=n) for n in range(1, len(of_trials) + 1)))
    frame[["acquire_p50_us", "acquire_p999_us"]] = pd.DataFrame(of_trials, dtype="float64").to_numpy()
    frame["acquire_p99_us"] = frame["acquire_p50_us"]
    (row,) = summarise(frame).to_dict("records")
    return row["acquire_p50_us"], row["acquire_p999_us"]


def test_a_quantile_needs_more_than_half_of_the_trials():
    assert quantiles((10, 100), (20, None), (30, 300))[1] == 200
    p50, p999 = quantiles((10, 100), (20, None))
    assert p50 == 15
    assert pd.isna(p999)


def test_quantiles_shown_beside_each_other_are_of_the_same_trials():
    # Two quick trials have enough grants for the p99.9; the slow one would lift the p50 above it.
    assert quantiles((10, 40), (50, None), (12, 44)) == (11, 42)


def test_one_unsafe_trial_makes_a_cell_unsafe():
    unsafe = FakeResult(totals=totals(lease_overruns=1))
    (row,) = summarise(trials(record(trial=1), record(trial=2, result=unsafe))).to_dict("records")
    assert row["verdict"] == "UNSAFE"
    assert pd.isna(row["bound_per_million"])


def test_a_trial_without_a_grant_takes_nothing_from_the_others():
    frame = trials(record(trial=1), record(trial=2, result=grants(0)))
    assert list(summarise(frame)["verdict"]) == ["SAFE"]
    assert list(summarise(frame.iloc[1:])["verdict"]) == ["UNDECIDED"]


def test_no_trials_make_an_empty_table_with_all_columns():
    summary = summarise(pd.DataFrame(columns=schema.TRIAL_COLUMNS))
    assert len(summary) == 0
    assert list(summary) == [*schema.CELL_COLUMNS, *SUMMARY_FIGURES]


@pytest.mark.parametrize("column", ["concurrency", "keys", "trials", "grants", "contended_grants", "violations"])
def test_counts_are_whole_numbers(column):
    assert summarise(trials(record()))[column].dtype == "int64"
