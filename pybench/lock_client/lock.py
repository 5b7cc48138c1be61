"""One lock of a program, as a context manager for threads and for asyncio.

Promises: whatever raises in an acquire, at any await point, nothing stays locked. A release that was begun is carried
out, also if nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

from pybench.lock_client.answers import HELD, RELEASED, acquire_error, release_error
from pybench.lock_client.held import AsyncHeld, Held
from pybench.lock_client.settling import Settler, settler_of

if TYPE_CHECKING:
    from pybench._core import LockRetry, LockTicket
    from pybench.lock_client.client import LockClient


Request = tuple[bytes, int, int, bool, "LockRetry | None"]
"""Name, ttl in ms, wait in ns, whether shared, and the retry policy."""


class Lock:
    """A name to lock: `with lock as held:` or `async with lock as held:`. It may be used again once it is released."""

    __slots__ = ("_client", "_name", "_request", "_settler", "_ticket")

    def __init__(self, client: LockClient, name: str | bytes, request: Request) -> None:
        self._client = client
        self._name = name
        self._request = request
        self._ticket: LockTicket | None = None
        self._settler: Settler | None = None

    def __repr__(self) -> str:
        return f"<Lock {self._name!r}, {'in use' if self._ticket is not None else 'not in use'}>"

    def __enter__(self) -> Held:
        """Acquire. Raises NotAcquired, NoQuorum, Unknown, ServerRefused, Unreachable or ClientUnusable."""
        ticket = self._begin(None)
        try:
            answer = ticket.acquire_and_wait()
            self._expect_held(ticket, answer)
            return Held(ticket, self._name, extends=self._client.extends)
        except BaseException:
            ticket.cancel()
            self._ticket = None
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release. Raises LockLost, Unknown or ServerRefused, unless the block itself raised."""
        ticket, self._ticket = self._ticket, None
        assert ticket is not None, "`with` enters before it leaves"
        answer = ticket.release_and_wait()
        if answer != RELEASED and error is None:
            raise release_error(self._name, answer, ticket)

    async def __aenter__(self) -> AsyncHeld:
        """As `__enter__`."""
        settler = self._settler = settler_of(asyncio.get_running_loop())
        ticket = self._begin(settler)
        try:
            future = settler.answer_of(ticket)
            answer = ticket.acquire()
            if answer is None:
                settler.wake(self._client, ticket)
                answer = await future
            self._expect_held(ticket, answer)
            return AsyncHeld(ticket, self._name, settler, extends=self._client.extends)
        except BaseException:
            # A grant may be under way, or its answer on the way to this task.
            ticket.cancel()
            self._ticket = None
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As `__exit__`. The release is carried out also if this task is cancelled meanwhile."""
        ticket, self._ticket = self._ticket, None
        settler = self._settler
        assert ticket is not None, "`async with` enters before it leaves"
        assert settler is not None, "`async with` enters before it leaves"
        settler.forget(ticket)
        if kind is GeneratorExit:
            # The task is collected, or its loop closed: nothing can be awaited any more.
            ticket.cancel()
            return
        future = settler.answer_of(ticket)
        answer = ticket.release()
        if answer is None:
            settler.wake(self._client, ticket)
            answer = await future
        if answer != RELEASED and error is None:
            raise release_error(self._name, answer, ticket)

    def _begin(self, settler: Settler | None) -> LockTicket:
        if self._ticket is not None:
            raise RuntimeError("this Lock is in use: make another one with client.lock() for each holder")
        ticket = self._ticket = self._client.ticket(self._request, None if settler is None else settler.port)
        return ticket

    def _expect_held(self, ticket: LockTicket, answer: int) -> None:
        if answer != HELD:
            raise acquire_error(self._name, answer, ticket)
