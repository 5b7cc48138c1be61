"""Stock in Postgres: a row for each product, beside the marks of repeated requests.

With the row lock a purchase reads `FOR UPDATE` and writes in the same transaction, so that the row itself keeps other
purchases out. With the constraint it writes `stock = stock - n`, and the database refuses what would be negative.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import sql

from pybench.errors import ServerError
from pybench.servers.postgres.connecting import connect_async
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.service.marks import KEPT_S, Mark
from pybench.service.postgres_link import NAME
from pybench.service.stock import MARK_GONE, Pieces, StockLost, StockRefused

if TYPE_CHECKING:
    from pybench.servers.postgres.connecting import AsyncSession
    from pybench.service.postgres_link import PostgresLink
    from pybench.service.settings import Settings

REPLY_S: Final = 0.8
"""For a statement."""
ROW_LOCK_S: Final = 130.0
"""For a purchase with the row lock, with its work."""
TOO_LITTLE: Final = "Insufficient stock: refused by the constraint of the database"

_TEXTS: Final = {
    "reset": "INSERT INTO {stock} VALUES (%s, %s) ON CONFLICT (product) DO UPDATE SET stock = excluded.stock",
    "read": "SELECT stock FROM {stock} WHERE product = %s",
    "lock": "SELECT stock FROM {stock} WHERE product = %s FOR UPDATE",
    "write": "UPDATE {stock} SET stock = %s WHERE product = %s",
    "subtract": "UPDATE {stock} SET stock = stock - %s WHERE product = %s RETURNING stock",
    "take": "UPDATE {stock} SET stock = stock - %s WHERE product = %s AND stock >= %s RETURNING stock",
    "begin": "INSERT INTO {repeats} VALUES (%s, %s, now() + %s * interval '1 s') ON CONFLICT (key) DO UPDATE"
    " SET mark = excluded.mark, ends_at = excluded.ends_at WHERE {repeats}.ends_at < now() RETURNING 1",
    "mark": "SELECT mark FROM {repeats} WHERE key = %s",
    "finish": "UPDATE {repeats} SET mark = %s, ends_at = now() + %s * interval '1 s'"
    " WHERE key = %s AND mark = %s AND ends_at > now()",
    "drop": "DELETE FROM {repeats} WHERE key = %s AND mark = %s",
}


class PostgresSale:
    """One purchase under way."""

    def __init__(self, stock: PostgresStock, product: str) -> None:
        self._stock = stock
        self._product = product
        self._open = contextlib.AsyncExitStack()
        self._session: AsyncSession | None = None

    async def read(self) -> int | None:
        """The stock; with the row lock, it is locked until `close`. Raises StockLost."""
        stock = self._stock
        if not stock.row_lock:
            return await stock.read(self._product)
        session = self._session = await self._open.enter_async_context(stock.transaction(seconds=ROW_LOCK_S))
        with _translated():
            return await _number(session, stock.texts["lock"], [self._product])

    async def write(self, stock: int, quantity: int, mark: Mark | None, answer: bytes) -> None:
        """Write what was computed, and the mark in the same transaction. Raises StockLost, StockRefused."""
        try:
            if self._session is None:
                async with self._stock.transaction() as session:
                    await self._written(session, stock, quantity, mark, answer)
            else:
                with _translated():
                    await self._written(self._session, stock, quantity, mark, answer)
                self._session = None
                await self._open.aclose()
        except psycopg.errors.CheckViolation:
            raise StockRefused(TOO_LITTLE) from None

    async def close(self) -> None:
        """Roll back what was not written."""
        if self._session is not None:
            self._session = None
            with contextlib.suppress(_RolledBack, StockLost):
                await self._open.__aexit__(_RolledBack, _RolledBack(), None)

    async def _written(
        self, session: AsyncSession, stock: int, quantity: int, mark: Mark | None, answer: bytes
    ) -> None:
        texts = self._stock.texts
        if self._stock.constraint:
            await session.execute(texts["subtract"], [quantity, self._product])
        else:
            await session.execute(texts["write"], [stock, self._product])
        if mark is not None:
            await self._stock.finish_in(session, mark, mark.done(200, answer))


class PostgresStock:
    """The stock of all products, and the marks."""

    def __init__(self, settings: Settings, link: PostgresLink) -> None:
        assert settings.postgres is not None, "the stock is in Postgres"
        link.on_loss.append(self._forget_sessions)
        self._link = link
        self.row_lock: Final = settings.row_lock
        self.constraint: Final = settings.constraint
        self.texts: Final[Mapping[str, sql.Composed]] = {
            name: sql.SQL(text).format(
                stock=sql.Identifier(settings.schema, "stock"), repeats=sql.Identifier(settings.schema, "repeats")
            )
            for name, text in _TEXTS.items()
        }
        self._endpoint = PostgresEndpoint.parse(settings.postgres.url)
        self._idle: list[AsyncSession] = []
        # A purchase with the row lock keeps a session while it works.
        self._room = asyncio.Semaphore(settings.connections)

    @asynccontextmanager
    async def session(self, *, seconds: float = REPLY_S) -> AsyncIterator[AsyncSession]:
        """A session for some statements. Raises StockLost; an error of a constraint is passed on."""
        async with self._room:
            if not self._link.is_up:
                raise StockLost("the database does not answer")
            session: AsyncSession | None = None
            try:
                with _translated():
                    async with asyncio.timeout(seconds):
                        session = self._idle.pop() if self._idle else await connect_async(self._endpoint, name=NAME)
                        yield session
            finally:
                if session is not None:
                    await self._put_back(session)

    @asynccontextmanager
    async def transaction(self, *, seconds: float = REPLY_S) -> AsyncIterator[AsyncSession]:
        """A session inside of a transaction. Raises as `session`."""
        async with self.session(seconds=seconds) as session, session.transaction():
            yield session

    async def reset(self, product: str, stock: int) -> None:
        """Set the stock of a product. Raises StockLost."""
        async with self.session() as session:
            await session.execute(self.texts["reset"], [product, stock])

    async def read(self, product: str) -> int | None:
        """The stock; None for an unknown product. Raises StockLost."""
        async with self.session() as session:
            return await _number(session, self.texts["read"], [product])

    def sale(self, product: str) -> PostgresSale:
        """A purchase that reads first and writes later; the caller closes it."""
        return PostgresSale(self, product)

    async def take(self, product: str, quantity: int, mark: Mark | None, pieces: Pieces) -> tuple[bool, int | None]:
        """Check and write in one statement. Raises StockLost, StockRefused."""
        async with self.transaction() as session:
            after = await _number(session, self.texts["take"], [quantity, product, quantity])
            if after is None:
                return False, await _number(session, self.texts["read"], [product])
            before = after + quantity
            if mark is not None:
                first, middle, last = pieces
                answer = b"%s%d%s%d%s" % (first, before, middle, after, last)
                await self.finish_in(session, mark, mark.done(200, answer))
            return True, before

    async def subtract(self, product: str, quantity: int) -> int:
        """Subtract without a check, except for that of the constraint: the stock after.

        Raises StockLost, StockRefused.
        """
        try:
            async with self.session() as session:
                after = await _number(session, self.texts["subtract"], [quantity, product])
        except psycopg.errors.CheckViolation:
            raise StockRefused(TOO_LITTLE) from None
        assert after is not None, "a product that is subtracted from was read before"
        return after

    async def begin(self, mark: Mark, lease_s: float) -> bytes | None:
        """Set the pending mark; None, or the mark that is there already. Raises StockLost."""
        async with self.session() as session:
            if await _number(session, self.texts["begin"], [mark.key, mark.pending, lease_s]) is not None:
                return None
            row = await (await session.execute(self.texts["mark"], [mark.key])).fetchone()
        if row is None:
            raise StockLost("the mark of this Idempotency-Key comes and goes")
        return bytes(row[0])

    async def finish(self, mark: Mark, done: bytes) -> bool:
        """Make the mark done if it is still pending for this request. Raises StockLost."""
        try:
            async with self.session() as session:
                await self.finish_in(session, mark, done)
        except StockRefused:
            return False
        return True

    async def finish_in(self, session: AsyncSession, mark: Mark, done: bytes) -> None:
        """As `finish`, in the transaction of a session. Raises StockRefused, which undoes the transaction."""
        done_by = await session.execute(self.texts["finish"], [done, KEPT_S, mark.key, mark.pending])
        if done_by.rowcount != 1:
            raise StockRefused(MARK_GONE)

    async def drop(self, mark: Mark) -> None:
        """Remove the mark if it is still pending for this request. Raises StockLost."""
        async with self.session() as session:
            await session.execute(self.texts["drop"], [mark.key, mark.pending])

    async def close(self) -> None:
        """Close all sessions."""
        while self._idle:
            await self._idle.pop().close()

    def _forget_sessions(self) -> None:
        """Those of a server that was lost would fail one by one once it is back."""
        stale, self._idle = self._idle, []
        for session in stale:
            session.pgconn.finish()

    async def _put_back(self, session: AsyncSession) -> None:
        """Keep a session that is as it was; close any other."""
        is_usable = not session.closed and session.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if is_usable:
            self._idle.append(session)
        else:
            await session.close()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Inside, what goes wrong with the database becomes StockLost, except for an error of a constraint."""
    try:
        yield
    except TimeoutError:
        raise StockLost("the database does not answer", is_unknown=True) from None
    except ServerError as error:
        raise StockLost(error.message) from None
    except psycopg.errors.IntegrityError:
        raise
    except psycopg.Error as error:
        # Without a code of the server it is the connection that failed, perhaps after a commit was sent.
        raise StockLost(f"the database failed: {type(error).__name__}", is_unknown=error.sqlstate is None) from None


class _RolledBack(Exception):
    """Ends a transaction without writing."""


async def _number(session: AsyncSession, text: sql.Composed, arguments: list[object]) -> int | None:
    row = await (await session.execute(text, arguments)).fetchone()
    return None if row is None else int(row[0])
