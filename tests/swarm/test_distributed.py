"""A swarm over several processes: what workers counted is what the master shows and records, whatever befalls them."""

from __future__ import annotations

import signal

import pytest

import pybench
from pybench.exits import Exit
from tests.redis_client import connect
from tests.swarm.swarming import free_port, headless, master, requests_of, swarm, worker


def test_the_totals_of_two_workers_are_the_sum_of_what_each_measured(tmp_path):
    port = free_port()
    conducting = [*headless(4, 3), *master(port, 2), "--json-file=locust", "--out=run", "--keys=8", "--hold=200us"]
    with (
        swarm(tmp_path, *conducting, name="master") as one,
        swarm(tmp_path, *worker(port), name="worker-1"),
        swarm(tmp_path, *worker(port), name="worker-2") as other,
    ):
        assert one.end() == 0, one.said + other.said
        assert other.end() == 0, other.said
    run = pybench.load(tmp_path / "run")
    row, workers = run.trials.iloc[0], run.workers
    assert workers["state"].tolist() == ["finished", "finished"]
    assert workers["clients"].tolist() == [32, 32]
    assert workers["grants"].min() > 100
    assert row["concurrency"] == 64
    assert row["grants"] == workers["grants"].sum() == requests_of(tmp_path, "locust")
    # The core leaves out a last step that was hardly begun.
    assert 0.9 * row["grants"] < run.timeline["grants"].sum() <= row["grants"]
    response = run.latency[(run.latency["phase"] == "response") & (run.latency["outcome"] == "granted")]
    assert response["count"].sum() == row["grants"]
    assert row["contended_grants"] == workers["contended_grants"].sum()
    assert row["verdict"] == "SAFE"
    assert workers["verdict"].tolist() == ["SAFE", "SAFE"]
    # On one host the clocks are one: the true offset is 0, and within the error.
    assert (workers["clock_offset_us"].abs() <= workers["clock_error_us"]).all()


def test_workers_that_die_leave_and_come_late_are_told_and_what_they_counted_is_kept(tmp_path, server, url):
    port = free_port()
    options = ["--headless", "-u", "6", "-r", "6", f"--redis={url}", "--json-file=locust", "--out=run"]
    with (
        swarm(tmp_path, *options, *master(port, 3), "--keys=8", "--hold=200us", name="master") as one,
        swarm(tmp_path, *worker(port), name="dies") as dies,
        swarm(tmp_path, *worker(port), name="leaves") as leaves,
        swarm(tmp_path, *worker(port), name="stays") as stays,
    ):
        # Locust's table has them once a worker has reported.
        one.await_text("acquire")
        with swarm(tmp_path, *worker(port), name="late") as late:
            one.await_text("(index 3) reported as ready")
            leaves.process.send_signal(signal.SIGTERM)
            one.await_text("left the test; what it counted is kept")
            # Workers report every three seconds, and a silent one is missed after three.
            dies.process.send_signal(signal.SIGKILL)
            one.await_text("was lost: what it had reported is kept")
            # Locust's own listener may swallow a Ctrl-C.
            one.process.send_signal(signal.SIGTERM)
            assert one.end() == 0, one.said
            assert stays.end() == 0, stays.said
            assert late.end() == 0, late.said
        dies.end()
    run = pybench.load(tmp_path / "run")
    workers = run.workers.set_index("worker")
    assert sorted(workers["state"]) == ["finished", "finished", "left", "lost"]
    assert run.trials["grants"].sum() == workers["grants"].sum() == requests_of(tmp_path, "locust")
    joined = workers["joined_s"].sort_values()
    assert joined.iloc[3] > 0.3 + joined.iloc[2], "the late one joined in the middle"
    lost = workers[workers["state"] == "lost"].iloc[0]
    assert "lost: " in lost["note"]
    assert run.trials["verdict"].tolist() == ["SAFE"]
    report = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    assert "1 worker went silent" in report
    with connect(server.endpoint) as redis:
        assert redis.dbsize() == 0


@pytest.mark.parametrize(
    ("strategy", "code", "verdict"),
    [
        pytest.param("mutex", Exit.UNDECIDED, "UNDECIDED", marks=pytest.mark.slow),
        pytest.param("fenced", Exit.UNDECIDED, "UNDECIDED", marks=pytest.mark.slow),
        pytest.param("pg-optimistic", Exit.OK, "SAFE", marks=pytest.mark.slow),
        pytest.param("layered", Exit.OK, "SAFE", marks=pytest.mark.slow),
    ],
)
def test_shared_keys_are_judged_by_their_writes_or_not_at_all(tmp_path, strategy, code, verdict):
    port = free_port()
    conducting = [*headless(2, 4), *master(port, 2), f"--strategy={strategy}", "--shared-keys", "--keys=6", "--out=run"]
    with (
        swarm(tmp_path, *conducting, name="master") as one,
        swarm(tmp_path, *worker(port), name="worker-1"),
        swarm(tmp_path, *worker(port), name="worker-2"),
    ):
        assert one.end() == code, one.said
    run = pybench.load(tmp_path / "run")
    assert run.workers["grants"].min() > 0
    assert run.trials["verdict"].tolist() == [verdict], one.said
    if verdict == "UNDECIDED":
        assert "shared the keys" in one.said
    else:
        row = run.trials.iloc[0]
        assert row["final_value"] == row["acknowledged_writes"] > 0
