"""A swarm in one process, without a web page: what it measures, what it leaves, and how it ends."""

from __future__ import annotations

import signal

import pytest

import pybench
from pybench.exits import Exit
from tests.redis_client import connect
from tests.rewriting_proxy import RewritingProxy, without_nx
from tests.swarm.conftest import PASSWORD
from tests.swarm.swarming import free_port, headless, requests_of, swarm


def test_without_options_it_starts_its_own_server_and_records_a_run(tmp_path):
    options = [*headless(4, 3), "--json-file=locust", "--html=locust.html", "--out=run"]
    with swarm(tmp_path, *options) as one:
        assert one.end() == 0, one.said
    run = pybench.load(tmp_path / "run")
    assert run.manifest["status"] == "complete"
    assert run.exit_code is Exit.OK
    row = run.trials.iloc[0]
    assert (row["strategy"], row["keys"], row["concurrency"], row["verdict"]) == ("mutex", 1_000, 64, "SAFE")
    assert row["grants"] > 5_000
    assert row["grants"] == requests_of(tmp_path, "locust"), "Locust counts what the record counts"
    assert 1 < row["window_s"] < 8
    assert run.manifest["control"][0]["caught"]
    assert run.manifest["probes"]
    (worker,) = run.workers.to_dict("records")
    assert (worker["state"], worker["clients"], worker["grants"]) == ("finished", 64, row["grants"])
    assert "Workers</h2>" in (tmp_path / "run/report.html").read_text(encoding="utf-8")
    assert (tmp_path / "locust.html").exists()
    assert f"{row['grants']:,} grants in" in one.said
    assert "mutex: SAFE (" in one.said


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_a_signal_ends_it_in_order(tmp_path, server, url, number):
    with swarm(tmp_path, "--headless", "-u", "2", "-r", "2", f"--redis={url}", "--out=run", "--keys=4") as one:
        one.await_text("All users spawned")
        # Locust prints its table every two seconds.
        one.await_text("acquire")
        one.process.send_signal(number)
        assert one.end() == 0, one.said
    run = pybench.load(tmp_path / "run")
    assert run.manifest["status"] == "complete"
    assert run.trials["grants"].sum() > 100
    with connect(server.endpoint) as redis:
        assert redis.dbsize() == 0, "its keys are gone, and the given server goes on"
    told = one.said + "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in (tmp_path / "run").iterdir()
        if path.suffix in (".json", ".html", ".md", ".csv")
    )
    assert PASSWORD not in told


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--hold=1ms", "--ttl=2ms"], Exit.BAD_INPUT, "this test is impossible: the ttl of 2ms is shorter"),
        ([f"--redis=redis://:{PASSWORD}@127.0.0.1:{{port}}"], Exit.SERVER_UNREACHABLE, "nothing listens there"),
    ],
)
def test_what_cannot_start_says_why_and_exits_with_its_code(tmp_path, options, code, sentence):
    options = [option.format(port=free_port()) for option in options]
    with swarm(tmp_path, *headless(1, 60), *options) as one:
        assert one.end() == code, one.said
    assert sentence in one.said
    assert "Traceback" not in one.said
    assert PASSWORD not in one.said


def test_a_lock_that_breaks_its_promise_sets_the_exit_code(tmp_path, server):
    with RewritingProxy(server.endpoint, without_nx) as proxy:
        proxy.is_on.set()
        address = f"redis://:{PASSWORD}@127.0.0.1:{proxy.endpoint.port}/0"
        options = [*headless(1, 2), f"--redis={address}", "--keys=1", "--hold=1ms", "--out=run"]
        with swarm(tmp_path, *options) as one:
            assert one.end() == Exit.PROMISE_BROKEN, one.said
    assert "mutex: UNSAFE (" in one.said
    assert not pybench.load(tmp_path / "run").violations.empty
