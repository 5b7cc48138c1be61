"""Clients of an experiment that run at once in one loop, of which one fails."""

from __future__ import annotations

import asyncio

import pytest
from redis.exceptions import RedisError

from pybench.lab.buyers_that_retry import POLICIES, Plan, buy
from pybench.lab.clients import all_at_once
from pybench.lab.stage import Given, Stage
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("no_running_loop")


async def client(number: int, seconds: float, ended: list[int], *, fails: bool = False) -> int:
    try:
        await asyncio.sleep(seconds)
        if fails:
            raise ValueError(number)
        return number
    finally:
        ended.append(number)


def test_what_all_returned_is_in_their_order():
    assert asyncio.run(all_at_once(client(number, 0.02 / (number + 1), []) for number in range(3))) == [0, 1, 2]


def test_the_first_error_of_a_client_is_raised_once_the_others_have_ended():
    ended: list[int] = []

    async def work() -> None:
        works = [client(0, 60, ended), client(1, 0.02, ended, fails=True), client(2, 0.01, ended, fails=True)]
        with pytest.raises(ValueError, match=r"^2$"):
            await all_at_once(works)
        assert sorted(ended) == [0, 1, 2]

    asyncio.run(work())


def test_no_buyer_is_left_when_the_server_is_lost():
    with Stage(Given()) as stage:
        (server,) = stage.redis()
        url = server.endpoint.url.get_secret_value()
        plan = Plan(url=url, name=f"{stage.prefix}lock", pause=POLICIES["full"], base_s=0.5, cap_s=0.5, work_s=60)

        async def work() -> None:
            buying = asyncio.create_task(buy(plan, 8))
            with server.conversation() as conversation:
                await asyncio.to_thread(wait_until, lambda: conversation.ask("EXISTS", plan.name), "a lock is held")
                conversation.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            with pytest.raises(RedisError):
                await buying
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(work())
