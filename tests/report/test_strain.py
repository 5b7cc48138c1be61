"""Cautions about the load and what came of it."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from pybench.analysis.summary import summarise
from pybench.records import Run
from pybench.report.cautions.of_run import cautions
from pybench.report.view import make_view
from tests.report.support import Point, make_run


def run_of(*points: Point, **columns: object) -> Run:
    """A run of `points`, each of whose trials has `columns`."""
    run = make_run(list(points))
    for name, value in columns.items():
        run.trials[name] = value
    summary = summarise(run.trials)
    return Run(run.path, run.manifest, run.trials, run.latency, run.timeline, run.violations, summary)


def said(run: Run, title: str) -> list[str]:
    return [caution.text for caution in cautions(make_view(run)) if caution.title == title]


HOT = Point("mutex", 64, 1)


def test_clients_that_waited_a_whole_trial_give_a_caution():
    (text,) = said(run_of(HOT, starved_clients=62, grants=20_000, window_s=0.3), "STARVED")
    assert text == ("Clients had no grant in the whole window of a trial: 62 of 64 clients in mutex (window 300 ms).")


def test_the_cells_in_which_most_clients_starved_come_first():
    run = make_run([Point("mutex", 64, keys) for keys in (1, 10, 100, 1000)])
    run.trials["starved_clients"] = run.trials["keys"].map({1: 5, 10: 40, 100: 7, 1000: 30})
    (text,) = said(run, "STARVED")
    assert re.findall(r"(\d+) of 64 clients", text) == ["40", "30", "7"]


def test_too_few_grants_for_all_clients_are_no_starvation():
    # Six grants to 64 clients leave 58 without one, however fair the lock is.
    assert said(run_of(HOT, starved_clients=58, grants=6), "STARVED") == []
    assert said(run_of(HOT, starved_clients=3, grants=130), "STARVED") == []


def test_a_record_from_before_has_no_figure_and_no_caution():
    assert said(run_of(HOT, starved_clients=None, clients_served=float("nan")), "STARVED") == []


def test_few_clients_served_give_a_caution_by_littles_law():
    (text,) = said(run_of(HOT, clients_served=2.6, grants=20_000), "Few clients served")
    assert "2.60 of 64 clients in mutex." in text
    assert said(run_of(HOT, clients_served=60.0, grants=20_000), "Few clients served") == []


def test_one_client_is_served_whenever_it_asks():
    alone = Point("mutex", 1, 1)
    assert said(run_of(alone, clients_served=0.4, grants=20_000), "Few clients served") == []


def test_acquires_that_ended_without_a_grant_give_a_caution():
    (text,) = said(run_of(HOT, grants=100, refused=700, timeouts=200), "Acquires without a grant")
    assert text == "Latencies leave them out. They are 90 % in mutex."
    assert said(run_of(HOT, grants=1_000, refused=40, timeouts=2), "Acquires without a grant") == []


def test_clients_without_a_lock_wait_for_nobody_however_few_are_inside_at_a_time():
    run = run_of(Point("none", 64, 1), HOT, clients_served=2.6, grants=20_000)
    (text,) = said(run, "Few clients served")
    assert "none" not in text
    assert "of 64 clients in mutex" in text


def test_overload_gives_a_caution_for_each_cell():
    run = run_of(HOT, rate_per_s=400.0, grants_per_s=350.0, arrivals=800, drops=0)
    assert said(run, "Overload") == ["400/s offered, 350/s granted: waits grow without bound (mutex)."]


def test_fewer_commands_than_the_lock_sends_give_a_caution():
    (text,) = said(run_of(HOT, strategy="replicated", commands_per_grant=2.4), "Fewer commands than the lock needs")
    assert "2.40 commands per grant" in text
    assert "at least 3." in text
    assert said(run_of(HOT, commands_per_grant=2.0), "Fewer commands than the lock needs") == []


def test_a_generator_that_stood_still_gives_a_caution():
    (text,) = said(run_of(HOT, longest_stall_ms=3_000.0), "Generator stood still")
    assert text.startswith("The load generator itself stood still for up to 3 s in mutex. ")
    assert said(run_of(HOT, longest_stall_ms=20.0), "Generator stood still") == []


def test_every_late_cell_is_named_with_what_to_do():
    points = [Point("mutex", clients, 1) for clients in (1, 4, 16, 64)]
    (text,) = said(run_of(*points, arrivals=1_000.0, drops=0.0, send_delay_p99_us=90_000.0), "Generator late")
    assert all(f"mutex with {point.concurrency} clients: p99 send delay 90 ms" in text for point in points[1:])
    assert "mutex with 1 client: p99 send delay 90 ms" in text
    assert "Lower the rate" in text


@pytest.mark.parametrize(
    ("columns", "often"),
    [
        ({"throttled_periods": 3, "throttled_ms": 0.0}, ", in up to 3 periods of a trial"),
        ({"throttled_periods": 1, "throttled_ms": None}, ", in up to 1 period of a trial"),
        ({"throttled_periods": None, "throttled_ms": 26.0}, ", for up to 26 ms of a trial"),
        ({"throttled_periods": 2, "throttled_ms": 26.0}, ", in up to 2 periods of a trial, for up to 26 ms of a trial"),
    ],
    ids=["the time stands still", "the time is unknown", "the periods are unknown", "both are counted"],
)
def test_trials_that_a_quota_stopped_give_a_caution_whichever_figure_the_kernel_counts(columns, often):
    run = run_of(HOT, **columns)
    (text,) = said(run, "Throttled")
    count = len(run.trials)
    assert text.startswith(f"In {count} of {count} trials the CPU quota stopped processes{often}. ")


def test_trials_that_no_quota_stopped_and_records_without_the_figures_give_no_caution():
    assert said(run_of(HOT, throttled_periods=0, throttled_ms=0.0), "Throttled") == []
    assert said(run_of(HOT, throttled_periods=None, throttled_ms=None), "Throttled") == []
    assert said(run_of(HOT), "Throttled") == []


def test_a_given_server_that_ran_on_the_core_of_the_load_generator_is_named_with_what_its_owner_can_do():
    run = run_of(HOT, shares_core=True)
    run.manifest["placement"] = {"drivers": [1], "servers": []}
    run.manifest["local_servers"] = [{"address": "redis://127.0.0.1:6379/0", "pid": 4711, "cores": [0, 1, 2]}]
    (text,) = said(run, "Shared core")
    assert f"At the end of {len(run.trials)} of {len(run.trials)} trials the given server ran on core 1" in text
    assert "taskset -acp 0,2 4711." in text
    assert said(run_of(HOT, shares_core=False), "Shared core") == []
    assert said(run_of(HOT), "Shared core") == []


@pytest.mark.parametrize(("idle_us", "told"), [(25.0, False), (38.0, False), (75.0, True), (16.0, True)])
def test_an_idle_call_that_is_no_longer_what_it_was_before_the_trials_gives_a_caution(idle_us, told):
    run = run_of(Point("mutex", 1, 1))
    summary = run.summary.assign(acquire_p50_us=[30.0])
    run = Run(run.path, run.manifest, run.trials, run.latency, run.timeline, run.violations, summary)
    run.manifest["baseline"] = [{"backend": "default", "appendfsync": "off", "poll": "block", "round_trip_us": idle_us}]
    texts = said(run, "Unsteady server")
    assert bool(texts) is told
    if told:
        assert (
            f"One idle call took {idle_us:g} µs before the trials, and the p50 of the same call was 30 µs" in texts[0]
        )


def test_a_call_with_an_added_round_trip_is_no_idle_call():
    run = run_of(Point("mutex", 1, 1, rtt="20ms"))
    summary = run.summary.assign(acquire_p50_us=[20_040.0], rtt_ms=[20.0])
    run = Run(run.path, run.manifest, run.trials, run.latency, run.timeline, run.violations, summary)
    run.manifest["baseline"] = [{"backend": "default", "appendfsync": "off", "poll": "block", "round_trip_us": 30.0}]
    assert not said(run, "Unsteady server")


@pytest.mark.parametrize("beside", [False, True])
def test_given_and_started_servers_in_one_run_give_a_caution(beside):
    run = run_of(HOT)
    given = {"label": "valkey 9.1", "address": "redis://10.0.0.1:6379", "settings": {"transport": "tcp"}}
    started = {"label": "postgres 18", "address": None, "settings": {"transport": "unix"}}
    run.manifest["servers"] = [given, started] if beside else [given]
    assert bool(said(run, "Servers differ")) is beside
    if beside:
        assert "pybench starts postgres 18, but not valkey 9.1" in said(run, "Servers differ")[0]


def test_grants_that_only_the_end_of_a_lease_made_give_a_caution():
    run = run_of(HOT, grants=10)
    summary: pd.DataFrame = run.summary.assign(lease_freed_grants=9, grants=10)
    freed = Run(run.path, run.manifest, run.trials, run.latency, run.timeline, run.violations, summary)
    (text,) = said(freed, "Freed by leases")
    assert "9 grants of 10 (90 %) in mutex." in text


def test_a_cell_in_which_nobody_was_granted_anything_gives_a_caution():
    (text,) = said(run_of(HOT, grants=0, unfinished=64, grants_per_s=0.0), "Nothing granted")
    assert text == "All 64 clients waited in vain in mutex."
    assert said(run_of(HOT, grants=5, unfinished=64), "Nothing granted") == []


def test_a_few_grants_that_a_lease_freed_are_no_fault_of_the_lock():
    assert said(run_of(HOT, grants=354, lease_freed_grants=1), "Freed by leases") == []
    assert said(run_of(HOT, grants=354, lease_freed_grants=40), "Freed by leases")


@pytest.mark.parametrize(
    ("title", "figures"),
    [
        ("Few clients served", {"clients_served": 2.6, "grants": 20_000}),
        ("Fewer commands than the lock needs", {"commands_per_grant": 1.2}),
        ("Freed by leases", {"grants": 354, "lease_freed_grants": 40}),
    ],
)
def test_what_planned_faults_cost_is_no_caution_about_the_lock(title, figures):
    assert said(run_of(HOT, **figures), title)
    assert said(run_of(HOT, faults="kill redis[0] at 1s for 500ms", **figures), title) == []
