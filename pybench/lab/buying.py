"""Buyers of one product: each takes its lock, reads, works and writes, all of them at once.

Promises: the same code buys under every lock; only the lock differs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from pybench.lab.clients import all_at_once
from pybench.lab.findings import ClientRow
from pybench.lab.shop import PRODUCT, Shop
from pybench.lab.stage import ClientSpec
from pybench.lock_client import LockLost, NotAcquired
from pybench.service.stock import StockRefused

if TYPE_CHECKING:
    from pybench.lab.acting import Line
    from pybench.lock_client import LockClient
    from pybench.service.stock import Stock

NO_STOCK: Final = "Insufficient stock"
NO_LOCK: Final = "Lock not acquired"
LOST: Final = "Lock lost before its release"

_PIECES = (b"", b"", b"")
"""The answer that the service keeps of a purchase in one step; the lab keeps none."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the buyers of one process do. Plain data, which goes to another process as JSON."""

    shop: Shop
    client: ClientSpec | None
    """None: each buyer checks and writes in one step, without a lock."""
    name: str
    """Of the lock."""
    buyers: int
    work_s: float
    ttl: str
    wait: str

    def to_json(self) -> dict[str, Any]:
        """For another process."""
        return asdict(self)

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Order:
        """What `to_json` wrote."""
        client = read["client"]
        told = {"shop": Shop(**read["shop"]), "client": None if client is None else ClientSpec(**client)}
        return cls(**{**read, **told})


@dataclass(frozen=True, slots=True)
class Bought:
    """What one buyer did, with the times of its process in ns; CLOCK_MONOTONIC is the same in all processes."""

    row: ClientRow
    asked_ns: int
    entered_ns: int | None
    """When it had its lock; None: it never had."""
    left_ns: int | None
    """When it gave its lock back."""

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Bought:
        """What `asdict` made."""
        return cls(**{**read, "row": ClientRow(**read["row"])})


async def buy_all(order: Order) -> list[Bought]:
    """All buyers of an order at once. Raises ServerError, LockError."""
    async with order.shop.opened() as stock, _client(order) as client:
        return await all_at_once(_buy(order, stock, client) for _ in range(order.buyers))


def buyers(line: Line) -> None:
    """The role of a process of buyers. For each order: connect, say so, wait for the start, and say what they did."""

    async def bought(mine: Order) -> list[Bought]:
        async with mine.shop.opened() as stock, _client(mine) as client:
            line.say({"ready": True})
            await asyncio.to_thread(line.hear)
            return await all_at_once(_buy(mine, stock, client) for _ in range(mine.buyers))

    while True:
        order = Order.from_json(line.hear())
        line.say({"bought": [asdict(one) for one in asyncio.run(bought(order))]})


def contention_share(bought: Sequence[Bought]) -> float | None:
    """The share of buyers who met another one: it was in between lock and release as they asked, waited or worked."""
    inside = [(one.entered_ns, one.left_ns) for one in bought if one.entered_ns is not None and one.left_ns is not None]
    if not bought:
        return None
    met = 0
    for one in bought:
        until = one.left_ns if one.left_ns is not None else one.asked_ns + round(one.row.duration_ms * 1e6)
        own = (one.entered_ns, one.left_ns)
        met += any(span != own and span[0] < until and span[1] > one.asked_ns for span in inside)
    return met / len(bought)


@asynccontextmanager
async def _client(order: Order) -> AsyncIterator[LockClient | None]:
    if order.client is None:
        yield None
        return
    client = order.client.open()
    try:
        yield client
    finally:
        # It waits for its last replies, and must not hold up the loop.
        await asyncio.to_thread(client.close)


async def _buy(order: Order, stock: Stock, client: LockClient | None) -> Bought:
    asked = time.monotonic_ns()
    entered: int | None = None
    left: int | None = None
    before: int | None = None
    after: int | None = None
    error: str | None = None
    try:
        if client is None:
            await asyncio.sleep(order.work_s)
            enough, before = await stock.take(PRODUCT, 1, None, _PIECES)
            after = before if before is None else before - enough
        else:
            async with client.lock(order.name, ttl=order.ttl, wait=order.wait):
                entered = time.monotonic_ns()
                try:
                    before, after = await _sold(order, stock)
                finally:
                    left = time.monotonic_ns()
    except NotAcquired:
        error = NO_LOCK
    except LockLost:
        error = LOST
    except StockRefused as refused:
        error = str(refused)
    success = after is not None and before is not None and after < before
    if error is None and not success:
        error = NO_STOCK
    took = (time.monotonic_ns() - asked) / 1e6
    is_locked = entered is not None and bool(order.client and order.client.strategy != "none")
    row = ClientRow(os.getpid(), is_locked, success, round(took, 3), before, after, error)
    return Bought(row, asked, entered, left)


async def _sold(order: Order, stock: Stock) -> tuple[int | None, int | None]:
    """The stock that a buyer read, and the stock after it; the same where it was too small."""
    before = await stock.read(PRODUCT)
    if before is None or before < 1:
        return before, before
    await asyncio.sleep(order.work_s)
    return before, await stock.subtract(PRODUCT, 1)
