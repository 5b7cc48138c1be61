"""The link to a Postgres: one session that watches whether the server answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg

from pybench.errors import ServerError
from pybench.servers.postgres.connecting import connect_async
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.service.link import Link, LinkLost

if TYPE_CHECKING:
    from pybench.servers.postgres.connecting import AsyncSession
    from pybench.service.settings import Place

NAME: Final = "pybench-serve"
"""The `application_name` of sessions of the service."""
OPEN_S: Final = 1.0
"""For a session to open, which takes a process of the server."""


class PostgresLink(Link):
    """The link to one server."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.address)
        self.product = "postgres"
        self._endpoint = PostgresEndpoint.parse(place.url)
        self._session: AsyncSession | None = None

    async def _look(self) -> None:
        assert self._session is not None, "a link that is up has a session"
        try:
            await self._session.execute(b"SELECT 1")
        except psycopg.Error as error:
            raise LinkLost(f"the database failed: {type(error).__name__}") from None

    async def _hang_up(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _connect(self) -> None:
        try:
            session = await connect_async(self._endpoint, name=NAME, seconds=OPEN_S)
        except ServerError as error:
            raise LinkLost(error.message) from None
        version = session.info.server_version
        self.version = f"{version // 10_000}.{version % 10_000}"
        self._session = session
