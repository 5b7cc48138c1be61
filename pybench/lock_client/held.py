"""A lock that is held: how long, with which fence, and what happens to it.

`Held` is for threads, `AsyncHeld` for the tasks of an event loop; they differ in what has to be awaited.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybench.lock_client.answers import EXTENDED, extend_error

if TYPE_CHECKING:
    from pybench._core import LockTicket
    from pybench.lock_client.settling import Settler


class _Held:
    """What can be read at any time, by any thread."""

    __slots__ = ("_extends", "_name", "_ticket")

    def __init__(self, ticket: LockTicket, name: str | bytes, *, extends: bool) -> None:
        self._ticket = ticket
        self._name = name
        self._extends = extends

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}, time_left={self.time_left}>"

    @property
    def name(self) -> str | bytes:
        """The name that was locked."""
        return self._name

    @property
    def fence(self) -> int | None:
        """A number higher than those of all earlier grants of this name; None for a strategy without fences."""
        return self._ticket.fence

    @property
    def time_left(self) -> float | None:
        """Seconds until the lock may be lost, less a margin for clocks; 0.0 once it is; None for a lock without ttl."""
        return self._ticket.time_left

    def _refuse_extension(self) -> None:
        if not self._extends:
            raise TypeError("this strategy cannot extend a lock: mutex, watchdog, fenced and notify(renew=ttl/3) can")


class Loss:
    """An event like `threading.Event` that is set when the lock is lost: its ttl, or its session, has ended.

    It is set before the server frees the lock: 1 % of the ttl and 2 ms before the ttl ends there.
    """

    __slots__ = ("_ticket",)

    def __init__(self, ticket: LockTicket) -> None:
        self._ticket = ticket

    def is_set(self) -> bool:
        """Whether the lock was lost while it was held."""
        return self._ticket.is_lost

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the lock is lost or released, at most `timeout` seconds. Whether it is lost."""
        return self._ticket.wait_for_loss(timeout)


class Held(_Held):
    """A lock that a `with` block holds."""

    __slots__ = ()

    @property
    def lost(self) -> Loss:
        """The event that is set when the lock is lost."""
        return Loss(self._ticket)

    def extend(self) -> float | None:
        """Renew the lease to a whole ttl from now. Returns `time_left`.

        Raises LockLost if the lock is no longer held, Unknown if no reply came, TypeError for a strategy without it.
        """
        self._refuse_extension()
        answer = self._ticket.extend_and_wait()
        if answer != EXTENDED:
            raise extend_error(self._name, answer, self._ticket)
        return self.time_left


class AsyncLoss:
    """As `Loss`, for the tasks of one event loop, like `asyncio.Event`."""

    __slots__ = ("_event", "_ticket")

    def __init__(self, ticket: LockTicket, event: asyncio.Event) -> None:
        self._ticket = ticket
        self._event = event

    def is_set(self) -> bool:
        """Whether the lock was lost while it was held."""
        return self._ticket.is_lost

    async def wait(self) -> bool:
        """Wait until the lock is lost. Returns True. Does not return when the lock is released in time."""
        if not self._ticket.is_lost:
            await self._event.wait()
        return True


class AsyncHeld(_Held):
    """A lock that an `async with` block holds."""

    __slots__ = ("_settler",)

    def __init__(self, ticket: LockTicket, name: str | bytes, settler: Settler, *, extends: bool) -> None:
        super().__init__(ticket, name, extends=extends)
        self._settler = settler

    @property
    def lost(self) -> AsyncLoss:
        """The event that is set when the lock is lost."""
        return AsyncLoss(self._ticket, self._settler.loss_of(self._ticket))

    async def extend(self) -> float | None:
        """As `Held.extend`."""
        self._refuse_extension()
        future = self._settler.extension_of(self._ticket)
        answer = self._ticket.extend()
        if answer is None:
            self._ticket.wake()
            answer = await future
        if answer != EXTENDED:
            raise extend_error(self._name, answer, self._ticket)
        return self.time_left
