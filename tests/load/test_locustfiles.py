"""The four locustfiles against a real service, in their short form, by the commands of the manual and a few more.

Runs that share nothing go side by side; those that use the same products go one after another.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from pybench.servers.supervised import free_port
from tests.load.commands import Ended, headless, interrupted
from tests.load.page import DISTRIBUTED, LOCUST, PAGE, SERVE, code_told, command, run
from tests.service.running import Running, serving

Runs = dict[str, Future[Ended]]


def the(*words: str) -> str:
    """The first command of the page with all of these words."""
    return next(line for line in LOCUST if all(word in line for word in words))


SAFE, NONE = the("oversell"), the("oversell", "--lock-strategy none")
LOAD, RETRY, API = the("high_load", "--p95-ms"), the("retry_comparison"), the("lock_api")
PROCESSES, MASTER = the("--processes"), the("--master ")
SECONDS = {RETRY: "9s", API: "5s", PROCESSES: "20s"}
"""How long a run takes, where one second does not show what is tested."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The service as the page starts it, on a free port."""
    (line,) = SERVE
    words, _ = command(line)
    with serving(tmp_path_factory.mktemp("service"), *words[2:], "--log-level", "error") as running:
        yield running


@pytest.fixture(scope="module")
def runs(service: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Each command of the page by its line, and further runs by a name."""
    host, folder = f"http://127.0.0.1:{service.port}", tmp_path_factory.mktemp("runs")
    found: Runs = {}
    with ThreadPoolExecutor(1) as buyers, ThreadPoolExecutor(1) as customers, ThreadPoolExecutor(6) as free:
        for number, line in enumerate(LOCUST):
            if line not in DISTRIBUTED:
                lane = buyers if "oversell" in line else customers if "high_load" in line else free
                address = host.replace("//", "//user:s3cret@") if line == API else host
                seconds = SECONDS.get(line, "1s")
                found[line] = lane.submit(run, line, folder / str(number), address, LOCUST_RUN_TIME=seconds)
        for name, options in {
            "too slow": ["--p95-ms", "0.01", "--users", "5", "--run-time", "1s"],
            "lost": ["--lock-strategy", "none", "--users", "40", "--run-time", "3s"],
        }.items():
            found[name] = customers.submit(headless, folder / name, "high_load", host, *options)
        for strategy in ("safe", "none"):
            found |= buyers.submit(distributed, free, folder / f"distributed-{strategy}", host, strategy).result()
        yield found


def distributed(pool: ThreadPoolExecutor, folder: Path, host: str, strategy: str) -> Runs:
    """The master and the workers of the page, ended: `safe master`, `safe worker 1`, ..."""
    folder.mkdir()
    port = str(free_port())
    ports = {"LOCUST_MASTER_BIND_HOST": "127.0.0.1", "LOCUST_MASTER_BIND_PORT": port, "LOCUST_MASTER_NODE_PORT": port}
    found: Runs = {}
    for number, line in enumerate(DISTRIBUTED):
        name = f"{strategy} {'master' if line == MASTER else f'worker {number}'}"
        found[name] = pool.submit(run, line, folder / name, host, PYBENCH_LOCK_STRATEGY=strategy, **ports)
    for one in found.values():
        one.exception()
    return found


@pytest.mark.parametrize("line", [line for line in LOCUST if line not in DISTRIBUTED])
def test_every_command_of_the_page_ends_as_it_says(runs: Runs, line: str):
    done = runs[line].result()
    assert done.code == code_told(line), done.out + done.err


@pytest.mark.parametrize(("strategy", "code"), [("safe", 0), ("none", 1)])
def test_fifty_buyers_of_two_workers_are_judged_together(runs: Runs, strategy: str, code: int):
    master, *workers = (runs[name].result() for name in runs if name.startswith(f"{strategy} "))
    assert master.code == code, master.out + master.err
    metrics = master.summary["metrics"]
    assert metrics["answers"] == metrics["requests"] == 50
    assert metrics["sold"] == 50 - metrics["refused"]
    assert metrics["sold"] == 1 if strategy == "safe" else metrics["sold"] > 1
    assert master.summary["conclusion"] == f"{metrics['sold']} of 50 buyers got the only item."
    assert len(workers) == 2
    for worker in workers:
        assert worker.code == 0, worker.out + worker.err
        assert worker.summary is None
        assert "threshold" not in worker.out
        assert "Got quit message from master" in worker.err


def test_the_last_reports_of_workers_are_part_of_the_verdict(runs: Runs):
    metrics = runs[PROCESSES].result().summary["metrics"]
    # All users have stopped before the run ends. On a busy machine, an answer may come too late for its user.
    assert 0 < metrics["taken"] * 0.95 < metrics["sold"] <= metrics["taken"]


def test_every_field_of_the_summary_file_is_explained(runs: Runs):
    rows = PAGE.partition("| field | meaning |")[2]
    told = [
        name for names in re.findall(r"^\| ([^|]+) \|", rows, re.MULTILINE) for name in re.findall(r"`(\w+)`", names)
    ]
    summary = runs[SAFE].result().summary
    assert sorted(told) == sorted(summary)
    common = re.search(r"Every scenario has the metrics (.*?)\. Set-up", PAGE, re.DOTALL)
    assert common is not None
    names = re.findall(r"`(\w+)`", common[1])
    assert names == list(summary["metrics"])[: len(names)]


def test_one_of_fifty_buyers_gets_the_only_item(runs: Runs):
    run = runs[SAFE].result()
    assert run.code == 0, run.out + run.err
    assert run.summary["conclusion"] == "1 of 50 buyers got the only item."
    metrics = run.summary["metrics"]
    assert (metrics["sold"], metrics["refused"], metrics["answers"], metrics["stock_left"]) == (1, 49, 50, 0)
    assert metrics["requests"] == 50


def test_without_a_lock_the_race_fails_and_says_how_many_got_the_item(runs: Runs):
    run = runs[NONE].result()
    assert run.code == 1, run.out + run.err
    sold = run.summary["metrics"]["sold"]
    assert sold > 1
    assert run.summary["conclusion"] == f"{sold} of 50 buyers got the only item."
    assert run.summary["conclusion"] in run.out
    assert re.search(rf"sold == 1 +{sold} +FAIL", run.out)
    assert [run.threshold(metric) for metric in ("sold", "answers")] == [False, True]


def test_high_load_holds_its_thresholds_and_loses_no_update(runs: Runs):
    run = runs[LOAD].result()
    assert run.code == 0, run.out + run.err
    metrics = run.summary["metrics"]
    assert 20 < metrics["sold"] <= metrics["taken"]
    # Work under a lock is in each response time of a purchase, four of five requests.
    assert 20 <= metrics["p50_ms"] <= metrics["p95_ms"] <= metrics["p99_ms"] <= metrics["max_ms"]


def test_high_load_fails_when_a_percentile_is_over_its_limit(runs: Runs):
    run = runs["too slow"].result()
    assert run.code == 1, run.out + run.err
    assert not run.threshold("p95_ms")
    assert run.threshold("error_rate")
    assert re.search(r"p95_ms < 0.01 +\S+ +FAIL", run.out)


def test_high_load_fails_when_confirmed_purchases_overwrite_one_another(runs: Runs):
    run = runs["lost"].result()
    assert run.code == 1, run.out + run.err
    metrics = run.summary["metrics"]
    assert metrics["lost_updates"] == metrics["sold"] - metrics["taken"] > 0
    assert not run.threshold("lost_updates")
    assert run.threshold("error_rate")


def test_the_limits_of_high_load_are_those_that_are_promised(runs: Runs):
    limits = {one["metric"]: one["limit"] for one in runs["lost"].result().summary["thresholds"]}
    assert limits == {"p95_ms": "< 500", "p99_ms": "< 1000", "error_rate": "< 0.1", "lost_updates": "<= 0"}


def test_the_retry_policies_are_told_apart_by_their_own_figures(runs: Runs):
    run = runs[RETRY].result()
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


def test_the_conclusion_about_policies_follows_from_the_table(runs: Runs):
    summary = runs[RETRY].result().summary
    groups = summary["groups"]
    most = max(group["granted_share"] for group in groups.values())
    best = [policy for policy, group in groups.items() if group["granted_share"] == most]
    cheapest = min(best, key=lambda policy: groups[policy]["attempts_per_grant"])
    quickest = min(best, key=lambda policy: groups[policy]["p99_ms"])
    assert summary["conclusion"].startswith(f"{', '.join(best)} granted most ({100 * most:.1f} % of the acquires). ")
    assert f"Of these, {cheapest} took the fewest attempts per grant (" in summary["conclusion"]
    assert f"and {quickest} had the lowest p99 (" in summary["conclusion"]


def test_a_held_lock_is_an_answer_and_retry_after_is_honoured(runs: Runs):
    run = runs[API].result()
    assert run.code == 0, run.out + run.err
    groups = run.summary["groups"]
    assert list(groups) == ["simple", "redlock"]
    assert min(group["granted"] for group in groups.values()) > 0
    metrics = run.summary["metrics"]
    assert metrics["errors"] == 0
    # A user who pauses for a second after each 409 meets at most seven in the 5 s of the run and their aftermath.
    assert 0 < metrics["locked"] <= run.summary["settings"]["users"] * 7
    assert max(group["acquire_p99_ms"] for group in groups.values()) >= 1_000


def test_a_password_in_the_address_is_shown_nowhere(runs: Runs, service: Running):
    run = runs[API].result()
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


@pytest.mark.parametrize("line", [SAFE, NONE, LOAD, RETRY, API])
def test_the_terminal_shows_what_the_summary_file_has(runs: Runs, line: str):
    run = runs[line].result()
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
