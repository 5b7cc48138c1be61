"""A purchase whose reply is lost on its way from the server of the stock: nobody knows, and nothing is sold twice."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.servers.proxy import Proxy
from pybench.servers.redis.endpoint import Endpoint
from tests.service.running import OwnRedis, Running, serving
from tests.waiting import wait_until


class Cut(Proxy):
    """Cuts a connection once, when a command with `trigger` comes through: before the server gets it, or after."""

    def __init__(self, target: Endpoint) -> None:
        super().__init__(target)
        self.trigger: bytes | None = None
        self.is_executed = False
        self._cut: set[socket.socket] = set()

    def of_client(self, client: socket.socket, data: bytes) -> None:
        if self.trigger is None or self.trigger not in data:
            super().of_client(client, data)
            return
        self.trigger = None
        if self.is_executed:
            self._cut.add(client)
            super().of_client(client, data)
        else:
            self.drop(client)

    def of_server(self, client: socket.socket, data: bytes) -> None:
        if client in self._cut:
            self._cut.discard(client)
            self.drop(client)
        else:
            super().of_server(client, data)


@pytest.fixture(scope="module")
def cut(own_redis: OwnRedis) -> Iterator[Cut]:
    with Cut(Endpoint.parse(own_redis.url)) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def behind(cut: Cut, folder: Path) -> Iterator[Running]:
    with serving(folder, "--redis", cut.url) as running:
        yield running


def lost(service: Running, cut: Cut, strategy: str, key: str, *, is_executed: bool) -> None:
    """A purchase whose write has no reply."""
    service.reset(key, 10)
    cut.is_executed = is_executed
    cut.trigger = b"EVAL\r\n"
    reply = service.buy(key, strategy, "?work=0&wait=1s", Idempotency_Key=key)
    assert (reply.status, reply.body["error"]) == (503, "Outcome unknown")
    assert cut.trigger is None
    wait_until(lambda: service.get("/health").status == 200, "the service finds its server again")


@pytest.mark.parametrize("strategy", ["none", "safe", "atomic"])
def test_a_repeat_gets_the_answer_of_a_purchase_that_was_written(behind: Running, cut: Cut, strategy: str):
    key = f"written-{strategy}"
    lost(behind, cut, strategy, key, is_executed=True)
    for _ in range(2):
        again = behind.buy(key, strategy, "?work=0&wait=1s", Idempotency_Key=key)
        assert (again.status, again.body["success"], again.body["stock_after"]) == (200, True, 9)
        assert again.headers["Idempotency-Replayed"] == "true"
    assert behind.get(f"/stock/{key}").body["stock"] == 9


@pytest.mark.parametrize("strategy", ["none", "safe", "atomic"])
def test_a_repeat_begins_anew_once_the_mark_of_a_purchase_that_was_not_written_has_ended(
    behind: Running, cut: Cut, own_redis: OwnRedis, strategy: str
):
    key = f"cut-{strategy}"
    lost(behind, cut, strategy, key, is_executed=False)
    early = behind.buy(key, strategy, "?work=0&wait=1s", Idempotency_Key=key)
    assert (early.status, early.body["error"]) == (409, "Request in progress")
    assert behind.get(f"/stock/{key}").body["stock"] == 10
    with own_redis.client() as client:
        pending = [mark for mark in client.keys("*repeat:*") if (client.get(mark) or b"")[:1] == b"p"]
        assert [0 < client.pttl(mark) <= 11_000 for mark in pending] == [True]
        client.delete(*pending)
    again = behind.buy(key, strategy, "?work=0&wait=1s", Idempotency_Key=key)
    assert (again.status, again.body["success"], again.body["stock_after"]) == (200, True, 9)
    assert behind.get(f"/stock/{key}").body["stock"] == 9
