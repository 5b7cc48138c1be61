"""The link to a Redis server: one connection, for commands of all requests and to watch the server.

Promises: the commands of many requests share the connection and its writes. A reply that does not come within
`SILENCE_S` ends with the connection.

Written for the service because redis-py's asyncio client costs several times the CPU of a round trip per command.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

import hiredis

from pybench.servers.redis.endpoint import Endpoint
from pybench.service.link import REPLY_S, Link, LinkLost
from pybench.service.settings import Place

_UNSENT: Final = 256 * 1024
"""Bytes that may wait for a server that does not read."""


class LinkRefused(Exception):
    """The server replied with an error."""


class _Wire(asyncio.Protocol):
    """One connection: replies come in the order of the commands."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._reader: Any = hiredis.Reader(protocolError=LinkRefused, replyError=LinkRefused)
        self._awaited: deque[asyncio.Future[Any]] = deque()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        """Commands of this round of the loop."""
        self._on_end = on_end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._on_end()
        lost = LinkLost("the server closed the connection", was_sent=True)
        for future in self._awaited:
            if not future.done():
                future.set_exception(lost)
        self._awaited.clear()

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
        """Send `command`, together with all others of this round of the loop: a write costs more than a command."""
        future = self._loop.create_future()
        if self._transport is None or self._transport.get_write_buffer_size() > _UNSENT:
            future.set_exception(LinkLost("the server takes no commands"))
            return future
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(hiredis.pack_command(command))
        self._awaited.append(future)
        return future

    def _send(self) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def abort(self) -> None:
        """Close at once: what waits for a reply fails."""
        if self._transport is not None:
            self._transport.abort()


class RedisLink(Link):
    """The link to one server."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.address)
        self._endpoint = Endpoint.parse(place.url)
        self._wire: _Wire | None = None

    def ask(self, *command: Any) -> asyncio.Future[Any]:  # noqa: ANN401 - texts, bytes and numbers
        """The future of the reply, which raises LinkLost or LinkRefused."""
        wire = self._wire
        if wire is None or not self.is_up:
            future = asyncio.get_running_loop().create_future()
            future.set_exception(LinkLost("the server does not answer"))
            return future
        return wire.ask(command)

    async def _look(self) -> None:
        try:
            await self.ask("PING")
        except LinkRefused as refused:
            raise LinkLost(str(refused)) from None

    async def _hang_up(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.abort()

    async def _connect(self) -> None:
        try:
            async with asyncio.timeout(REPLY_S):
                wire = await self._connected()
                try:
                    await self._log_in(wire)
                except BaseException:
                    wire.abort()
                    raise
        except (OSError, TimeoutError, LinkRefused) as error:
            raise LinkLost(f"{self._endpoint}: {str(error) or 'no answer'}") from None
        self._wire = wire

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
                self.lost()

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
