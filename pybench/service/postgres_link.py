"""The link to a Postgres: one session that watches whether the server answers.

Promises: a server that is lost is known within `SILENCE_S`, and the link opens its session again by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import psycopg

from pybench.errors import ServerError
from pybench.servers.postgres.connecting import connect_async
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.service.links import PING_S, REOPEN_S, REPLY_S, LinkLost

if TYPE_CHECKING:
    from pybench.servers.postgres.connecting import AsyncSession
    from pybench.service.settings import Place

NAME: Final = "pybench-serve"
"""The `application_name` of sessions of the service."""
OPEN_S: Final = 1.0
"""For a session to open, which takes a process of the server."""


class PostgresLink:
    """The link to one server. `open` before use; `close` at the end."""

    def __init__(self, place: Place) -> None:
        self.address: Final = place.address
        self.is_up = False
        self.latency_s: float | None = None
        """Of the last look; None while the server is lost."""
        self.product: str | None = "postgres"
        self.version: str | None = None
        self.on_loss: list[Callable[[], None]] = []
        """Called when the server is lost."""
        self._endpoint = PostgresEndpoint.parse(place.url)
        self._session: AsyncSession | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and start to watch. Raises LinkLost."""
        await self._connect()
        self._keeper = asyncio.create_task(self._keep(), name=f"link to {self._endpoint}")

    async def close(self) -> None:
        """Stop to watch, and close the session."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        if self._session is not None:
            await self._session.close()

    async def _keep(self) -> None:
        while True:
            if self._session is None:
                with contextlib.suppress(LinkLost):
                    await self._connect()
                await asyncio.sleep(PING_S if self.is_up else REOPEN_S)
                continue
            try:
                async with asyncio.timeout(REPLY_S):
                    began = time.perf_counter()
                    await self._session.execute(b"SELECT 1")
                    self.latency_s = time.perf_counter() - began
            except (TimeoutError, psycopg.Error):
                await self._lost()
            await asyncio.sleep(PING_S)

    async def _connect(self) -> None:
        try:
            session = await connect_async(self._endpoint, name=NAME, seconds=OPEN_S)
        except ServerError as error:
            raise LinkLost(error.message, was_sent=False) from None
        version = session.info.server_version
        self.version = f"{version // 10_000}.{version % 10_000}"
        self._session = session
        self.is_up = True

    async def _lost(self) -> None:
        session, self._session = self._session, None
        self.latency_s = None
        self.is_up = False
        for told in self.on_loss:
            told()
        if session is not None:
            await session.close()
