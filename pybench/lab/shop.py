"""The product that locks guard in an experiment: the stock of the HTTP service, without HTTP.

A buyer reads the stock, works, and subtracts what it buys if the stock that it had read was enough. Nothing but its
lock keeps others from doing the same meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from pybench.errors import ServerError
from pybench.service.link import LinkLost
from pybench.service.settings import Place, Settings
from pybench.service.stock import StockLost

if TYPE_CHECKING:
    from pybench.lab.stage import Stage
    from pybench.service.link import Link
    from pybench.service.stock import Stock

PRODUCT: Final = "product"
SESSIONS: Final = 16
"""Of each process with a stock in Postgres."""


@dataclass(frozen=True, slots=True)
class Shop:
    """Where the stock lives. JSON goes to other processes over a pipe, with the password."""

    kind: str
    """`redis` or `postgres`."""
    url: str
    prefix: str
    schema: str
    constraint: bool

    @classmethod
    def on(cls, stage: Stage, kind: str, *, constraint: bool = False) -> Shop:
        """A shop on a server of the stage, with its table where it needs one. Raises ServerError, InputError."""
        if kind == "redis":
            (server,) = stage.redis()
            return cls(kind, stage.url(server), stage.prefix, "", constraint=False)
        from pybench.service.schemas import create_stock_schema

        database = stage.postgres()
        shop = cls(kind, stage.url(database), stage.prefix, stage.new_schema("stock"), constraint)
        create_stock_schema(database, shop._settings())
        return shop

    def to_json(self) -> dict[str, Any]:
        """For another process, which passes it to `Shop(**...)`."""
        return asdict(self)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Stock]:
        """Its stock, for this task. Raises ServerError as soon as its server is lost, and turns StockLost into it."""
        link, stock = self._opened()
        task, is_lost = asyncio.current_task(), asyncio.Event()

        def end() -> None:
            is_lost.set()
            if task is not None:
                task.cancel()

        try:
            await link.open()
            # A buyer that works would see it only at its write.
            link.on_loss.append(end)
            yield stock
        except (LinkLost, StockLost) as lost:
            raise _lost(str(lost)) from None
        except asyncio.CancelledError:
            if not is_lost.is_set():
                raise
            raise _lost("it does not answer any more") from None
        finally:
            await stock.close()
            await link.close()

    def _opened(self) -> tuple[Link, Stock]:
        settings = self._settings()
        if self.kind == "redis":
            from pybench.service.redis_link import RedisLink
            from pybench.service.stock_redis import RedisStock

            link = RedisLink(Place(self.url, None))
            return link, RedisStock(link, self.prefix)
        from pybench.service.postgres_link import PostgresLink
        from pybench.service.stock_postgres import PostgresStock

        session = PostgresLink(Place(self.url, None))
        return session, PostgresStock(settings, session)

    def _settings(self) -> Settings:
        is_redis = self.kind == "redis"
        return Settings(
            redis=Place(self.url, None) if is_redis else None,
            redlock=(),
            postgres=None if is_redis else Place(self.url, None),
            prefix=self.prefix,
            schema=self.schema,
            lock_schema="",
            stock="redis" if is_redis else "postgres",
            constraint=self.constraint,
            connections=SESSIONS,
        )


def _lost(reason: str) -> ServerError:
    return ServerError(f"the server of the stock: {reason}", hint="does it still run? its log may say why")


async def fill(shop: Shop, stock: int) -> None:
    """Set the stock of the one product."""
    async with shop.opened() as opened:
        await opened.reset(PRODUCT, stock)


async def left(shop: Shop) -> int:
    """The stock of the one product."""
    async with shop.opened() as opened:
        found = await opened.read(PRODUCT)
    assert found is not None, "the product was filled before"
    return found
