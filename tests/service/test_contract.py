"""The contract, field by field: what load scripts that are made for such a service send, and read of its answers."""

from __future__ import annotations

import pytest

from tests.service.running import Running

PURCHASE = {"success", "process_id", "lock_acquired", "stock_before", "stock_after", "duration_ms", "error"}


def test_a_reset_tells_what_was_set(service: Running):
    reply = service.post("/reset", {"product_id": "iphone", "stock": 100})
    assert (reply.status, reply.body) == (200, {"status": "ok", "product_id": "iphone", "stock": 100})


def test_the_stock_of_a_product_is_what_was_set(service: Running):
    service.reset("tablet", 7)
    reply = service.get("/stock/tablet")
    assert (reply.status, reply.body) == (200, {"product_id": "tablet", "stock": 7})


@pytest.mark.parametrize(
    ("strategy", "is_locked"), [("none", False), ("naive", True), ("safe", True), ("mutex", True), ("atomic", False)]
)
def test_a_purchase_has_every_field(service: Running, strategy: str, is_locked: bool):
    service.reset("phone", 10)
    reply = service.buy("phone", strategy, quantity=2)
    assert reply.status == 200
    assert set(reply.body) == PURCHASE
    assert reply.body["success"] is True
    assert reply.body["process_id"] == service.pid
    assert reply.body["lock_acquired"] is is_locked
    assert (reply.body["stock_before"], reply.body["stock_after"]) == (10, 8)
    assert 5 <= reply.body["duration_ms"] < 5_000
    assert reply.body["error"] is None
    assert service.get("/stock/phone").body["stock"] == 8


@pytest.mark.parametrize("strategy", ["none", "naive", "safe", "atomic"])
def test_a_purchase_of_too_much_is_refused_with_200(service: Running, strategy: str):
    service.reset("rare", 1)
    reply = service.buy("rare", strategy, quantity=2)
    assert reply.status == 200
    assert set(reply.body) == PURCHASE
    assert (reply.body["success"], reply.body["error"]) == (False, "Insufficient stock")
    assert (reply.body["stock_before"], reply.body["stock_after"]) == (1, 1)
    assert service.get("/stock/rare").body["stock"] == 1


def test_quantity_and_strategy_have_defaults(service: Running):
    service.reset("plain", 3)
    reply = service.post("/purchase", {"product_id": "plain"})
    assert (reply.body["lock_acquired"], reply.body["stock_after"]) == (True, 2)


def test_a_product_is_a_text_or_a_number_and_is_told_as_it_was_given(service: Running):
    assert service.post("/reset", {"product_id": 42, "stock": 5}).body["product_id"] == 42
    assert service.buy("42").body["stock_after"] == 4
    assert service.buy(42).body["stock_after"] == 3
    assert service.get("/stock/42").body == {"product_id": "42", "stock": 3}


@pytest.mark.parametrize(
    "strategy", ["simple", "redlock", "mutex", "semaphore(permits=4)", "semaphore%28permits%3D4%29", "fair-queue"]
)
def test_a_lock_is_taken_and_released(service: Running, strategy: str):
    reply = service.post(f"/api/locks/{strategy}/order-7")
    assert (reply.status, set(reply.body)) == (200, {"success", "resourceId", "durationMs"})
    assert (reply.body["success"], reply.body["resourceId"]) == (True, "order-7")
    assert reply.body["durationMs"] >= 5
    assert service.post(f"/api/locks/{strategy}/order-7?wait=0").status == 200


def test_a_held_lock_is_refused_with_the_time_to_wait(service: Running):
    holder = service.begin("POST", "/api/locks/simple/busy?work=10s&ttl=30s")
    try:
        reply = service.post("/api/locks/simple/busy")
        while reply.status == 200:
            reply = service.post("/api/locks/simple/busy?work=0")
        assert reply.status == 409
        assert set(reply.body) == {"error", "retryAfterMs"}
        assert reply.body["error"] == "Resource locked"
        assert 20_000 < reply.body["retryAfterMs"] <= 30_000
        assert reply.headers["Retry-After"] == str(-(-reply.body["retryAfterMs"] // 1_000))
    finally:
        holder.close()


def test_health_names_the_service_and_its_servers(service: Running):
    reply = service.get("/health")
    assert reply.status == 200
    assert (reply.body["status"], reply.body["service"]) == ("ok", "distributed-lock")
    assert [server["role"] for server in reply.body["servers"]] == ["redis", "redlock", "redlock", "redlock"]
    assert {server["state"] for server in reply.body["servers"]} == {"up"}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/", "/nowhere", "/api", "/api/locks", "/api/locks/simple", "/stock"])
def test_any_other_path_is_not_found(service: Running, method: str, path: str):
    reply = service.send(method, path)
    assert (reply.status, reply.body) == (404, {"error": "Not found"})


@pytest.mark.parametrize(("method", "path"), [("GET", "/purchase"), ("DELETE", "/stock/1"), ("POST", "/health")])
def test_a_method_that_a_route_does_not_take_is_told_as_json(service: Running, method: str, path: str):
    reply = service.send(method, path)
    assert (reply.status, reply.body) == (405, {"error": "Method not allowed"})
    assert reply.headers["Allow"]


def test_a_product_that_was_never_set_is_not_found_and_not_sold(service: Running):
    assert service.get("/stock/unheard-of").status == 404
    reply = service.buy("unheard-of")
    assert (reply.status, reply.body["success"], reply.body["error"]) == (200, False, "Product not found")
