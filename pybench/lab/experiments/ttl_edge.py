"""`ttl-edge`: the lease ends while its holder still works, and the next holder begins beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pybench.errors import InputError
from pybench.lab.clients import all_at_once, client_row
from pybench.lab.experiment import About, Experiment, Lease, Parameter, Time
from pybench.lab.fence import REFUSED, STALE, checked_write
from pybench.lab.findings import Case, ClientRow, Expected, Figure, insisted
from pybench.lab.locks import needs_client
from pybench.lab.shop import PRODUCT
from pybench.numbers import format_seconds
from pybench.strategies import Promise

if TYPE_CHECKING:
    from pybench.lab.experiment import Values
    from pybench.lab.locks import ChosenLock
    from pybench.lab.shop import Shop
    from pybench.lab.stage import Stage
    from pybench.lock_client import AsyncHeld, LockClient
    from pybench.service.stock_redis import RedisStock

LONGER_S = 10.0
"""How long the second buyer waits beyond the lease and the work of the first."""


@dataclass(slots=True)
class _Told:
    """What both buyers saw. Times in seconds since the first had the lock."""

    takes_lock: bool
    """False for `none`."""
    rows: list[ClientRow] = field(default_factory=list)
    began: float = 0.0
    """When the first had the lock."""
    granted_s: float | None = None
    """When the second had the lock."""
    lost_s: float | None = None
    """When the first was told that its lock is lost."""
    refused: int = 0
    """Writes that the resource refused for their fence."""


def _require(values: Values) -> None:
    if values["work"] <= values["ttl"]:
        raise InputError("--work is not longer than --ttl", hint="the lease has to end during the work")


def _run(stage: Stage) -> Iterator[Case]:
    from pybench.lab.shop import Shop

    shop = Shop.on(stage, "redis")
    for number, lock in enumerate(stage.locks):
        stage.note(lock.text)
        yield insisted(partial(_once, stage, shop, lock, number))


def _once(stage: Stage, shop: Shop, lock: ChosenLock, number: int) -> Case:
    from pybench.lab.shop import fill, left

    stage.run_async(fill(shop, 1))
    told = stage.run_async(_both(stage, shop, lock, number))
    return _case(stage, lock, told, stage.run_async(left(shop)))


async def _both(stage: Stage, shop: Shop, lock: ChosenLock, number: int) -> _Told:
    """The first buyer works past its lease; the second one asks as soon as the first has read the stock."""
    told, has_read, name = _Told(lock.keeps_out), asyncio.Event(), f"{stage.prefix}lock:{number}"
    client = stage.client(lock, connections=2)
    async with shop.opened() as opened:
        stock = _as_redis(opened)
        first = _first(stage, stock, client, name, told, has_read)
        await all_at_once([first, _second(stage, stock, client, name, told, has_read)])
    return told


async def _first(
    stage: Stage, stock: RedisStock, client: LockClient, name: str, told: _Told, has_read: asyncio.Event
) -> None:
    from pybench.lock_client import LockLost

    with suppress(LockLost):
        async with client.lock(name, ttl=stage.length("ttl")) as held:
            began = told.began = time.monotonic()
            watcher = asyncio.create_task(_tell_loss(held, told, began))
            before = await stock.read(PRODUCT)
            has_read.set()
            await asyncio.sleep(stage.seconds("work"))
            watcher.cancel()
            told.rows.append(await _write(stock, held, told, before, began))


async def _second(
    stage: Stage, stock: RedisStock, client: LockClient, name: str, told: _Told, has_read: asyncio.Event
) -> None:
    from pybench.lock_client import LockLost

    await has_read.wait()
    began = time.monotonic()
    wait = f"{stage.seconds('ttl') + stage.seconds('work') + LONGER_S:.3f}s"
    # On a machine that stalls even its short hold outlives a short lease.
    with suppress(LockLost):
        async with client.lock(name, ttl=stage.length("ttl"), wait=wait) as held:
            told.granted_s = time.monotonic() - told.began
            told.rows.append(await _write(stock, held, told, await stock.read(PRODUCT), began))


async def _tell_loss(held: AsyncHeld, told: _Told, began: float) -> None:
    await held.lost.wait()
    told.lost_s = time.monotonic() - began


async def _write(stock: RedisStock, held: AsyncHeld, told: _Told, before: int | None, began: float) -> ClientRow:
    """Subtract one, with the fence where the grant has one, if `before` was enough."""
    after, error = before, None
    if before is None or before < 1:
        error = "Insufficient stock"
    elif held.fence is None:
        after = await stock.subtract(PRODUCT, 1)
    else:
        reply = await stock.ask(*checked_write(stock.key(PRODUCT), held.fence, "DECRBY", 1))
        if reply == STALE:
            told.refused += 1
            error = REFUSED
        else:
            after = int(reply)
    return client_row(began, locked=told.takes_lock, before=before, after=after, error=error)


def _case(stage: Stage, lock: ChosenLock, told: _Told, final: int) -> Case:
    sold = sum(row.success for row in told.rows)
    is_fenced, lease_ms = _has_fence(lock), lock.lease_ms(stage.count("ttl"))
    if final < 0:
        sentence = f"the second buyer had the lock while the first still worked: {sold} sold of 1, the stock is {final}"
    elif told.refused:
        sentence = "the second buyer had the lock while the first still worked; the late write was refused by its fence"
    else:
        sentence = "the second buyer waited until the first was done, and found no stock"
        if (lease_ms or 0) > stage.seconds("work") * 1e3:
            sentence = f"its lease is {format_seconds((lease_ms or 0) / 1e3)}, longer than the work: {sentence}"
    return Case(
        label=f"{lock.text} checked" if is_fenced else lock.text,
        strategy=lock.text,
        expected=_expected(stage, lock),
        went_wrong=final < 0,
        sentence=sentence,
        figures=(
            Figure("ttl_ms", "ttl", lease_ms),
            Figure("work_ms", "work of the first", stage.seconds("work") * 1e3),
            Figure("granted_ms", "second granted after", _ms(told.granted_s)),
            Figure("loss_known_ms", "loss known after", _ms(told.lost_s)),
            Figure("accepted", "writes accepted", sold),
            Figure("refused", "writes refused", told.refused),
            Figure("initial_stock", "initial stock", 1),
            Figure("final_stock", "final stock", final),
        ),
        clients=tuple(told.rows),
    )


def _expected(stage: Stage, lock: ChosenLock) -> Expected:
    entry = lock.entry
    assert entry is not None, "only locks of the catalogue take part"
    if not lock.keeps_out:
        return Expected.WRONG
    if entry.permits(lock.arguments) > 1:
        # The second buyer has a permit of its own, whatever becomes of the lease of the first.
        return Expected.EITHER
    if _has_fence(lock):
        return Expected.RIGHT
    longest_ms = entry.longest_hold_ms(stage.count("ttl") // 1_000_000, lock.arguments)
    past_ms = 0.0 if longest_ms is None else stage.seconds("work") * 1e3 - longest_ms
    if past_ms <= 0:
        return lock.excludes
    # A waiter of a queue looks for a lease that has ended only at each of its beats.
    beat_ms = int(entry.argument("beat_ms", lock.arguments) or 0)
    return Expected.WRONG if past_ms > beat_ms else Expected.EITHER


def _has_fence(lock: ChosenLock) -> bool:
    return lock.entry is not None and Promise.FENCE in lock.entry.promises


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1_000, 3)


def _as_redis(stock: object) -> RedisStock:
    from pybench.service.stock_redis import RedisStock

    assert isinstance(stock, RedisStock), "the shop is in Redis"
    return stock


TTL_EDGE = Experiment(
    name="ttl-edge",
    summary="The lease ends under a holder that still works",
    steps=(
        "One piece is left. The first buyer takes the lock with a ttl of {ttl}, reads the stock, and works for {work}.",
        "The second buyer asks for the lock meanwhile. Both subtract one if the stock that they read was enough.",
        About(
            "checked",
            "Checked: the writes carry the fence of their grant, and the resource refuses one lower than it has seen.",
        ),
    ),
    learn="A lease ends whatever its holder does: renew it, or let the resource refuse the late write.",
    run=_run,
    require=_require,
    controls=("mutex",),
    strategies=("watchdog", "fenced(renew=off)"),
    unfit=needs_client,
    parameters=(
        Parameter("ttl", Lease(), "1s", "The lease."),
        Parameter("work", Time(), "3s", "Work of the first buyer, longer than the lease."),
    ),
)
