"""How lock routes wait, try again and give up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest

from tests.service.running import OwnRedis, Running, whole_answer
from tests.waiting import wait_until


@contextmanager
def held(service: Running, strategy: str, resource: str, servers: list[OwnRedis], ttl: str = "30s") -> Iterator[None]:
    """Another client holds the lock, until the block is left."""
    with service.begin("POST", f"/api/locks/{strategy}/{resource}?work=30s&ttl={ttl}"):
        wait_until(lambda: all(server.keys(f"*resource:{resource}") for server in servers), "the lock is held")
        yield
    wait_until(lambda: not any(server.keys(f"*resource:{resource}") for server in servers), "the lock is released")


def test_simple_does_not_wait(service: Running, own_redis: OwnRedis):
    with held(service, "simple", "busy", [own_redis]):
        began = time.monotonic()
        assert service.post("/api/locks/simple/busy").status == 409
        assert time.monotonic() - began < 3


def test_a_redlock_that_another_client_holds_is_locked_and_not_without_quorum(
    service: Running, three_redis: list[OwnRedis]
):
    with held(service, "redlock", "busy", three_redis):
        reply = service.post("/api/locks/redlock/busy")
        assert (reply.status, reply.body) == (409, {"error": "Resource locked", "retryAfterMs": None})
        assert reply.headers["Retry-After"] == "1"


def test_other_strategies_wait_and_are_granted_when_the_lock_is_released(service: Running, own_redis: OwnRedis):
    with service.begin("POST", "/api/locks/mutex/waited-for?work=400ms") as holder:
        wait_until(lambda: own_redis.keys("*resource:waited-for"), "the lock is held")
        reply = service.post("/api/locks/mutex/waited-for?work=0")
        assert reply.status == 200
        assert b"200 OK" in whole_answer(holder)


def test_a_wait_ends(service: Running, own_redis: OwnRedis):
    with held(service, "mutex", "too-long", [own_redis]):
        began = time.monotonic()
        assert service.post("/api/locks/mutex/too-long?wait=300ms").status == 409
        # The next attempt would have come after the wait.
        assert 0.2 <= time.monotonic() - began < 5


@pytest.mark.parametrize("retry", ["none", "fixed(base=20ms)", "exponential(base=5ms, cap=50ms)", "full-jitter"])
def test_a_request_names_its_retry_policy(service: Running, own_redis: OwnRedis, retry: str):
    with held(service, "mutex", "tried", [own_redis]):
        began = time.monotonic()
        reply = service.post(f"/api/locks/mutex/tried?wait=300ms&retry={quote(retry)}")
        assert reply.status == 409
        if retry == "none":
            assert time.monotonic() - began < 0.25


def test_a_lock_that_ended_before_its_work_is_told(service: Running):
    reply = service.post("/api/locks/simple/short?ttl=50ms&work=300ms")
    assert (reply.status, reply.body["error"]) == (503, "Lock lost")
    assert service.figure('pybench_locks_total{outcome="lost",strategy="mutex"}') >= 1


def test_a_semaphore_lets_so_many_in(service: Running, own_redis: OwnRedis):
    with (
        service.begin("POST", "/api/locks/semaphore(permits=2)/seats?work=10s"),
        service.begin("POST", "/api/locks/semaphore(permits=2)/seats?work=10s"),
    ):
        wait_until(
            lambda: service.post("/api/locks/semaphore(permits=2)/seats?wait=0&work=0").status == 409,
            "both seats are taken",
        )


def test_resources_are_locked_one_by_one(service: Running, own_redis: OwnRedis):
    with held(service, "simple", "first", [own_redis]):
        assert service.post("/api/locks/simple/second").status == 200


def test_strategies_do_not_get_in_each_others_way(service: Running, own_redis: OwnRedis):
    with held(service, "fenced", "shared", [own_redis]):
        for strategy in ("simple", "semaphore(permits=2)", "reentrant", "fair", "read-write", "notify"):
            assert service.post(f"/api/locks/{strategy}/shared?wait=0").status == 200, strategy


def test_a_name_may_hold_any_text(service: Running):
    reply = service.post("/api/locks/simple/a%2Fb%20%C3%A4")
    assert (reply.status, reply.body["resourceId"]) == (200, "a/b ä")


def test_no_key_is_left_by_a_lock(service: Running, own_redis: OwnRedis):
    assert service.post("/api/locks/simple/left").status == 200
    assert own_redis.keys("*left*") == []


@pytest.mark.parametrize(
    "strategy", ["pg-optimistic", "pg-serializable", "pg-advisory", "replicated", "redlock(nodes=5)"]
)
def test_a_strategy_that_cannot_be_is_refused_with_the_reason(service: Running, strategy: str):
    reply = service.post(f"/api/locks/{strategy}/x")
    assert (reply.status, reply.body["error"]) == (422, "Strategy refused")
    assert reply.body["message"]


def test_more_strategies_than_there_is_room_for_are_taken_one_after_the_other(service: Running):
    for permits in range(1, 41):
        assert service.post(f"/api/locks/semaphore(permits={permits})/x?work=0").status == 200
