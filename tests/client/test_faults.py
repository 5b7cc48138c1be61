"""Connections that break and servers that are gone or refuse: what a program is told, and when."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pybench.lock_client import LockClient, LockLost, ServerRefused, Unknown, Unreachable
from pybench.servers.redis.endpoint import Endpoint
from tests.fault_proxy import Fault, FaultProxy
from tests.waiting import wait_until

CLOSED = "redis://127.0.0.1:1"


def test_a_server_that_is_not_there_is_unreachable_and_named():
    with LockClient(redis=CLOSED) as client, pytest.raises(Unreachable, match=r"127\.0\.0\.1:1.*refused"):
        client.lock("orders:17", wait="0").__enter__()


def test_the_same_for_a_task():
    async def main() -> None:
        with LockClient(redis=CLOSED) as client, pytest.raises(Unreachable):
            await client.lock("orders:17", wait="0").__aenter__()

    asyncio.run(main())


def test_a_lock_whose_connection_breaks_is_lost_before_its_lease_is_over(url, other):
    """The proxy hangs up when it sees the renewal: the holder cannot renew any more."""
    with (
        FaultProxy(Endpoint.parse(url), Fault(hangs_up=True), b"EVALSHA") as proxy,
        LockClient("watchdog", redis=proxy.url) as client,
    ):
        lock = client.lock("orders:17", ttl="1s")
        held = lock.__enter__()
        assert held.lost.wait(20)
        assert held.time_left == 0.0
        with pytest.raises((LockLost, Unknown)):
            lock.__exit__(None, None, None)


def test_a_release_without_a_reply_is_unknown(url, other):
    with (
        FaultProxy(Endpoint.parse(url), Fault(), b"EVALSHA") as proxy,
        LockClient(redis=proxy.url) as client,
        pytest.raises(Unknown, match="no reply"),
        client.lock("orders:17", ttl="20s"),
    ):
        pass


def test_an_acquire_without_a_reply_is_unknown(url, other):
    with (
        FaultProxy(Endpoint.parse(url), Fault(), b"orders:17") as proxy,
        LockClient(redis=proxy.url) as client,
        pytest.raises(Unknown, match=r"no reply about .* in time"),
    ):
        client.lock("orders:17", ttl="20s").__enter__()


def test_a_refused_command_is_shown_with_the_servers_words(url, other):
    other.rpush("orders:17:fence", "a list")
    with LockClient("fenced", redis=url) as client, pytest.raises(ServerRefused, match="WRONGTYPE"):
        client.lock("orders:17", wait="0").__enter__()


def test_a_client_reconnects(url, other):
    with (
        FaultProxy(Endpoint.parse(url), Fault(hangs_up=True), b"\0never") as proxy,
        LockClient(redis=proxy.url) as client,
    ):
        with client.lock("orders:17"):
            pass
        proxy.is_bad.set()
        with pytest.raises(Unknown, match=r"no usable reply about the lock \"orders:17\" \(127.0.0.1:\d+: .+\)"):
            client.lock("orders:17", ttl="1s").__enter__()
        proxy.is_bad.clear()

        def works() -> bool:
            try:
                with client.lock("orders:17", wait="5s"):
                    return True
            except (Unknown, Unreachable):
                return False

        wait_until(works, "connected again")


def test_a_wrong_password_is_named_and_not_shown(url):
    with_password = url.replace("redis://", "redis://:sesame@")
    with LockClient(redis=with_password) as client, pytest.raises(Unreachable) as raised:
        client.lock("orders:17", wait="0").__enter__()
    assert "AUTH" in str(raised.value)
    assert "sesame" not in str(raised.value)


def test_closing_does_not_hang_on_a_silent_server(url, other):
    with FaultProxy(Endpoint.parse(url), Fault(), b"EVALSHA") as proxy:
        client = LockClient(redis=proxy.url)
        held = client.lock("orders:17", ttl="20s").__enter__()
        closing = threading.Thread(target=client.close)
        closing.start()
        closing.join(20)
        assert not closing.is_alive()
        assert held.lost.is_set()
