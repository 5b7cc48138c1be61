"""The application: one process of the service, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pybench.service.behind import application_behind
from pybench.service.figures import Figures
from pybench.service.front import Application, Front, Route
from pybench.service.lock_routes import PATH as LOCKS_PATH
from pybench.service.lock_routes import LockRoutes
from pybench.service.locks import Locks, server_lost, stop_waiting
from pybench.service.products import STOCK_PATH, Products
from pybench.service.purchases import Purchases
from pybench.service.strategies import Strategies
from pybench.service.watching import Servers

if TYPE_CHECKING:
    from pybench.service.logs import Log
    from pybench.service.settings import Settings
    from pybench.service.stock import MarkedStock


class Service:
    """`open` before the first request; `close` after the last."""

    def __init__(self, settings: Settings, log: Log) -> None:
        self._settings = settings
        self._log = log
        self._servers = Servers(settings)
        self._strategies = Strategies(settings, self._servers.by_role)
        self._figures = Figures(self._servers)
        self._stock: MarkedStock | None = None

    async def open(self) -> Application:
        """Connect to all servers; the application. Raises ServerError."""
        await self._servers.open(lambda: server_lost(self._strategies))
        stock = self._stock = await self._new_stock()
        figures = self._figures
        locks = Locks(self._strategies, self._settings.prefix, figures)
        purchases = Purchases(self._settings, locks, stock, stock)
        lock_routes = LockRoutes(self._settings, locks, stock)
        products = Products(stock)
        routes = {
            "/purchase": Route("/purchase", POST=purchases.answer),
            "/reset": Route("/reset", POST=products.reset),
            STOCK_PATH: Route("/stock/{product_id}", GET=products.read),
            LOCKS_PATH: Route("/api/locks/{strategy}/{resource}", POST=lock_routes.answer),
        }
        behind = cast("Application", application_behind(self._servers, figures))
        return Front(self._settings, {**routes, **self.more_routes()}, behind, figures, self._log)

    def more_routes(self) -> dict[str, Route]:
        """None; a benchmark compares with a route of its own."""
        return {}

    def stop_waiting(self) -> None:
        """Refuse the requests that wait for a lock: the service ends."""
        stop_waiting(self._strategies)

    async def close(self) -> None:
        """Release all locks and close all connections."""
        await self._strategies.close()
        if self._stock is not None:
            await self._stock.close()
        await self._servers.close()
        self._figures.write()

    async def _new_stock(self) -> MarkedStock:
        if self._settings.stock == "redis":
            from pybench.service.stock_redis import RedisStock

            assert self._servers.redis is not None, "the command line gives a Redis for the stock"
            return RedisStock(self._servers.redis, self._settings.prefix)
        from pybench.service.stock_postgres import PostgresStock

        assert self._servers.postgres is not None, "the command line gives a Postgres for the stock"
        return PostgresStock(self._settings, self._servers.postgres)
