"""Clients of one lock that pause after each refusal by a policy from the textbook: connections of one small program.

pybench's own locks draw their first pause at random even where the policy is fixed, so they would not show a herd.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

SEED: Final = 1
_LEASE_MS: Final = b"60000"


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

    unix: str | None
    host: str | None
    port: int
    login: tuple[bytes, ...]
    """The words of a log-in; empty where the server asks for none."""
    name: bytes
    pause: Pause
    base_s: float
    cap_s: float
    work_s: float


async def buy(plan: Plan, buyers: int) -> list[Buyer]:
    """All buyers ask at once; each asks again until it has the lock, works, and releases it. Raises OSError."""
    chance = random.Random(SEED)
    links = [await _Link.open(plan) for _ in range(buyers)]
    try:
        return await asyncio.gather(
            *(_buy(plan, link, str(number).encode(), chance) for number, link in enumerate(links))
        )
    finally:
        for link in links:
            link.close()


async def _buy(plan: Plan, link: _Link, token: bytes, chance: random.Random) -> Buyer:
    loop = asyncio.get_running_loop()
    buyer, last = Buyer(asked=loop.time()), 0.0
    while True:
        reply = await link.ask(b"SET", plan.name, token, b"NX", b"PX", _LEASE_MS)
        buyer.attempts += 1
        if reply.startswith(b"+OK"):
            break
        last = plan.pause(plan.base_s, plan.cap_s, buyer.attempts - 1, last, chance)
        await asyncio.sleep(last)
    buyer.granted = loop.time()
    await asyncio.sleep(plan.work_s)
    # Nobody's lease ends here, so the owner is not compared.
    await link.ask(b"DEL", plan.name)
    return buyer


@dataclass(slots=True)
class _Link:
    """A connection to the server that sends one command at a time, and costs little to send it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter = field(repr=False)

    @classmethod
    async def open(cls, plan: Plan) -> _Link:
        opened = (
            await asyncio.open_unix_connection(plan.unix)
            if plan.unix is not None
            else await asyncio.open_connection(plan.host, plan.port)
        )
        link = cls(*opened)
        if plan.login:
            await link.ask(*plan.login)
        return link

    async def ask(self, *words: bytes) -> bytes:
        """The first line of the reply."""
        lengths = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self.writer.write(b"*%d\r\n%b" % (len(words), lengths))
        reply = await self.reader.readline()
        if not reply:
            raise ConnectionResetError("the server closed the connection")
        return reply

    def close(self) -> None:
        self.writer.close()
