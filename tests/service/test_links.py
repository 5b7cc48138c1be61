"""Whether a server is taken for lost: only where it does not answer, and not where the service itself is held up."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator

import pytest

from pybench.servers.redis import binaries, supervisor
from pybench.service.link import PING_S, REPLY_S, SILENCE_S
from pybench.service.redis_link import RedisLink
from pybench.service.settings import Place


@pytest.fixture
def server() -> Iterator[supervisor.SupervisedServer]:
    started, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    yield started
    started.stop()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Runs a coroutine on one of the loops that the service may have; a browser may have left one marked as running."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    if request.param == "uvloop":
        import uvloop

        yield uvloop.run
    else:
        yield asyncio.run
    asyncio._set_running_loop(running)


def test_a_service_that_is_held_up_does_not_take_its_servers_for_lost(server, run):
    async def held_up() -> int:
        losses = []
        link = RedisLink(Place(server.endpoint.address, None))
        link.on_loss.append(lambda: losses.append(1))
        await link.open()
        for _ in range(3):
            await asyncio.sleep(PING_S / 2)
            time.sleep(REPLY_S + 0.1)  # This is what holds the loop up.
        await asyncio.sleep(2 * PING_S)
        await link.close()
        return len(losses)

    assert run(held_up()) == 0


def test_a_silent_server_is_lost_in_time_and_found_again(server, run):
    async def stopped() -> float:
        link = RedisLink(Place(server.endpoint.address, None))
        lost = asyncio.Event()
        link.on_loss.append(lost.set)
        await link.open()
        began = time.monotonic()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            await asyncio.wait_for(lost.wait(), 20)
            took_s = time.monotonic() - began
        finally:
            os.kill(server.pid, signal.SIGCONT)
        async with asyncio.timeout(20):
            while not link.is_up:
                await asyncio.sleep(0.01)
        await link.close()
        return took_s

    assert run(stopped()) < SILENCE_S + 0.25
