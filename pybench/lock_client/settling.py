"""How answers of the native threads reach an event loop: one descriptor for each loop, and one wake-up for a batch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybench import _core

if TYPE_CHECKING:
    from pybench._core import LockTicket
    from pybench.lock_client.client import LockClient


class Settler:
    """The futures of one event loop that wait for answers, of whatever client."""

    __slots__ = ("_losses", "_to_wake", "futures", "loop", "port")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.port = _core.LockPort()
        self.futures: dict[int, asyncio.Future[int]] = {}
        """By twice the ticket's id, and one more for an extension."""
        self._to_wake: dict[LockClient, LockTicket] = {}
        self._losses: dict[int, asyncio.Event] = {}
        loop.add_reader(self.port.fileno(), self._settle)

    def _settle(self) -> None:
        for ticket in self.port.settle(self.futures):
            if (event := self._losses.get(ticket)) is not None:
                event.set()

    def wake(self, client: LockClient, ticket: LockTicket) -> None:
        """Have the request of `ticket` handled: at once if it is the only one, otherwise with all of this round.

        One wake-up and one write for the requests of many tasks cost a fraction of as many for each.
        """
        if len(self.futures) == 1:
            ticket.wake()
        elif client not in self._to_wake:
            if not self._to_wake:
                self.loop.call_soon(self._wake_all)
            self._to_wake[client] = ticket

    def _wake_all(self) -> None:
        for ticket in self._to_wake.values():
            ticket.wake()
        self._to_wake.clear()

    def answer_of(self, ticket: LockTicket) -> asyncio.Future[int]:
        """The future of the answer to the next acquire or release."""
        future = self.futures[2 * ticket.id] = self.loop.create_future()
        return future

    def extension_of(self, ticket: LockTicket) -> asyncio.Future[int]:
        """The future of the answer to an extension; several tasks may await the same one."""
        key = 2 * ticket.id + 1
        if (future := self.futures.get(key)) is None or future.done():
            future = self.futures[key] = self.loop.create_future()
        return future

    def loss_of(self, ticket: LockTicket) -> asyncio.Event:
        """The event that is set when the lock is lost."""
        if (event := self._losses.get(ticket.id)) is None:
            event = self._losses[ticket.id] = asyncio.Event()
            if ticket.is_lost:
                event.set()
        return event

    def forget(self, ticket: LockTicket) -> None:
        """The lock is over: nobody is told of its loss any more."""
        if self._losses:
            self._losses.pop(ticket.id, None)


_ATTRIBUTE = "_pybench_lock_settler"


def settler_of(loop: asyncio.AbstractEventLoop) -> Settler:
    """The settler of the running `loop`.

    It belongs to the loop: the futures in it refer to the loop and to tasks, and a table of our own would keep a closed
    loop, with the locks of its tasks, for ever.
    """
    settler: Settler | None = getattr(loop, _ATTRIBUTE, None)
    if settler is None:
        settler = Settler(loop)
        setattr(loop, _ATTRIBUTE, settler)
    return settler
