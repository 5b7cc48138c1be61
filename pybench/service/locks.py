"""The locks of the service: one lock client for each strategy, made at its first use.

Promises: a request that is broken off while it waits leaves no lock. Requests for a lock whose servers are lost fail
at once, and those that wait for it are broken off: the client itself would try until their wait ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from pybench.lock_client import LockError, LockLost, NoQuorum, NotAcquired
from pybench.service.answers import Problem, ending, invalid, unavailable
from pybench.service.calls import Call, Cut
from pybench.service.strategies import Strategies, Strategy

if TYPE_CHECKING:
    from pybench.lock_client import Lock, LockClient
    from pybench.service.figures import Figures

T = TypeVar("T")
Outcome = Literal["granted", "refused", "failed"]


class Locked(Exception):
    """Another client holds the lock. `time_left` is what its lease has left in seconds, where the server tells it."""

    def __init__(self, time_left: float | None) -> None:
        super().__init__("the lock is held by another client")
        self.time_left = time_left


class Locks:
    """Takes locks, does the work of requests under them, and releases them."""

    def __init__(self, strategies: Strategies, prefix: str, figures: Figures) -> None:
        self._strategies: Final = strategies
        self._prefix = f"{prefix}lock:"
        self._figures = figures

    def strategy(self, text: str) -> Strategy:
        """The strategy that a request names. Raises Problem."""
        return self._strategies.named(text)

    async def run(
        self, call: Call, strategy: Strategy, name: str, wait_ns: int, work: Callable[[], Awaitable[T]]
    ) -> tuple[T, LockError | None]:
        """Acquire the lock `name`, await `work`, release. What `work` returned, and why the release failed.

        Raises Locked when another client holds the lock for longer than `wait_ns`, Problem when its servers failed,
        and whatever `work` raises.
        """
        # Each strategy has keys of its own: what is a text for one is a list for another.
        lock = await self._acquired(call, strategy, f"{self._prefix}{strategy.name}:{name}", wait_ns)
        strategy.holding += 1
        began = time.perf_counter()
        try:
            try:
                result = await work()
            finally:
                end = await self._release(strategy, lock)
        finally:
            strategy.holding -= 1
            if strategy.room is not None:
                strategy.room.release()
            self._figures.held(strategy.name, time.perf_counter() - began)
        return result, end

    async def _acquired(self, call: Call, strategy: Strategy, name: str, wait_ns: int) -> Lock:
        """The lock, which is held, and a place of the strategy's room. Raises Locked or Problem."""
        if self._strategies.is_stopping:
            raise ending()
        client = self._strategies.client_of(strategy)
        strategy.breaker.check()
        strategy.waiting.add(call)
        self._figures.waiting(1)
        outcome: Outcome | None = "failed"
        try:
            lock = await _granted(strategy, client, name, call, wait_ns)
            outcome = "granted"
        except NoQuorum as error:
            raise _no_quorum(error.message) from None
        except NotAcquired as refused:
            outcome = "refused"
            raise Locked(refused.time_left) from None
        except LockError as error:
            raise unavailable(error.message) from None
        except ValueError as error:
            # A lease that this strategy cannot have.
            outcome = None
            raise invalid(str(error)) from None
        except asyncio.CancelledError:
            if call.cut is not Cut.SERVER_LOST:
                outcome = None
            raise
        finally:
            self._figures.waiting(-1)
            strategy.waiting.discard(call)
            self._count(strategy, outcome)
        return lock

    def _count(self, strategy: Strategy, outcome: Outcome | None) -> None:
        """Count the outcome of a request for a lock; None: it ended before anything was known of the lock's servers."""
        if outcome is None:
            strategy.breaker.left()
            return
        self._figures.lock(strategy.name, outcome)
        if outcome == "failed":
            strategy.breaker.failed()
        else:
            strategy.breaker.worked()

    async def _release(self, strategy: Strategy, lock: Lock) -> LockError | None:
        """Release; why it failed. The work is done: no error of the lock undoes it."""
        try:
            await lock.__aexit__(None, None, None)
        except LockLost as lost:
            self._figures.lock(strategy.name, "lost")
            return lost
        except LockError as error:
            self._count(strategy, "failed")
            return error
        return None


async def _granted(strategy: Strategy, client: LockClient, name: str, call: Call, wait_ns: int) -> Lock:
    """The lock, which is held, and a place of the strategy's room. Raises LockError, ValueError or Problem."""
    if strategy.up < strategy.needed:
        raise _lost(strategy)
    if strategy.room is not None:
        wait_ns = await _entered(strategy.room, wait_ns)
    try:
        lock = client.lock(name, ttl=call.limits.ttl, wait=f"{wait_ns}ns", retry=call.limits.retry)
        await lock.__aenter__()
    except BaseException:
        if strategy.room is not None:
            strategy.room.release()
        raise
    return lock


async def _entered(room: asyncio.Semaphore, wait_ns: int) -> int:
    """Take a place, first come, first served; what is left of the wait. Raises NotAcquired."""
    began = time.monotonic_ns()
    try:
        async with asyncio.timeout(wait_ns * 1e-9 if room.locked() else None):
            await room.acquire()
    except TimeoutError:
        raise NotAcquired("every connection of this strategy has a lock, or waits for one") from None
    return max(0, wait_ns - (time.monotonic_ns() - began))


def _lost(strategy: Strategy) -> Problem:
    """What a request is told whose lock has too few servers."""
    if len(strategy.servers) > 1:
        return _no_quorum(f"{strategy.up} of {len(strategy.servers)} servers answer, and {strategy.needed} are needed")
    return unavailable(f"the server of {strategy.text} does not answer")


def _no_quorum(message: str) -> Problem:
    return Problem(503, "Quorum not reached", message, retry_s=1)


def server_lost(strategies: Strategies) -> None:
    """Break off the requests that wait for locks whose servers are lost."""
    for strategy in strategies.open:
        if strategy.up < strategy.needed:
            for call in list(strategy.waiting):
                call.break_off(Cut.SERVER_LOST)


def stop_waiting(strategies: Strategies) -> None:
    """Refuse all requests that wait for a lock, and those that come, because the service ends."""
    strategies.is_stopping = True
    for strategy in strategies.open:
        for call in list(strategy.waiting):
            call.break_off(Cut.STOPPING)
