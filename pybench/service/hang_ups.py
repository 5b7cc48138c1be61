"""Clients that hang up, or do not send what they have announced: their request is broken off.

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
BODY_S: Final = 10.0
"""Time for a body to come."""


class HangUps:
    """Watches the client of one request until `stop`."""

    __slots__ = ("_call", "_looks", "_timer", "_watch")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._looks = 0
        self._watch: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(UNWATCHED_S, self._begin)

    def stop(self) -> None:
        """The request has ended."""
        self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _begin(self) -> None:
        self._looks += 1
        if self._call.has_body:
            self._watch = asyncio.create_task(self._look())
        elif self._looks * UNWATCHED_S > BODY_S:
            self._call.break_off(Cut.NO_BODY)
        else:
            self._timer = asyncio.get_running_loop().call_later(UNWATCHED_S, self._begin)

    async def _look(self) -> None:
        # The body was read, so the next message is the end of the connection.
        message = await self._call.receive()
        if message["type"] == "http.disconnect":
            self._call.break_off(Cut.HUNG_UP)
