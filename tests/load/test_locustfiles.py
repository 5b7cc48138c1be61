"""The four locustfiles against a real service, in their short form: figures, thresholds and exit codes."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.load.commands import PATIENT, Lanes, interrupted
from tests.service.running import Running


@pytest.fixture(scope="module")
def runs(service: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    host = f"http://127.0.0.1:{service.port}"
    lanes = Lanes(tmp_path_factory.mktemp("runs"))
    lanes.add("race", "safe", "oversell", host)
    lanes.add("race", "none", "oversell", host, "--lock-strategy", "none")
    lanes.add("load", "load", "high_load", host, **PATIENT)
    lanes.add("load", "too slow", "high_load", host, "--p95-ms", "0.01", "--users", "5", "--run-time", "3s")
    lanes.add("load", "lost", "high_load", host, "--lock-strategy", "none", "--users", "40", "--run-time", "3s")
    lanes.add("retry", "retry", "retry_comparison", host)
    lanes.add(
        "api", "api", "lock_api", host.replace("//", "//user:s3cret@"), "--resources", "2", "--users", "8", **PATIENT
    )
    yield lanes
    lanes.close()


def test_one_of_fifty_buyers_gets_the_only_item(runs: Lanes):
    run = runs["safe"]
    assert run.code == 0, run.out + run.err
    assert run.summary["conclusion"] == "1 of 50 buyers got the only item."
    metrics = run.summary["metrics"]
    assert (metrics["sold"], metrics["refused"], metrics["answers"], metrics["stock_left"]) == (1, 49, 50, 0)
    assert metrics["requests"] == 50


def test_without_a_lock_the_race_fails_and_says_how_many_got_the_item(runs: Lanes):
    run = runs["none"]
    assert run.code == 1, run.out + run.err
    sold = run.summary["metrics"]["sold"]
    assert sold > 1
    assert run.summary["conclusion"] == f"{sold} of 50 buyers got the only item."
    assert run.summary["conclusion"] in run.out
    assert re.search(rf"sold == 1 +{sold} +FAIL", run.out)
    assert [run.threshold(metric) for metric in ("sold", "answers")] == [False, True]


def test_high_load_holds_its_thresholds_and_loses_no_update(runs: Lanes):
    run = runs["load"]
    assert run.code == 0, run.out + run.err
    metrics = run.summary["metrics"]
    assert 20 < metrics["sold"] <= metrics["taken"]
    # Work under a lock is in each response time of a purchase, four of five requests.
    assert 20 <= metrics["p50_ms"] <= metrics["p95_ms"] <= metrics["p99_ms"] <= metrics["max_ms"]


def test_high_load_fails_when_a_percentile_is_over_its_limit(runs: Lanes):
    run = runs["too slow"]
    assert run.code == 1, run.out + run.err
    assert not run.threshold("p95_ms")
    assert run.threshold("error_rate")
    assert re.search(r"p95_ms < 0.01 +\S+ +FAIL", run.out)


def test_high_load_fails_when_confirmed_purchases_overwrite_one_another(runs: Lanes):
    run = runs["lost"]
    assert run.code == 1, run.out + run.err
    metrics = run.summary["metrics"]
    assert metrics["lost_updates"] == metrics["sold"] - metrics["taken"] > 0
    assert not run.threshold("lost_updates")
    assert run.threshold("error_rate")


def test_the_limits_of_high_load_are_those_that_are_promised(runs: Lanes):
    limits = {one["metric"]: one["limit"] for one in runs["lost"].summary["thresholds"]}
    assert limits == {"p95_ms": "< 500", "p99_ms": "< 1000", "error_rate": "< 0.1", "lost_updates": "<= 0"}


def test_the_retry_policies_are_told_apart_by_their_own_figures(runs: Lanes):
    run = runs["retry"]
    assert run.code == 0, run.out + run.err
    groups = run.summary["groups"]
    assert list(groups) == ["none", "fixed", "exponential", "full-jitter"]
    assert sum(group["requests"] for group in groups.values()) == pytest.approx(
        run.summary["metrics"]["requests"], 0.02
    )
    for policy, group in groups.items():
        assert group["granted"] > 0
        assert group["attempts_per_grant"] >= 1
        assert group["burst_ms"] >= 20 or policy == "none"
        assert re.search(rf"^  {policy} +[\d,]+ ", run.out, re.MULTILINE)
    assert groups["none"]["refused"] > groups["full-jitter"]["refused"]


def test_the_conclusion_about_policies_follows_from_the_table(runs: Lanes):
    summary = runs["retry"].summary
    groups = summary["groups"]
    most = max(group["granted_share"] for group in groups.values())
    best = [policy for policy, group in groups.items() if group["granted_share"] == most]
    cheapest = min(best, key=lambda policy: groups[policy]["attempts_per_grant"])
    quickest = min(best, key=lambda policy: groups[policy]["p99_ms"])
    assert summary["conclusion"].startswith(f"{', '.join(best)} granted most ({100 * most:.1f} % of the acquires). ")
    assert f"Of these, {cheapest} took the fewest attempts per grant (" in summary["conclusion"]
    assert f"and {quickest} had the lowest p99 (" in summary["conclusion"]


def test_a_held_lock_is_an_answer_and_retry_after_is_honoured(runs: Lanes):
    run = runs["api"]
    assert run.code == 0, run.out + run.err
    groups = run.summary["groups"]
    assert list(groups) == ["simple", "redlock"]
    assert min(group["granted"] for group in groups.values()) > 0
    metrics = run.summary["metrics"]
    assert metrics["errors"] == 0
    # A user who pauses for a second after each 409 meets at most seven in the 5 s of the run and their aftermath.
    assert 0 < metrics["locked"] <= 8 * 7
    assert max(group["acquire_p99_ms"] for group in groups.values()) >= 1_000


def test_a_password_in_the_address_is_shown_nowhere(runs: Lanes, service: Running):
    run = runs["api"]
    assert run.summary["service"] == f"http://127.0.0.1:{service.port}"
    assert "s3cret" not in f"{run.out}{run.err}{run.summary}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_tells_its_figures_and_has_not_passed(
    service: Running, tmp_path: Path, number: signal.Signals
):
    run = interrupted(tmp_path / "run", number, "retry_comparison", f"http://127.0.0.1:{service.port}")
    assert run.code == 1, run.out + run.err
    assert run.summary["conclusion"] == "The run was interrupted before its end."
    assert run.summary["passed"] is False
    assert run.summary["metrics"]["requests"] > 0
    assert "The run was interrupted before its end." in run.out


@pytest.mark.parametrize("name", ["safe", "none", "load", "retry", "api"])
def test_the_terminal_shows_what_the_summary_file_has(runs: Lanes, name: str):
    run = runs[name]
    assert list(run.summary) == [
        "schema", "tool", "scenario", "form", "service", "settings", "passed", "conclusion", "metrics", "groups",
        "thresholds",
    ]  # fmt: skip
    assert (run.summary["schema"], run.summary["tool"], run.summary["form"]) == (1, "locust", "short")
    assert run.summary["passed"] is (run.code == 0)
    end = run.out[run.out.rindex(f"{run.summary['scenario']} (short form) on ") :]
    for name in run.summary["metrics"]:
        assert re.search(rf"^  {name} +\S+$", end, re.MULTILINE), name
    assert end.rstrip().endswith("passed" if run.code == 0 else "thresholds missed")
