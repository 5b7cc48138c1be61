"""Clients of one lock that pause after each refusal by a policy from the textbook: connections of one small program.

pybench's own locks draw their first pause at random even where the policy is fixed, so they would not show a herd.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from redis.asyncio import ConnectionPool

from pybench.lab.clients import all_at_once

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

SEED: Final = 1
_LEASE_MS: Final = "60000"


def fixed(base: float, _cap: float, _attempt: int, _last: float, _chance: random.Random) -> float:
    """Always the same."""
    return base


def exponential(base: float, cap: float, attempt: int, _last: float, _chance: random.Random) -> float:
    """Twice as long each time."""
    return min(cap, base * 2.0**attempt)


def full(base: float, cap: float, attempt: int, _last: float, chance: random.Random) -> float:
    """Anything up to the exponential pause."""
    return chance.uniform(0, min(cap, base * 2.0**attempt))


def equal(base: float, cap: float, attempt: int, _last: float, chance: random.Random) -> float:
    """At least half of the exponential pause."""
    most = min(cap, base * 2.0**attempt)
    return most / 2 + chance.uniform(0, most / 2)


def decorrelated(base: float, cap: float, _attempt: int, last: float, chance: random.Random) -> float:
    """Up to three times the last pause."""
    return min(cap, chance.uniform(base, 3 * max(base, last)))


Pause = Callable[[float, float, int, float, random.Random], float]
POLICIES: Final[dict[str, Pause]] = {one.__name__: one for one in (fixed, exponential, full, equal, decorrelated)}


@dataclass(slots=True)
class Buyer:
    """What one client did; times by `time.monotonic`."""

    asked: float = 0.0
    granted: float = 0.0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What all clients do."""

    url: str = field(repr=False)
    name: str
    pause: Pause
    base_s: float
    cap_s: float
    work_s: float


async def buy(plan: Plan, buyers: int) -> list[Buyer]:
    """All buyers ask at once; each asks again until it has the lock, works, and releases it. Raises RedisError."""
    chance = random.Random(SEED)
    pool = ConnectionPool.from_url(plan.url)
    async with AsyncExitStack() as opened:
        connections = [pool.connection_class(**pool.connection_kwargs) for _ in range(buyers)]
        for connection in connections:
            opened.push_async_callback(connection.disconnect, nowait=True)
            # The first command connects, logs in and selects the database.
            await connection.send_command("PING")
            await connection.read_response()
        return await all_at_once(
            _buy(plan, connection, str(number), chance) for number, connection in enumerate(connections)
        )


async def _buy(plan: Plan, connection: AbstractConnection, token: str, chance: random.Random) -> Buyer:
    loop = asyncio.get_running_loop()
    buyer, last = Buyer(asked=loop.time()), 0.0
    while True:
        # Not through `Redis`: a client costs several times as much, and the buyers shall ask at once.
        await connection.send_command("SET", plan.name, token, "NX", "PX", _LEASE_MS)
        buyer.attempts += 1
        if await connection.read_response() is not None:
            break
        last = plan.pause(plan.base_s, plan.cap_s, buyer.attempts - 1, last, chance)
        await asyncio.sleep(last)
    buyer.granted = loop.time()
    await asyncio.sleep(plan.work_s)
    # Nobody's lease ends here, so the owner is not compared.
    await connection.send_command("DEL", plan.name)
    await connection.read_response()
    return buyer
