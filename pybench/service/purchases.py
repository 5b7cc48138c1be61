"""`POST /purchase`: read the stock, work, write what is left, under the lock that the request names."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pybench.lock_client import LockLost
from pybench.service import idempotency
from pybench.service.answers import Answer, Problem, encode, unavailable
from pybench.service.calls import limits_of, parsed
from pybench.service.locks import Locked
from pybench.service.models import PurchaseRequest
from pybench.service.stock import OutcomeUnknown, StockLost, StockRefused
from pybench.service.strategies import ATOMIC

if TYPE_CHECKING:
    from pybench.lock_client import LockError
    from pybench.service.calls import Call
    from pybench.service.locks import Locks
    from pybench.service.marks import Mark, Marks
    from pybench.service.settings import Settings
    from pybench.service.stock import Stock

T = TypeVar("T")

WAIT_NS: Final = 5_000_000_000
"""How long a purchase waits for its lock, unless it says."""
_NS: Final = 1e-9
_BEFORE, _AFTER = b'"@before"', b'"@after"'


class Purchase(NamedTuple):
    """A purchase that is under way."""

    product: str
    """As the name of its stock: 42 and "42" are one product."""
    quantity: int
    work_s: float
    began: float
    mark: Mark | None


class Result(NamedTuple):
    """The result of a purchase."""

    success: bool
    before: int | None
    after: int | None
    error: str | None
    stored: bytes | None = None
    """The answer as it is kept for repeats."""


class Purchases:
    """The handler."""

    def __init__(self, settings: Settings, locks: Locks, stock: Stock, marks: Marks) -> None:
        self._work_ns = settings.work_ns
        self._locks = locks
        self._stock = stock
        self._marks = marks
        self._process = os.getpid()

    async def answer(self, call: Call) -> Answer:
        """Buy, or say why not. Raises Problem."""
        body = await call.body()
        asked = parsed(PurchaseRequest, body)
        limits = call.limits = limits_of(call.query)
        product = str(asked.product_id)
        call.strategy, call.resource = asked.lock_strategy, product
        work_ns = self._work_ns if limits.work_ns is None else limits.work_ns
        wait_ns = WAIT_NS if limits.wait_ns is None else limits.wait_ns
        key = call.idempotency_key
        mark: Mark | None = None
        try:
            if key is not None:
                lease_s = (work_ns + wait_ns) * _NS + idempotency.SPARE_S
                found = await idempotency.begin(self._marks, call, key, body, lease_s)
                if isinstance(found, Answer):
                    return found
                mark = found
            purchase = Purchase(product, asked.quantity, work_ns * _NS, time.perf_counter(), mark)
            return await self._bought(call, asked.lock_strategy, purchase, wait_ns)
        except StockLost as lost:
            raise _stock_lost(lost) from None

    async def _bought(self, call: Call, text: str, purchase: Purchase, wait_ns: int) -> Answer:
        """Buy. The mark of a purchase that sold nothing, and was not refused for its stock, is removed."""
        is_kept = False
        try:
            result, is_locked = await self._result(call, text, purchase, wait_ns)
            is_kept = result.stored is not None
            if result.stored is not None:
                return Answer(200, result.stored)
            return Answer(200, self._encoded(purchase, result, is_locked=is_locked))
        finally:
            # Also where nobody knows whether the write was carried out: then the mark is done, or the write that comes
            # late finds it gone.
            if purchase.mark is not None and not is_kept:
                await idempotency.dropped(self._marks, purchase.mark)

    async def _result(self, call: Call, text: str, purchase: Purchase, wait_ns: int) -> tuple[Result, bool]:
        """The result, and whether the lock was acquired."""
        is_locked = False
        try:
            if text == ATOMIC:
                return await self._taken(call, purchase), False
            strategy = self._locks.strategy(text)
            if not strategy.takes_lock:
                return await self._sold(call, purchase, is_locked=False), False
            is_locked = True
            result, end = await self._locks.run(
                call,
                strategy,
                f"stock:{purchase.product}",
                wait_ns,
                lambda: self._sold(call, purchase, is_locked=True),
            )
        except Locked as locked:
            return Result(success=False, before=None, after=None, error=f"Lock not acquired: {locked}"), False
        except StockRefused as refused:
            return Result(success=False, before=None, after=None, error=str(refused)), is_locked
        return (result if end is None else _with_end(result, end)), True

    async def _sold(self, call: Call, purchase: Purchase, *, is_locked: bool) -> Result:
        """Read, work, write: what a program does with its lock, and without one does wrong."""
        sale = self._stock.sale(purchase.product)
        try:
            before = await sale.read()
            if before is None or before < purchase.quantity:
                return await self._refused(purchase, before, is_locked=is_locked)
            if purchase.work_s:
                await asyncio.sleep(purchase.work_s)
            after = before - purchase.quantity
            result = Result(success=True, before=before, after=after, error=None)
            if purchase.mark is None:
                await _written(call, sale.write(after, purchase.quantity, None, b""))
                return result
            stored = self._encoded(purchase, result, is_locked=is_locked)
            await _written(call, sale.write(after, purchase.quantity, purchase.mark, stored))
            return result._replace(stored=stored)
        finally:
            await sale.close()

    async def _taken(self, call: Call, purchase: Purchase) -> Result:
        """Work, then check and write at once."""
        if purchase.work_s:
            await asyncio.sleep(purchase.work_s)
        draft = Result(success=True, before=None, after=None, error=None)
        whole = self._encoded(purchase, draft, is_locked=False, before="@before", after="@after")
        first, rest = whole.split(_BEFORE)
        middle, last = rest.split(_AFTER)
        pieces = (first, middle, last)
        enough, before = await _written(
            call, self._stock.take(purchase.product, purchase.quantity, purchase.mark, pieces)
        )
        if before is None or not enough:
            return await self._refused(purchase, before, is_locked=False)
        after = before - purchase.quantity
        stored = b"%s%d%s%d%s" % (first, before, middle, after, last) if purchase.mark is not None else None
        return Result(success=True, before=before, after=after, error=None, stored=stored)

    async def _refused(self, purchase: Purchase, before: int | None, *, is_locked: bool) -> Result:
        """The result for a stock that is too small: it is kept for repeats, too."""
        error = "Product not found" if before is None else "Insufficient stock"
        result = Result(success=False, before=before, after=before, error=error)
        if purchase.mark is None:
            return result
        stored = self._encoded(purchase, result, is_locked=is_locked)
        await self._marks.finish(purchase.mark, purchase.mark.done(200, stored))
        return result._replace(stored=stored)

    def _encoded(
        self,
        purchase: Purchase,
        result: Result,
        *,
        is_locked: bool,
        before: str | None = None,
        after: str | None = None,
    ) -> bytes:
        return encode(
            {
                "success": result.success,
                "process_id": self._process,
                "lock_acquired": is_locked,
                "stock_before": before or result.before,
                "stock_after": after or result.after,
                "duration_ms": round((time.perf_counter() - purchase.began) * 1_000, 3),
                "error": result.error,
            }
        )


def _with_end(result: Result, end: LockError) -> Result:
    """The result of a purchase whose lock was not released as it should be: what was written stays written."""
    if isinstance(end, LockLost) and result.success:
        return result._replace(error="Lock lost before its release: another purchase may have run at the same time")
    return result


async def _written(call: Call, write: Awaitable[T]) -> T:
    """Await a write, which is not broken off. Raises OutcomeUnknown, StockLost, StockRefused."""
    call.is_writing = True
    try:
        return await write
    except StockLost as lost:
        if lost.is_unknown:
            raise OutcomeUnknown(str(lost)) from None
        raise
    finally:
        call.is_writing = False


def _stock_lost(lost: StockLost) -> Problem:
    if isinstance(lost, OutcomeUnknown):
        message = f"{lost}: the purchase may have been written, or not; GET /stock tells"
        return Problem(503, "Outcome unknown", message, retry_s=1)
    return unavailable(f"the server of the stock: {lost}")
