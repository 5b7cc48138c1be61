"""Guarded work on real servers: the values show what no lock prevented, and a good lock leaves them right."""

from __future__ import annotations

import pandas as pd
import pytest

import pybench
from pybench.analysis import verdicts
from pybench.records import Run
from pybench.report import write_report

MATRIX = """
name: guarded
trials: 1
duration: 250ms
warmup: 0
allow: [hold-beyond-ttl]
fixed: {concurrency: 8, hold: 1ms}
include:
  - {strategy: none, guard: counter}
  - {strategy: none, guard: counter, guard_on: postgres, threads: 2}
  - {strategy: none, guard: stock(3), threads: 2}
  - {strategy: none, guard: stock(3), guard_on: postgres}
  - {strategy: none, guard: "stock(3, constraint=on)", guard_on: postgres}
  - {strategy: mutex, guard: counter, threads: 2}
  - {strategy: mutex, guard: counter, guard_on: postgres}
  - {strategy: pg-advisory, guard: stock(3), threads: 2}
  - {strategy: atomic, guard: counter, threads: 2}
  - {strategy: atomic, guard: stock(3), guard_on: postgres}
  - {strategy: multilock, guard: transfer(50), keys: 4, keys_per_grant: 2}
  - {strategy: pg-row, guard: transfer(50), keys: 4, keys_per_grant: 2, threads: 2}
  - {strategy: multilock, guard: transfer(50), keys: 3, keys_per_grant: 2, hold: 30ms, ttl: 20ms}
  - {strategy: fenced(renew=off), guard: fenced-write, hold: 30ms, ttl: 20ms, retry: fixed(base=1ms)}
  - {strategy: fenced(renew=off), guard: fenced-write, guard_on: postgres, hold: 30ms, ttl: 20ms, threads: 2}
  - {strategy: mutex, guard: counter, hold: 30ms, ttl: 20ms, retry: fixed(base=1ms)}
  - {strategy: mutex, guard: counter, hold: 30ms, ttl: 20ms, retry: fixed(base=1ms), after_lease: stop}
  - {strategy: mutex, guard: counter, guard_on: postgres, faults: kill postgres at 100ms for 100ms}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("guarded")
    matrix = folder / "guarded.yaml"
    matrix.write_text(MATRIX)
    return pybench.run(matrix, out=folder / "run")


def of(run: Run, strategy: str, guard: str, **axes: object) -> pd.Series:
    """The trial of this cell."""
    rows = run.trials
    rows = rows[(rows["strategy"] == strategy) & (rows["guard"] == guard)]
    for column, value in axes.items():
        rows = rows[rows[column] == value]
    [row] = [row for _, row in rows.iterrows()]
    return row


@pytest.mark.parametrize("on", ["redis", "postgres"])
def test_without_a_lock_updates_are_lost(run, on):
    trial = of(run, "none", "counter", guard_on=on)
    assert trial["lost_updates"] > 0
    assert trial["lost_updates"] == trial["acknowledged_writes"] - trial["final_value"]
    assert (trial["verdict"], trial["promise_broken"]) == ("UNSAFE", False)


@pytest.mark.parametrize("on", ["redis", "postgres"])
def test_without_a_lock_more_is_sold_than_there_is(run, on):
    trial = of(run, "none", "stock(3)", guard_on=on)
    assert trial["oversold"] > 0
    assert trial["final_value"] == -trial["oversold"] == 3 - trial["acknowledged_writes"]


def test_a_constraint_refuses_what_a_lock_would_have_prevented(run):
    trial = of(run, "none", "stock(3, constraint=on)")
    assert (trial["oversold"], trial["final_value"], trial["acknowledged_writes"]) == (0, 0, 3)
    assert trial["refused_writes"] > 0
    reason = verdicts.judge_cell(run.trials[run.trials["cell"] == trial["cell"]], control_caught=True).reason
    assert f"nothing was oversold: the constraint refused {trial['refused_writes']:.0f} write" in reason
    assert trial["error_replies"] == "[]", "a refusal is a figure, and no error"


@pytest.mark.parametrize("on", ["redis", "postgres"])
def test_under_a_lock_no_update_is_lost(run, on):
    trial = of(run, "mutex", "counter", guard_on=on, hold="1ms", faults="none")
    assert trial["verdict"] == "SAFE"
    assert trial["final_value"] == trial["acknowledged_writes"] > 0
    assert trial["grants"] > 0


@pytest.mark.parametrize(("strategy", "on"), [("pg-advisory", "postgres"), ("atomic", "postgres")])
def test_under_a_lock_exactly_the_stock_is_sold(run, strategy, on):
    trial = of(run, strategy, "stock(3)", guard_on=on)
    assert (trial["verdict"], trial["final_value"], trial["acknowledged_writes"]) == ("SAFE", 0, 3)
    assert trial["sold_out"] > 0


def test_an_atomic_step_needs_no_lock_and_costs_no_command_of_one(run):
    trial = of(run, "atomic", "counter")
    assert (trial["verdict"], trial["judged_by"], trial["lost_updates"]) == ("SAFE", "effects", 0)
    assert trial["final_value"] == trial["acknowledged_writes"] > 0
    assert trial["contended_grants"] > 0
    assert trial["commands_per_grant"] == 0


@pytest.mark.parametrize("strategy", ["multilock", "pg-row"])
def test_money_is_neither_made_nor_lost_under_a_lock_of_both_accounts(run, strategy):
    trial = of(run, strategy, "transfer(50)", hold="1ms")
    assert (trial["verdict"], trial["sum_error"], trial["final_value"]) == ("SAFE", 0, 200)
    assert trial["acknowledged_writes"] > 0


def test_transfers_past_their_leases_make_or_lose_money(run):
    trial = of(run, "multilock", "transfer(50)", hold="30ms")
    assert trial["sum_error"] > 0
    assert (trial["verdict"], trial["promise_broken"]) == ("UNSAFE", False)


def test_updates_past_the_lease_are_lost_and_no_fault_of_the_lock(run):
    trial = of(run, "mutex", "counter", hold="30ms", after_lease="continue")
    assert trial["lost_updates"] > 0
    assert (trial["verdict"], trial["promise_broken"]) == ("UNSAFE", False)


def test_who_stops_with_the_lease_writes_nothing(run):
    trial = of(run, "mutex", "counter", after_lease="stop")
    assert (trial["acknowledged_writes"], trial["final_value"]) == (0, 0)
    assert trial["abandoned_works"] > 0
    assert trial["lost_updates"] == 0


@pytest.mark.parametrize("on", ["redis", "postgres"])
def test_a_resource_that_compares_fences_refuses_the_late_writers(run, on):
    trial = of(run, "fenced", "fenced-write", hold="30ms", guard_on=on)
    assert (trial["stale_writes"] > 0, trial["stale_writes_accepted"], trial["lost_updates"]) == (True, 0, 0)
    assert (trial["lease_overruns"] > 0, trial["verdict"]) == (True, "SAFE")


def test_the_report_has_the_figures_of_the_resources(run):
    html, markdown = write_report(run)
    page = html.read_text()
    assert "The guarded work" in page
    assert "overlaps, but nothing was oversold: the constraint refused" in page
    assert "What the guarded works left" in markdown.read_text()


def test_a_resource_whose_server_dies_loses_no_update(run):
    trial = of(run, "mutex", "counter", faults="kill postgres[0] at 100ms for 100ms")
    assert trial["abandoned_works"] + trial["unknown_writes"] > 0, "the one at work met the end of the server"
    assert trial["lost_updates"] == 0
    assert trial["final_value"] >= trial["acknowledged_writes"]
    assert trial["final_value"] <= trial["acknowledged_writes"] + trial["unknown_writes"]
    assert (trial["abandoned"], trial["lost_calls"], trial["promise_broken"]) == (0, 0, False)
