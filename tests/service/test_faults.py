"""Servers that are lost, clients that hang up, and the end of the service."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.service.running import OwnRedis, Running, serving, several_redis, whole_answer
from tests.waiting import wait_until

LOST_S = 1.0
"""Within which a request is told that a server is lost."""


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[OwnRedis]]:
    """A Redis and three for redlock, for the tests of this file to kill."""
    with several_redis(tmp_path_factory, "mortal", 4) as servers:
        yield servers


@pytest.fixture(scope="module")
def frail(mortal: list[OwnRedis], folder: Path) -> Iterator[Running]:
    redis, *redlock = mortal
    urls = ",".join(server.url for server in redlock)
    with serving(folder, "--redis", redis.url, "--redlock", urls) as running:
        yield running


def is_ok(service: Running) -> bool:
    return bool(service.get("/health").body["status"] == "ok")


def refusals(server: OwnRedis) -> int:
    """How many commands to take a lock it has carried out."""
    with server.client() as client:
        return int(client.info("commandstats").get("cmdstat_set", {"calls": 0})["calls"])


def test_a_redis_that_is_killed_is_told_within_a_second_and_comes_back(frail: Running, mortal: list[OwnRedis]):
    frail.reset("p", 100)
    assert frail.buy("p").status == 200
    mortal[0].kill()
    for path, body in (
        ("/purchase", {"product_id": "p"}),
        ("/purchase", {"product_id": "p", "lock_strategy": "none"}),
        ("/purchase", {"product_id": "p", "lock_strategy": "atomic"}),
        ("/reset", {"product_id": "p", "stock": 1}),
        ("/api/locks/simple/r", None),
        ("/api/locks/mutex/r?wait=10s", None),
    ):
        began = time.monotonic()
        reply = frail.post(path, body)
        assert (reply.status, reply.body["error"]) == (503, "Server unavailable"), path
        assert reply.headers["Retry-After"] == "1"
        assert time.monotonic() - began < LOST_S, path
    assert frail.post("/api/locks/redlock/r").status == 200
    health = frail.get("/health")
    assert (health.status, health.body["status"]) == (503, "unavailable")
    assert health.body["servers"][0]["state"] == "lost"
    mortal[0].start()
    wait_until(lambda: is_ok(frail), "the service finds its server again")
    frail.reset("p", 1)
    assert frail.buy("p").body["success"] is True
    assert frail.post("/api/locks/simple/r").status == 200


def test_those_who_wait_are_told_when_their_server_is_lost(frail: Running, mortal: list[OwnRedis]):
    with frail.begin("POST", "/api/locks/mutex/w?work=30s"):
        wait_until(lambda: mortal[0].keys("*resource:w"), "one holds the lock")
        before = refusals(mortal[0])
        # Its client tries again after ten seconds only, and would not see the loss before.
        with frail.begin("POST", "/api/locks/mutex/w?wait=30s&retry=fixed(base=10s)") as waiter:
            wait_until(lambda: frail.waiting() == 1, "one waits")
            wait_until(lambda: refusals(mortal[0]) > before, "its first attempt was refused")
            mortal[0].kill()
            began = time.monotonic()
            assert b" 503 " in whole_answer(waiter)
            assert time.monotonic() - began < LOST_S
    mortal[0].start()
    wait_until(lambda: is_ok(frail), "the service finds its server again")


def test_a_redis_that_hangs_is_told_within_a_second(frail: Running, mortal: list[OwnRedis]):
    os.kill(mortal[0].pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        assert frail.post("/api/locks/mutex/h?wait=10s").status == 503
        assert frail.buy("p").status == 503
        assert time.monotonic() - began < 2 * LOST_S
    finally:
        os.kill(mortal[0].pid, signal.SIGCONT)
    wait_until(lambda: is_ok(frail), "the service finds its server again")


def test_redlock_bears_the_loss_of_a_minority_and_tells_that_of_a_majority(frail: Running, mortal: list[OwnRedis]):
    mortal[1].kill()
    wait_until(lambda: frail.get("/health").body["status"] == "degraded", "the loss is seen")
    assert frail.get("/health").status == 200
    assert frail.post("/api/locks/redlock/r").status == 200
    mortal[2].kill()
    wait_until(lambda: frail.get("/health").body["status"] == "unavailable", "the loss is seen")
    began = time.monotonic()
    reply = frail.post("/api/locks/redlock/r")
    assert (reply.status, reply.body["error"]) == (503, "Quorum not reached")
    assert "1 of 3 servers answer" in reply.body["message"]
    assert time.monotonic() - began < LOST_S
    assert frail.post("/api/locks/simple/r").status == 200
    mortal[1].start()
    mortal[2].start()
    wait_until(lambda: is_ok(frail), "the service finds its servers again")
    assert frail.post("/api/locks/redlock/r").status == 200


@pytest.mark.parametrize("path", ["/api/locks/mutex/gone?work=30s", "/purchase?work=30s"])
def test_a_client_that_hangs_up_gets_its_lock_released(frail: Running, mortal: list[OwnRedis], path: str):
    frail.reset("gone", 1)
    frail.begin("POST", path, b'{"product_id":"gone"}').close()
    wait_until(lambda: not mortal[0].keys("*lock:*"), "the lock is released")
    with frail.begin("POST", path, b'{"product_id":"gone"}'):
        wait_until(lambda: mortal[0].keys("*lock:*"), "the lock is held")
    wait_until(lambda: not mortal[0].keys("*lock:*"), "the lock is released")
    wait_until(lambda: frail.logged(status=499, cut="hung_up"), "it is logged")
    assert frail.get("/stock/gone").body["stock"] == 1


def test_a_client_that_hangs_up_while_it_waits_takes_no_lock(frail: Running, mortal: list[OwnRedis]):
    with frail.begin("POST", "/api/locks/mutex/q?work=30s"):
        wait_until(lambda: mortal[0].keys("*resource:q"), "the lock is held")
        with frail.begin("POST", "/api/locks/mutex/q?wait=30s&work=30s"):
            wait_until(lambda: frail.waiting() == 1, "one waits")
        wait_until(lambda: frail.waiting() == 0, "nobody waits")
    wait_until(lambda: not mortal[0].keys("*resource:q"), "nobody holds the lock")


def test_a_thousand_waiting_clients_take_no_further_thread(frail: Running, mortal: list[OwnRedis]):
    threads = Path(f"/proc/{frail.pid}/task")
    with ExitStack() as opened:
        opened.enter_context(frail.begin("POST", "/api/locks/mutex/crowd?work=30s"))
        wait_until(lambda: mortal[0].keys("*resource:crowd"), "the lock is held")
        before = len(list(threads.iterdir()))
        for _ in range(1_000):
            opened.enter_context(frail.begin("POST", "/api/locks/mutex/crowd?wait=60s"))
        wait_until(lambda: frail.waiting() == 1_000, "all wait", seconds=60)
        assert len(list(threads.iterdir())) == before
        assert frail.post("/api/locks/mutex/other?work=0").status == 200
    wait_until(lambda: frail.waiting() == 0, "all are gone", seconds=60)
    wait_until(lambda: not mortal[0].keys("*resource:crowd"), "nobody holds the lock")


def test_a_service_that_is_told_to_end_finishes_what_holds_a_lock_and_refuses_what_waits(
    mortal: list[OwnRedis], tmp_path: Path
):
    before = mortal[0].keys()
    with serving(tmp_path, "--redis", mortal[0].url) as service:
        service.reset("p", 5)
        with ExitStack() as opened:
            holder = opened.enter_context(service.begin("POST", "/purchase?work=1s", b'{"product_id":"p"}'))
            wait_until(lambda: mortal[0].keys("*lock:mutex:stock:p"), "one holds the lock")
            waiter = opened.enter_context(service.begin("POST", "/purchase?wait=30s", b'{"product_id":"p"}'))
            wait_until(lambda: service.waiting() == 1, "one waits")
            service.process.send_signal(signal.SIGTERM)
            refused = whole_answer(waiter)
            assert b" 503 " in refused
            assert b"Service stopping" in refused
            wait_until(service.is_closed, "it accepts no more")
            assert b'"success":true' in whole_answer(holder)
        assert service.process.wait(30) == 0
        assert mortal[0].keys() == before


def test_a_second_signal_ends_at_once_and_releases_all_locks(mortal: list[OwnRedis], tmp_path: Path):
    before = mortal[0].keys()
    with serving(tmp_path, "--redis", mortal[0].url) as service, service.begin("POST", "/api/locks/mutex/x?work=30s"):
        wait_until(lambda: mortal[0].keys("*resource:x"), "the lock is held")
        began = time.monotonic()
        service.process.send_signal(signal.SIGINT)
        wait_until(lambda: service.is_closed(), "it accepts no more")
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(30) == 130
        assert time.monotonic() - began < 8
        assert mortal[0].keys() == before


@pytest.fixture(scope="module")
def narrow(mortal: list[OwnRedis], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a breaker, for two requests at once."""
    options = ("--redis", mortal[0].url, "--breaker", "3", "--max-waiting", "2")
    with serving(tmp_path_factory.mktemp("narrow"), *options) as running:
        yield running


