"""`POST /api/locks/{strategy}/{resource}`: acquire, work, release, answer."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from pybench.lock_client import LockLost
from pybench.service import idempotency
from pybench.service.answers import Answer, Problem, encode, invalid, unavailable
from pybench.service.calls import Limits, limits_of
from pybench.service.idempotency import SPARE_S
from pybench.service.locks import Locked
from pybench.service.models import checked_name
from pybench.service.stock import StockLost

if TYPE_CHECKING:
    from pybench.service.calls import Call
    from pybench.service.locks import Locks
    from pybench.service.marks import Mark, Marks
    from pybench.service.settings import Settings
    from pybench.service.strategies import Strategy

PATH: Final = "/api/locks/"
WAIT_NS: Final = 5_000_000_000
FAIL_FAST: Final = frozenset({"simple", "redlock"})
"""Routes that do not wait for a lock, unless the request says how long."""
_NS: Final = 1e-9


class LockRoutes:
    """The handler."""

    def __init__(self, settings: Settings, locks: Locks, marks: Marks) -> None:
        self._work_ns = settings.work_ns
        self._locks = locks
        self._marks = marks

    async def answer(self, call: Call) -> Answer:
        """Take the lock for as long as the work takes. Raises Problem."""
        body = await call.body()
        text, resource = _named(call)
        limits = call.limits = limits_of(call.query)
        call.strategy, call.resource = text, resource
        strategy = self._locks.strategy(text)
        work_ns = self._work_ns if limits.work_ns is None else limits.work_ns
        wait_ns = _wait_ns(text, limits)
        key = call.idempotency_key
        if key is None:
            return await self._locked(call, strategy, resource, work_ns, wait_ns)
        try:
            found = await idempotency.begin(self._marks, call, key, body, (work_ns + wait_ns) * _NS + SPARE_S)
        except StockLost as lost:
            raise unavailable(f"the server that keeps Idempotency-Keys: {lost}") from None
        if isinstance(found, Answer):
            return found
        return await self._kept(found, call, strategy, resource, work_ns, wait_ns)

    async def _kept(
        self, mark: Mark, call: Call, strategy: Strategy, resource: str, work_ns: int, wait_ns: int
    ) -> Answer:
        """The answer, kept for repeats if the lock was taken; otherwise a repeat tries again."""
        is_kept = False
        try:
            answer = await self._locked(call, strategy, resource, work_ns, wait_ns)
            is_kept = answer.status == 200
        finally:
            if not is_kept:
                await idempotency.dropped(self._marks, mark)
        try:
            await self._marks.finish(mark, mark.done(answer.status, answer.body))
        except StockLost as lost:
            raise unavailable(f"the lock was taken, and the answer could not be kept: {lost}") from None
        return answer

    async def _locked(self, call: Call, strategy: Strategy, resource: str, work_ns: int, wait_ns: int) -> Answer:
        began = time.perf_counter()

        async def work() -> None:
            if work_ns:
                await asyncio.sleep(work_ns * _NS)

        try:
            if strategy.takes_lock:
                _, end = await self._locks.run(call, strategy, f"resource:{resource}", wait_ns, work)
            else:
                await work()
                end = None
        except Locked as locked:
            return _refused(locked)
        if isinstance(end, LockLost):
            message = "the lock ended before its work was done: give a longer ttl, or less work"
            raise Problem(503, "Lock lost", message, retry_s=1)
        took_ms = round((time.perf_counter() - began) * 1_000, 3)
        return Answer(200, encode({"success": True, "resourceId": resource, "durationMs": took_ms}))


def _named(call: Call) -> tuple[str, str]:
    """Strategy and resource of the path. Raises Problem."""
    text, _, resource = call.raw_path.removeprefix(PATH.encode()).partition(b"/")
    try:
        return unquote_to_bytes(text).decode(), checked_name(unquote_to_bytes(resource).decode())
    except UnicodeDecodeError:
        raise invalid("the path is not UTF-8") from None
    except ValueError as error:
        raise invalid(f"the resource {error}") from None


def _wait_ns(text: str, limits: Limits) -> int:
    if limits.wait_ns is not None:
        return limits.wait_ns
    return 0 if text in FAIL_FAST else WAIT_NS


def _refused(locked: Locked) -> Answer:
    left_ms = None if locked.time_left is None else max(0, math.ceil(locked.time_left * 1_000))
    # The header has whole seconds, and 0 would ask for the next attempt at once.
    seconds = 1 if left_ms is None else max(1, math.ceil(left_ms / 1_000))
    body = encode({"error": "Resource locked", "retryAfterMs": left_ms})
    return Answer(409, body, ((b"retry-after", b"%d" % seconds),))
