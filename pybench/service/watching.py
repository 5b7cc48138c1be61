"""The servers of a service, each with the link that watches it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pybench.errors import ServerError
from pybench.service.link import Link, LinkLost
from pybench.service.redis_link import RedisLink
from pybench.service.settings import Settings

if TYPE_CHECKING:
    from pybench.service.postgres_link import PostgresLink


class Servers:
    """All servers of a service by their role."""

    def __init__(self, settings: Settings) -> None:
        self.redis: Final = None if settings.redis is None else RedisLink(settings.redis)
        self.redlock: Final = [RedisLink(place) for place in settings.redlock]
        self.postgres: Final = _postgres(settings)

    @property
    def by_role(self) -> dict[str, Sequence[Link]]:
        """The links of each role, in the order of the settings."""
        return {
            "redis": [] if self.redis is None else [self.redis],
            "redlock": self.redlock,
            "postgres": [] if self.postgres is None else [self.postgres],
        }

    def numbered(self) -> Iterator[tuple[str, int, Link]]:
        """Each with its role, and its number from 1 on."""
        for role, links in self.by_role.items():
            for number, link in enumerate(links, 1):
                yield role, number, link

    async def open(self, on_loss: Callable[[], None]) -> None:
        """Connect to all. `on_loss` is called whenever one is lost. Raises ServerError."""
        for role, _, link in self.numbered():
            link.on_loss.append(on_loss)
            try:
                await link.open()
            except LinkLost as error:
                hint = "does the server still run? its log may say why"
                raise ServerError(f"the {role} server of the service: {error}", hint=hint) from None

    async def close(self) -> None:
        """Close all links."""
        await asyncio.gather(*(link.close() for _, _, link in self.numbered()))


def _postgres(settings: Settings) -> PostgresLink | None:
    if settings.postgres is None:
        return None
    # Imported here, because psycopg takes 0.1 s to load.
    from pybench.service.postgres_link import PostgresLink

    return PostgresLink(settings.postgres)
