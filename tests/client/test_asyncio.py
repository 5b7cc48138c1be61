"""Locks of the tasks of an event loop: with asyncio's own loop, and with uvloop where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis.asyncio

from pybench.lock_client import ClientUnusable, LockClient, LockLost, NotAcquired
from tests.waiting import wait_until

Run = Callable[[Callable[[], Awaitable[Any]]], Any]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request) -> Run:
    """Runs a coroutine function on a new loop."""
    factory = None
    if request.param == "uvloop":
        factory = pytest.importorskip("uvloop").new_event_loop

    def run(main: Callable[[], Awaitable[Any]]):
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(main())

    return run


def test_a_lock_is_held_in_the_block_and_free_after_it(run, client, other):
    async def main() -> None:
        async with client.lock("orders:17", ttl="5s", wait="2s") as held:
            assert other.exists("orders:17")
            assert 4.5 < held.time_left <= 5.0
            assert not held.lost.is_set()
            assert await held.extend() > 4.5
        assert not other.exists("orders:17")

    run(main)


def test_redis_pys_asyncio_lock_and_ours_exclude_each_other(run, client, url):
    async def main() -> None:
        theirs = redis.asyncio.Redis.from_url(url)
        lock = theirs.lock("orders:17", timeout=5, blocking=False)
        assert await lock.acquire()
        with pytest.raises(NotAcquired):
            async with client.lock("orders:17", wait="0"):
                pass
        await lock.release()
        async with client.lock("orders:17"):
            assert not await lock.acquire()
        await theirs.aclose()

    run(main)


def test_tasks_exclude_each_other(run, client):
    inside = most = count = 0

    async def work() -> None:
        nonlocal inside, most, count
        for _ in range(10):
            async with client.lock("hot", wait="60s"):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                count += 1
                inside -= 1

    async def main() -> None:
        await asyncio.gather(*[work() for _ in range(20)])

    run(main)
    assert (most, count) == (1, 200)


async def after_steps(coroutine: Awaitable[Any], steps: int) -> bool:
    """Cancels a task after so many rounds of the loop; whether it was still under way."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(steps):
        await asyncio.sleep(0)
    if task.done():
        return False
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return True


@pytest.mark.parametrize("held_by_another", [False, True])
def test_a_task_that_is_cancelled_at_any_step_leaves_no_lock(run, client, other, held_by_another):
    """Step by step until the block is left: the ttl is an hour, so only a release can free the key."""

    async def use() -> None:
        async with client.lock("orders:17", ttl="1h", wait="20s") as held:
            await held.extend()
            await asyncio.sleep(0)

    async def main() -> int:
        steps = 0
        if held_by_another:
            # Nobody gets it: cancelled while it waits.
            other.set("orders:17", "somebody")
            while steps < 50:
                assert await after_steps(use(), steps)
                steps += 1
            assert other.get("orders:17") == b"somebody"
            other.delete("orders:17")
        while await after_steps(use(), steps):
            steps += 1
            await is_free()
        return steps

    async def is_free() -> None:
        for _ in range(4_000):
            if not other.exists("orders:17"):
                return
            await asyncio.sleep(0.005)
        pytest.fail("the lock is left behind")

    assert run(main) > 3
    wait_until(lambda: not other.exists("orders:17"), "the last one is released")


def test_a_grant_whose_answer_meets_a_cancellation_is_released(run, client, other):
    async def main() -> None:
        task = asyncio.ensure_future(client.lock("orders:17", ttl="1h").__aenter__())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        # Without a round of the loop: the answer waits in the port when the task is cancelled.
        wait_until(lambda: other.exists("orders:17"), "granted")
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        wait_until(lambda: not other.exists("orders:17"), "released")

    run(main)


def test_a_timeout_around_a_waiting_lock_leaves_nothing(run, client, other):
    async def main() -> None:
        async with client.lock("orders:17", ttl="1h"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05), client.lock("orders:17", wait="20s"):
                    pass
        wait_until(lambda: not other.exists("orders:17"), "released")

    run(main)


def test_the_loss_is_told_to_who_awaits_it(run, client, other):
    async def main() -> None:
        lock = client.lock("orders:17", ttl="300ms")
        held = await lock.__aenter__()
        assert not held.lost.is_set()
        assert await asyncio.wait_for(held.lost.wait(), 20)
        assert held.lost.is_set()
        other.set("orders:17", "next")
        with pytest.raises(LockLost):
            await lock.__aexit__(None, None, None)

    run(main)


def test_a_thousand_tasks_hold_locks_at_once(run, client, other):
    async def main() -> None:
        locks = [client.lock(f"many:{number}") for number in range(1_000)]
        await asyncio.gather(*[lock.__aenter__() for lock in locks])
        assert other.dbsize() == 1_000
        await asyncio.gather(*[lock.__aexit__(None, None, None) for lock in locks])
        assert other.dbsize() == 0

    run(main)


def test_several_loops_one_after_another_use_one_client(run, client, other):
    async def main() -> None:
        async with client.lock("orders:17"):
            assert other.exists("orders:17")

    for _ in range(3):
        run(main)


def test_a_loop_that_is_closed_under_its_locks_leaves_none(client, other):
    """Tasks that never run again: what they held or waited for is released when they are collected."""
    loop = asyncio.new_event_loop()

    async def hold() -> None:
        async with client.lock("held", ttl="1h"):
            await asyncio.sleep(3_600)

    async def wait() -> None:
        async with client.lock("held", ttl="1h", wait="1h"):
            pass

    tasks = [loop.create_task(hold()), loop.create_task(wait())]
    while not other.exists("held"):
        loop.run_until_complete(asyncio.sleep(0.005))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop.set_exception_handler(lambda *_: None)
        loop.close()
        del loop, tasks
        gc.collect()
    wait_until(lambda: not other.exists("held"), "released")
    with client.lock("held", wait="0"):
        pass


def test_a_client_that_is_collected_releases_its_locks(url, other):
    client = LockClient(redis=url)
    held = client.lock("orders:17", ttl="1h").__enter__()
    assert other.exists("orders:17")
    del client, held
    gc.collect()
    wait_until(lambda: not other.exists("orders:17"), "released")


def test_a_client_closed_while_tasks_wait_answers_them(run, url, other):
    async def main() -> list[Any]:
        client = LockClient(redis=url)
        other.set("orders:17", "somebody")

        async def wait() -> None:
            async with client.lock("orders:17", wait="1h"):
                pass

        tasks = [asyncio.ensure_future(wait()) for _ in range(3)]
        await asyncio.sleep(0.05)
        client.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(error) for error in run(main)] == [ClientUnusable] * 3
