"""Clients that hang up: their request is broken off, so that it waits for no lock and holds none.

A fast request is not watched: a task for each would cost more than its lock.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pybench.service.calls import Cut

if TYPE_CHECKING:
    from pybench.service.calls import Call

UNWATCHED_S: Final = 0.05
"""How long a request runs before its client is watched."""


class HangUps:
    """Watches the client of one request until `stop`."""

    __slots__ = ("_call", "_timer", "_watch")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._watch: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(UNWATCHED_S, self._begin)

    def stop(self) -> None:
        """The request has ended."""
        self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _begin(self) -> None:
        self._watch = asyncio.create_task(self._look())

    async def _look(self) -> None:
        # Once the body was read, the next message is the end of the connection.
        if not self._call.has_body:
            return
        message = await self._call.receive()
        if message["type"] == "http.disconnect":
            self._call.break_off(Cut.HUNG_UP)
