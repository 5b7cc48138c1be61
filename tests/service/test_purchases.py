"""What a shop promises under a race, and what becomes of purchases that are sent twice."""

from __future__ import annotations

import pytest

from tests.service.running import OwnRedis, Running, whole_answer
from tests.waiting import wait_until

BUYERS = 50


def racers(service: Running, strategy: str, query: str = "") -> list[dict[str, object]]:
    """The answers of 50 buyers who race for a stock of 1."""
    service.reset("last-one", 1)
    body = {"product_id": "last-one", "quantity": 1, "lock_strategy": strategy}
    replies = service.at_once(BUYERS, f"/purchase{query}", body)
    assert {reply.status for reply in replies} == {200}
    return [reply.body for reply in replies]


def test_without_a_lock_more_is_sold_than_there_was(service: Running):
    answers = racers(service, "none", "?work=100ms")
    sold = [answer for answer in answers if answer["success"]]
    assert len(sold) > 1
    assert all((answer["stock_before"], answer["stock_after"]) == (1, 0) for answer in sold)
    assert not any(answer["lock_acquired"] for answer in answers)


@pytest.mark.parametrize("strategy", ["safe", "naive", "atomic", "redlock", "fenced", "fair-queue"])
def test_with_a_lock_exactly_one_is_sold(service: Running, strategy: str):
    answers = racers(service, strategy, "?wait=20s&work=1ms")
    assert sum(bool(answer["success"]) for answer in answers) == 1
    assert {answer["error"] for answer in answers if not answer["success"]} == {"Insufficient stock"}
    assert service.get("/stock/last-one").body["stock"] == 0


def test_a_purchase_that_does_not_get_its_lock_is_refused_with_200(service: Running):
    answers = racers(service, "safe", "?wait=0&work=200ms")
    refused = [answer for answer in answers if not answer["success"]]
    assert refused
    assert {answer["error"] for answer in refused} <= {
        "Lock not acquired: the lock is held by another client",
        "Insufficient stock",
    }
    assert any(not answer["lock_acquired"] for answer in refused)


def test_a_stock_goes_down_by_what_was_sold_and_no_further(service: Running):
    service.reset("many", 30)
    body = {"product_id": "many", "quantity": 1, "lock_strategy": "safe"}
    replies = service.at_once(BUYERS, "/purchase?work=0&wait=20s", body)
    assert sum(reply.body["success"] for reply in replies) == 30
    assert service.get("/stock/many").body["stock"] == 0


def test_a_lock_that_is_lost_during_the_work_is_told(service: Running):
    service.reset("slow", 5)
    reply = service.buy("slow", query="?work=200ms&ttl=50ms")
    assert reply.body["success"] is True
    assert "Lock lost" in reply.body["error"]


@pytest.mark.parametrize("strategy", ["none", "safe", "atomic"])
def test_a_purchase_that_is_sent_again_gets_the_first_answer(service: Running, strategy: str):
    service.reset("once", 10)
    first = service.buy("once", strategy, Idempotency_Key=f"key-{strategy}")
    again = service.buy("once", strategy, Idempotency_Key=f"key-{strategy}")
    assert first.status == again.status == 200
    assert first.body == again.body
    assert first.body["success"] is True
    assert (first.headers.get("Idempotency-Replayed"), again.headers["Idempotency-Replayed"]) == (None, "true")
    assert service.get("/stock/once").body["stock"] == 9


def test_a_refusal_for_the_stock_is_kept_too(service: Running):
    service.reset("sold-out", 0)
    first = service.buy("sold-out", Idempotency_Key="sold-out")
    service.reset("sold-out", 5)
    assert service.buy("sold-out", Idempotency_Key="sold-out").body == first.body
    assert first.body["error"] == "Insufficient stock"


def test_a_purchase_that_did_not_get_its_lock_can_be_sent_again(service: Running):
    service.reset("fought-over", 5)
    holder = service.begin("POST", "/purchase?work=10s", b'{"product_id":"fought-over"}')
    try:
        refused = service.buy("fought-over", query="?wait=100ms", Idempotency_Key="fought-over")
        while refused.body["success"]:
            refused = service.buy("fought-over", query="?wait=100ms", Idempotency_Key="another")
        assert "held by another client" in refused.body["error"]
    finally:
        holder.close()
    reply = service.buy("fought-over", query="?wait=100ms", Idempotency_Key="fought-over")
    while not reply.body["success"]:
        reply = service.buy("fought-over", query="?wait=100ms", Idempotency_Key="fought-over")
    assert "Idempotency-Replayed" not in reply.headers


def test_a_key_with_another_request_is_refused(service: Running):
    service.reset("mixed-up", 10)
    assert service.buy("mixed-up", Idempotency_Key="mixed-up").status == 200
    for other in (
        service.buy("mixed-up", quantity=2, Idempotency_Key="mixed-up"),
        service.buy("mixed-up", query="?work=1ms", Idempotency_Key="mixed-up"),
        service.post("/api/locks/simple/mixed-up", Idempotency_Key="mixed-up"),
    ):
        assert (other.status, other.body["error"]) == (422, "Idempotency-Key reused")
    assert service.get("/stock/mixed-up").body["stock"] == 9


def test_of_many_equal_requests_at_once_one_is_carried_out(service: Running):
    service.reset("eager", 10)
    body = {"product_id": "eager", "quantity": 1, "lock_strategy": "none"}
    replies = service.at_once(20, "/purchase?work=100ms", body, Idempotency_Key="eager")
    assert {reply.status for reply in replies} <= {200, 409}
    assert {reply.body["error"] for reply in replies if reply.status == 409} <= {"Request in progress"}
    assert all(reply.headers["Retry-After"] == "1" for reply in replies if reply.status == 409)
    assert service.get("/stock/eager").body["stock"] == 9


def test_a_purchase_whose_mark_has_ended_sells_nothing(service: Running, own_redis: OwnRedis):
    """As after a pause that outlasts the mark, or a crash, when a repeat has begun anew."""
    service.reset("late", 10)
    body = b'{"product_id":"late","lock_strategy":"none"}'
    with service.begin("POST", "/purchase?work=600ms", body, Idempotency_Key="late") as late:
        with own_redis.client() as client:

            def pending() -> list[bytes]:
                return [key for key in client.keys("*repeat:*") if (client.get(key) or b"")[:1] == b"p"]

            wait_until(pending, "the mark is set")
            client.delete(*pending())
        answer = whole_answer(late)
    assert b"the mark of this Idempotency-Key ended" in answer
    assert service.get("/stock/late").body["stock"] == 10


def test_a_lock_call_that_is_sent_again_gets_the_first_answer(service: Running):
    first = service.post("/api/locks/simple/again", Idempotency_Key="lock-again")
    again = service.post("/api/locks/simple/again", Idempotency_Key="lock-again")
    assert first.body == again.body
    assert again.headers["Idempotency-Replayed"] == "true"
    assert service.figure('pybench_locks_total{outcome="granted",strategy="mutex"}') > 0
