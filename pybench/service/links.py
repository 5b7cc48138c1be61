"""Links: one connection of the service to each Redis server, for commands, and to know whether the server answers.

Promises: commands of many requests share the connection and its writes; a command fails within `REPLY_S`, whatever the
server does. A server that is lost is known at once when it closes the connection, and within `SILENCE_S` when it is
silent; the link opens its connection again by itself.

Written for the service because redis-py's asyncio client costs several times the CPU of a round trip per command.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

import hiredis

from pybench.servers.redis.endpoint import Endpoint
from pybench.service.settings import Place

PING_S: Final = 0.2
"""Between two looks at a server."""
REPLY_S: Final = 0.5
"""For a reply, and for a connection to open."""
REOPEN_S: Final = 0.1
"""Between two attempts to open the connection again."""
SILENCE_S: Final = PING_S + REPLY_S

_UNSENT: Final = 256 * 1024
"""Bytes that may wait for a server that does not read."""


class LinkLost(Exception):
    """The server did not answer. `was_sent`: whether the command may have been carried out."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class LinkRefused(Exception):
    """The server replied with an error."""


class _Wire(asyncio.Protocol):
    """One connection: replies come in the order of the commands."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._reader: Any = hiredis.Reader(protocolError=LinkRefused, replyError=LinkRefused)
        self._awaited: deque[asyncio.Future[Any]] = deque()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._on_end = on_end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        lost = LinkLost("the server closed the connection", was_sent=True)
        for future in self._awaited:
            if not future.done():
                future.set_exception(lost)
        self._awaited.clear()
        self._on_end()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not False:
                future = self._awaited.popleft()
                if not future.done():
                    if isinstance(reply, LinkRefused):
                        future.set_exception(reply)
                    else:
                        future.set_result(reply)
        except (LinkRefused, IndexError):
            # What listens there does not speak the protocol.
            self.abort()

    def ask(self, command: tuple[Any, ...]) -> asyncio.Future[Any]:
        """Send `command`; uvloop writes all commands of a round of the loop at once."""
        future = self._loop.create_future()
        if self._transport is None or self._transport.get_write_buffer_size() > _UNSENT:
            future.set_exception(LinkLost("the server takes no commands", was_sent=False))
            return future
        self._transport.write(hiredis.pack_command(command))
        self._awaited.append(future)
        return future

    def abort(self) -> None:
        """Close at once: what waits for a reply fails."""
        if self._transport is not None:
            self._transport.abort()


class RedisLink:
    """The link to one server. `open` before use; `close` at the end."""

    def __init__(self, place: Place) -> None:
        self.address: Final = place.address
        self.is_up = False
        self.latency_s: float | None = None
        """Of the last look; None while the server is lost."""
        self.version: str | None = None
        self.product: str | None = None
        self.on_loss: list[Callable[[], None]] = []
        """Called when the server is lost."""
        self._endpoint = Endpoint.parse(place.url)
        self._wire: _Wire | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and start to watch. Raises LinkLost or LinkRefused."""
        await self._connect()
        self._keeper = asyncio.create_task(self._keep(), name=f"link to {self._endpoint}")

    async def close(self) -> None:
        """Stop to watch, and close the connection."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        if self._wire is not None:
            self._wire.abort()

    def ask(self, *command: Any) -> asyncio.Future[Any]:  # noqa: ANN401 - texts, bytes and numbers
        """The future of the reply, which raises LinkLost or LinkRefused.

        A reply that does not come ends with the connection: the link closes it when a look has got no answer.
        """
        wire = self._wire
        if wire is None or not self.is_up:
            future = asyncio.get_running_loop().create_future()
            future.set_exception(LinkLost("the server does not answer", was_sent=False))
            return future
        return wire.ask(command)

    async def _keep(self) -> None:
        while True:
            if self._wire is None:
                with contextlib.suppress(LinkLost, LinkRefused):
                    await self._connect()
                await asyncio.sleep(PING_S if self.is_up else REOPEN_S)
                continue
            try:
                async with asyncio.timeout(REPLY_S):
                    began = time.perf_counter()
                    await self._wire.ask(("PING",))
                    self.latency_s = time.perf_counter() - began
            except (TimeoutError, LinkLost, LinkRefused):
                if self._wire is not None:
                    self._wire.abort()
                self._lost()
            await asyncio.sleep(PING_S)

    async def _connect(self) -> None:
        try:
            async with asyncio.timeout(REPLY_S):
                wire = await self._connected()
                try:
                    await self._log_in(wire)
                except BaseException:
                    wire.abort()
                    raise
        except (OSError, TimeoutError) as error:
            raise LinkLost(f"{self._endpoint}: {str(error) or 'no answer'}", was_sent=False) from None
        self._wire = wire
        self.is_up = True

    async def _connected(self) -> _Wire:
        loop, where = asyncio.get_running_loop(), self._endpoint
        if where.unix is not None:
            _, wire = await loop.create_unix_connection(self._new_wire, where.unix)
        else:
            _, wire = await loop.create_connection(self._new_wire, where.host or "", where.port)
        return wire

    def _new_wire(self) -> _Wire:
        def ended() -> None:
            if self._wire is wire:
                self._lost()

        wire = _Wire(ended)
        return wire

    async def _log_in(self, wire: _Wire) -> None:
        where = self._endpoint
        if where.password is not None:
            user = (where.username,) if where.username else ()
            await wire.ask(("AUTH", *user, where.password.get_secret_value()))
        if where.db:
            await wire.ask(("SELECT", where.db))
        told = await wire.ask(("INFO", "server"))
        facts = dict(line.split(":", 1) for line in told.decode(errors="replace").splitlines() if ":" in line)
        self.product = "valkey" if "valkey_version" in facts else "redis"
        self.version = facts.get("valkey_version") or facts.get("redis_version")

    def _lost(self) -> None:
        self._wire = None
        self.latency_s = None
        if self.is_up:
            self.is_up = False
            for told in self.on_loss:
                told()
