"""A link: what the service has to each server, to know whether the server answers.

Promises: a server that closes its connection is known as lost at once, one that is silent within `SILENCE_S`; the link
connects again by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

PING_S: Final = 0.2
"""Between two looks at a server."""
REPLY_S: Final = 0.5
"""For a reply, and for a connection to open."""
REOPEN_S: Final = 0.1
"""Between two attempts to connect again."""
BEHIND_S: Final = 0.05
"""For a reply that has come already, and that our own loop, which was held up, has not read yet."""
SILENCE_S: Final = PING_S + REPLY_S + BEHIND_S


class LinkLost(Exception):
    """The server did not answer. `was_sent`: whether the command may have been carried out."""

    def __init__(self, message: str, *, was_sent: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class Link(ABC):
    """The link to one server. `open` before use; `close` at the end."""

    def __init__(self, address: str | None) -> None:
        self.address: Final = address
        """Without credentials; None for a server that pybench started."""
        self.is_up = False
        self.latency_s: float | None = None
        """Of the last look; None while the server is lost."""
        self.product: str | None = None
        self.version: str | None = None
        self.on_loss: Final[list[Callable[[], None]]] = []
        """Called when the server is lost."""
        self._keeper: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and start to watch. Raises LinkLost."""
        await self._connect()
        self.is_up = True
        self._keeper = asyncio.create_task(self._keep(), name="pybench-link")

    async def close(self) -> None:
        """Stop to watch, and close the connection."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        await self._hang_up()

    def lost(self) -> None:
        """The server did not answer, or has closed the connection."""
        self.latency_s = None
        if self.is_up:
            self.is_up = False
            for told in self.on_loss:
                told()

    @abstractmethod
    async def _connect(self) -> None:
        """Open a connection. Raises LinkLost."""

    @abstractmethod
    async def _look(self) -> None:
        """Ask the server for a sign of life. Raises LinkLost."""

    @abstractmethod
    async def _hang_up(self) -> None:
        """Close the connection, if there is one."""

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(PING_S if self.is_up else REOPEN_S)
            if self.is_up:
                try:
                    self.latency_s = await self._looked()
                except (TimeoutError, LinkLost):
                    self.lost()
            else:
                await self._hang_up()
                with contextlib.suppress(LinkLost):
                    await self._connect()
                    self.is_up = True

    async def _looked(self) -> float:
        """How long a sign of life took in seconds. Raises TimeoutError, LinkLost.

        A loop that was held up runs its timers before it reads its sockets. So a look that is late gets another moment.
        """
        began = time.perf_counter()
        look = asyncio.ensure_future(self._look())
        try:
            for seconds in (REPLY_S, BEHIND_S):
                await asyncio.wait({look}, timeout=seconds)
                if look.done():
                    look.result()
                    return time.perf_counter() - began
        finally:
            look.cancel()
        raise TimeoutError
