"""The service under load scripts that were written for other services of this kind: what they send, and what they read.

Each test is one script: set-up, virtual users with connections of their own, checks on status and fields, teardown.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.service.running import Reply, Running

JSON = {"Content-Type": "application/json"}
USERS = 10


class User:
    """A virtual user, whose requests share a connection, as those of k6 and Locust do."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

    def post(self, path: str, body: object = None, **headers: str) -> Reply:
        """`http.post(url, JSON.stringify(body), {headers})`."""
        payload = None if body is None else json.dumps(body)
        return self._sent("POST", path, payload, {**JSON, "User-Agent": "k6/1.8.1 (https://k6.io/)", **headers})

    def get(self, path: str) -> Reply:
        """`http.get(url)`."""
        return self._sent("GET", path, None, {})

    def _sent(self, method: str, path: str, payload: str | None, headers: dict[str, str]) -> Reply:
        self._connection.request(method, path, payload, headers)
        answer = self._connection.getresponse()
        assert answer.headers.get_content_type() == "application/json"
        return Reply(answer.status, answer.headers, json.loads(answer.read()))

    def close(self) -> None:
        self._connection.close()


@contextmanager
def users(service: Running, count: int) -> Iterator[list[User]]:
    found = [User(service.port) for _ in range(count)]
    try:
        yield found
    finally:
        for user in found:
            user.close()


def each(found: list[User], iteration: Callable[[User], Any]) -> list[Any]:
    """The iteration of every user, all at once."""
    with ThreadPoolExecutor(len(found)) as pool:
        return list(pool.map(iteration, found))


def number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@pytest.mark.parametrize("product", ["laptop-15", 1, "Größe 42/ß", 7_000_000_000])
def test_a_flash_sale_sells_what_there_is(service: Running, product: str | int):
    """Set-up resets the stock; the users buy one item each, under the lock; teardown reads what is left."""
    stock = 4
    with users(service, USERS) as found:
        reset = found[0].post("/reset", {"product_id": product, "stock": stock})
        assert (reset.status, reset.body) == (200, {"status": "ok", "product_id": product, "stock": stock})

        bought = each(
            found, lambda user: user.post("/purchase", {"product_id": product, "quantity": 1, "lock_strategy": "safe"})
        )
        for reply in bought:
            assert reply.status == 200
            assert type(reply.body["success"]) is bool
            assert type(reply.body["process_id"]) is int
            assert reply.body["lock_acquired"] is True
            assert type(reply.body["stock_before"]) is int
            assert type(reply.body["stock_after"]) is int
            assert number(reply.body["duration_ms"])
            assert reply.body["error"] is None or type(reply.body["error"]) is str
            assert (reply.body["error"] is None) is reply.body["success"]
        sold = [reply.body for reply in bought if reply.body["success"]]
        assert len(sold) == stock
        assert sorted(one["stock_before"] for one in sold) == [1, 2, 3, 4]
        assert all(one["stock_before"] - one["stock_after"] == 1 for one in sold)

        path = str(product).replace("/", "%2F").replace(" ", "%20").replace("ö", "%C3%B6").replace("ß", "%C3%9F")
        left = found[0].get(f"/stock/{path}")
        assert (left.status, left.body["stock"], str(left.body["product_id"])) == (200, 0, str(product))


@pytest.mark.parametrize("strategy", ["none", "naive", "safe"])
def test_a_script_may_compare_the_three_strategies(service: Running, strategy: str):
    """Each strategy answers with every field, whether it sells too much or not."""
    with users(service, USERS) as found:
        found[0].post("/reset", {"product_id": "strategies", "stock": 1})
        order = {"product_id": "strategies", "quantity": 1, "lock_strategy": strategy}
        replies = each(found, lambda user: user.post("/purchase", order, **{"X-Trace": "1"}))
        assert {reply.status for reply in replies} == {200}
        sold = sum(reply.body["success"] for reply in replies)
        assert sold == 1 if strategy == "safe" else sold >= 1
        assert {reply.body["lock_acquired"] for reply in replies} <= {strategy != "none", False}


@pytest.mark.parametrize("route", ["simple", "redlock"])
def test_the_users_of_a_lock_route_are_granted_or_told_when_to_come_back(service: Running, route: str):
    """All want one resource at once; who is refused waits as told, and is granted it later."""
    with users(service, USERS) as found:
        path = f"/api/locks/{route}/public-{route}"
        replies = each(found, lambda user: user.post(f"{path}?work=300ms"))
        assert {reply.status for reply in replies} <= {200, 409, 503}
        for reply in replies:
            if reply.status == 200:
                assert reply.body.keys() == {"success", "resourceId", "durationMs"}
                assert reply.body["success"] is True
                assert reply.body["resourceId"] == f"public-{route}"
                assert number(reply.body["durationMs"])
            elif reply.status == 409:
                assert reply.body.keys() == {"error", "retryAfterMs"}
                assert reply.body["error"] == "Resource locked"
                assert reply.body["retryAfterMs"] is None or type(reply.body["retryAfterMs"]) is int
                assert re.fullmatch("[1-9][0-9]*", reply.headers["Retry-After"])
            else:
                assert reply.body.keys() == {"error", "message"}
                assert reply.body["error"] == "Quorum not reached"
        assert sum(reply.status == 409 for reply in replies) > 0
        assert found[0].post(f"{path}?wait=5s").status == 200


def test_a_script_looks_at_the_service_first_and_misses_nothing_else(service: Running):
    with users(service, 1) as (user,):
        health = user.get("/health")
        assert (health.status, health.body["status"], health.body["service"]) == (200, "ok", "distributed-lock")
        for path in ("/", "/api/products", "/api/locks/simple"):
            assert (user.get(path).status, user.get(path).body) == (404, {"error": "Not found"})


def test_a_purchase_that_is_sent_again_with_its_key_is_carried_out_once(service: Running):
    with users(service, 2) as found:
        found[0].post("/reset", {"product_id": "again", "stock": 5})
        order = {"product_id": "again", "quantity": 1, "lock_strategy": "safe"}
        first, second = (user.post("/purchase", order, **{"Idempotency-Key": "order-1"}) for user in found)
        assert (first.status, second.status) == (200, 200)
        assert first.body["stock_after"] == second.body["stock_after"] == 4
        assert found[0].get("/stock/again").body["stock"] == 4
