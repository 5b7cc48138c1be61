"""The locks of the service: one lock client for each strategy, made at its first use.

Promises: a request that is broken off while it waits leaves no lock. Requests for a lock whose servers are lost fail
at once, and those that wait for it are broken off: the client itself would try until their wait ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from pybench.lock_client import LockError, LockLost, NoQuorum, NotAcquired
from pybench.service.answers import Problem, invalid, unavailable
from pybench.service.calls import Call, Cut
from pybench.service.strategies import Strategies, Strategy

if TYPE_CHECKING:
    from pybench.lock_client import Lock
    from pybench.service.figures import Figures

T = TypeVar("T")


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
        lock = await self._acquired(call, strategy, f"{self._prefix}{name}", wait_ns)
        strategy.holding += 1
        began = time.perf_counter()
        try:
            try:
                result = await work()
            finally:
                end = await self._release(strategy, lock)
        finally:
            strategy.holding -= 1
            self._figures.held(strategy.name, time.perf_counter() - began)
        return result, end

    async def _acquired(self, call: Call, strategy: Strategy, name: str, wait_ns: int) -> Lock:
        """The lock, which is held. Raises Locked or Problem."""
        client = self._strategies.client_of(strategy)
        breaker = strategy.breaker
        breaker.check()
        figures = self._figures
        if strategy.up < strategy.needed:
            breaker.failed()
            figures.lock(strategy.name, "failed")
            raise _lost(strategy)
        strategy.waiting.add(call)
        figures.waiting(1)
        try:
            limits = call.limits
            lock = client.lock(name, ttl=limits.ttl, wait=f"{wait_ns}ns", retry=limits.retry)
            await lock.__aenter__()
        except NoQuorum as error:
            breaker.failed()
            figures.lock(strategy.name, "failed")
            raise _no_quorum(error.message) from None
        except NotAcquired as refused:
            breaker.worked()
            figures.lock(strategy.name, "refused")
            raise Locked(refused.time_left) from None
        except LockError as error:
            breaker.failed()
            figures.lock(strategy.name, "failed")
            raise unavailable(error.message) from None
        except asyncio.CancelledError:
            if call.cut is Cut.SERVER_LOST:
                breaker.failed()
                figures.lock(strategy.name, "failed")
            else:
                breaker.left()
            raise
        except ValueError as error:
            # A lease that this strategy cannot have.
            breaker.left()
            raise invalid(str(error)) from None
        except BaseException:
            breaker.left()
            raise
        finally:
            figures.waiting(-1)
            strategy.waiting.discard(call)
        breaker.worked()
        figures.lock(strategy.name, "granted")
        return lock

    async def _release(self, strategy: Strategy, lock: Lock) -> LockError | None:
        """Release; why it failed. The work is done: no error of the lock undoes it."""
        try:
            await lock.__aexit__(None, None, None)
        except LockLost as lost:
            self._figures.lock(strategy.name, "lost")
            return lost
        except LockError as error:
            strategy.breaker.failed()
            self._figures.lock(strategy.name, "failed")
            return error
        return None


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
    """Break off all requests that wait for a lock, because the service ends."""
    for strategy in strategies.open:
        for call in list(strategy.waiting):
            call.break_off(Cut.STOPPING)
