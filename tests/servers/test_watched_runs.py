"""What a whole run keeps of single clients, steps and servers, on servers that it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import pybench
from pybench.records import Run

STEPS = 5
GIVEN_UP = 5


def measured(path: Path) -> Run:
    return pybench.run(
        strategy=["mutex", "redlock(nodes=3)", "pg-advisory"],
        concurrency=8,
        hold="1ms",
        warmup="0s",
        duration="500ms",
        trials=1,
        out=path,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """A run of whose steps all are known: on a busy machine samples may be too far apart."""
    for attempt in range(GIVEN_UP):
        made = measured(tmp_path_factory.mktemp("watched") / str(attempt))
        if not made.telemetry["cpu_share"].isna().any():
            return made
    pytest.fail("samples of no run were close enough")


def of(run: Run, frame: str, strategy: str) -> pd.DataFrame:
    rows = getattr(run, frame)
    return rows[rows["cell"].str.startswith(strategy)]


@pytest.mark.parametrize("strategy", ["mutex", "redlock", "pg-advisory"])
def test_the_sums_of_the_files_are_the_figures_of_the_trial(run, strategy):
    trial = of(run, "trials", strategy).iloc[0]
    clients = of(run, "clients", strategy)
    assert list(clients["client"]) == list(range(8))
    assert clients["grants"].sum() == trial["grants"] > 0
    assert clients["longest_wait_us"].max() == pytest.approx(trial["longest_wait_us"])
    (commands,) = of(run, "commands", strategy)["commands"]
    assert commands.sum() == pytest.approx(trial["commands_per_grant"] * trial["grants"])
    assert abs(len(commands) - 10 * STEPS) <= 1
    assert len(of(run, "nodes", strategy)) == (3 if strategy == "redlock" else 0)


@pytest.mark.parametrize(("strategy", "servers"), [("mutex", 1), ("redlock", 3)])
def test_the_commands_of_the_telemetry_are_those_that_servers_and_clients_counted(run, strategy, servers):
    telemetry = of(run, "telemetry", strategy)
    watched = telemetry[telemetry["server"].notna()]
    assert set(watched["server"]) == set(range(1, servers + 1))
    assert len(watched) == servers * STEPS
    (commands,) = of(run, "commands", strategy)["commands"]
    calls = json.loads(of(run, "trials", strategy)["commandstats"].iloc[0])
    # The servers count before the window, after it, and the script of a release twice.
    assert watched["commands"].sum() <= sum(calls.values())
    # The ends of the window are interpolated.
    assert watched["commands"].sum() >= 0.7 * commands.sum()
    assert (watched["slow_commands"] >= 0).all()
    assert watched[["wal_bytes", "waits", "steal_share"]].isna().all(axis=None)


def test_the_machine_and_the_database_have_their_own_figures(run):
    telemetry = of(run, "telemetry", "pg-advisory")
    database, machine = (telemetry[telemetry["server"].notna()], telemetry[telemetry["server"].isna()])
    assert len(database) == len(machine) == STEPS
    assert database["cpu_share"].sum() > 0
    assert (database["wal_bytes"] >= 0).all()
    assert database["commands"].isna().all()
    seen = {what for waits in database["waits"] for what in json.loads(waits)}
    assert "Lock:advisory" in seen
    assert database["waiting"].max() <= 8
    assert 0 < machine["cpu_share"].sum() / STEPS < 2
    assert (telemetry["sampling_share"] >= 0).all()


def test_the_votes_of_a_quorum_lock_are_there(run):
    nodes = of(run, "nodes", "redlock")
    assert list(nodes["server"]) == [1, 2, 3]
    assert (nodes["granted"] + nodes["refused"] + nodes["errors"] + nodes["unanswered"] == nodes["asked"]).all()
    assert 0 < nodes["decided"].sum() <= of(run, "trials", "redlock")["grants"].iloc[0]