def test_a_breaker_opens_after_failures_in_a_row_and_closes_by_a_probe(narrow: Running, mortal: list[OwnRedis]):
    assert narrow.post("/api/locks/simple/b").status == 200
    mortal[0].kill()
    wait_until(lambda: not is_ok(narrow), "the loss is seen")
    errors = [narrow.post("/api/locks/simple/b").body["error"] for _ in range(5)]
    assert errors == ["Server unavailable"] * 3 + ["Breaker open"] * 2
    mortal[0].start()
    wait_until(lambda: is_ok(narrow), "the service finds its server again")
    wait_until(lambda: narrow.post("/api/locks/simple/b").status == 200, "the probe closes the breaker")
    assert narrow.post("/api/locks/simple/b").status == 200


def test_requests_beyond_the_bound_are_told_to_come_later(narrow: Running):
    with (
        narrow.begin("POST", "/api/locks/mutex/x?work=10s"),
        narrow.begin("POST", "/api/locks/mutex/x?wait=10s"),
    ):
        wait_until(lambda: narrow.waiting() == 1, "one holds the lock, one waits")
        reply = narrow.post("/api/locks/mutex/y")
        assert (reply.status, reply.body["error"], reply.headers["Retry-After"]) == (503, "Service busy", "1")
        assert narrow.get("/health").status == 200
