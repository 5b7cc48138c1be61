"""Stock in Redis: a key for each product, beside the marks of repeated requests.

Every key ends by itself after a day, so that a service that was killed leaves nothing for ever.
"""

from __future__ import annotations

from typing import Any, Final

from pybench.service.link import LinkLost
from pybench.service.marks import KEPT_S, Mark
from pybench.service.redis_link import LinkRefused, RedisLink
from pybench.service.stock import MARK_GONE, Pieces, StockLost, StockRefused

STOCK_KEPT_S: Final = 86_400

_WRITE = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[4])
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[5])
return 1
"""
_TAKE = """
if KEYS[2] and redis.call('GET', KEYS[2]) ~= ARGV[3] then return 'gone' end
local before = redis.call('GET', KEYS[1])
if not before then return false end
local after = tonumber(before) - tonumber(ARGV[1])
if after < 0 then return {0, tonumber(before)} end
after = string.format('%.0f', after)
redis.call('SET', KEYS[1], after, 'EX', ARGV[2])
if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[4] .. before .. ARGV[5] .. after .. ARGV[6], 'EX', ARGV[7])
end
return {1, tonumber(before)}
"""
_FINISH = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
"""
_DROP = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisSale:
    """One purchase under way."""

    __slots__ = ("_key", "_stock")

    def __init__(self, stock: RedisStock, product: str) -> None:
        self._stock = stock
        self._key = stock.key(product)

    async def read(self) -> int | None:
        """The stock; None for an unknown product. Raises StockLost."""
        found = await self._stock.ask("GET", self._key)
        return None if found is None else int(found)

    async def write(self, stock: int, _quantity: int, mark: Mark | None, answer: bytes) -> None:
        """Set the stock to what was computed from an earlier reading. Raises StockLost, StockRefused."""
        if mark is None:
            await self._stock.ask("SET", self._key, stock, "EX", STOCK_KEPT_S)
            return
        keys = (self._key, self._stock.mark_key(mark))
        done = mark.done(200, answer)
        if not await self._stock.ask("EVAL", _WRITE, 2, *keys, mark.pending, done, stock, STOCK_KEPT_S, KEPT_S):
            raise StockRefused(MARK_GONE)

    async def close(self) -> None:
        """Nothing is open."""


class RedisStock:
    """The stock of all products, and the marks."""

    def __init__(self, link: RedisLink, prefix: str) -> None:
        self._link = link
        self._prefix = prefix

    def key(self, product: str) -> str:
        """Of a product's stock."""
        return f"{self._prefix}stock:{product}"

    def mark_key(self, mark: Mark) -> str:
        """Of a mark."""
        return f"{self._prefix}repeat:{mark.key}"

    async def ask(self, *command: Any) -> Any:  # noqa: ANN401 - whatever Redis replies
        """The reply. Raises StockLost."""
        try:
            return await self._link.ask(*command)
        except LinkLost as lost:
            raise StockLost(str(lost), is_unknown=lost.was_sent) from None
        except LinkRefused as refused:
            raise StockLost(f"the server refused the command: {refused}") from None

    async def reset(self, product: str, stock: int) -> None:
        """Set the stock of a product. Raises StockLost."""
        await self.ask("SET", self.key(product), stock, "EX", STOCK_KEPT_S)

    async def read(self, product: str) -> int | None:
        """The stock; None for an unknown product. Raises StockLost."""
        found = await self.ask("GET", self.key(product))
        return None if found is None else int(found)

    def sale(self, product: str) -> RedisSale:
        """A purchase that reads first and writes later."""
        return RedisSale(self, product)

    async def take(self, product: str, quantity: int, mark: Mark | None, pieces: Pieces) -> tuple[bool, int | None]:
        """Check and write at once. Raises StockLost, StockRefused."""
        keys = [self.key(product)]
        arguments: list[Any] = [quantity, STOCK_KEPT_S]
        if mark is not None:
            keys.append(self.mark_key(mark))
            first, middle, last = pieces
            arguments += [mark.pending, mark.done(200, first), middle, last, KEPT_S]
        reply = await self.ask("EVAL", _TAKE, len(keys), *keys, *arguments)
        if reply == b"gone":
            raise StockRefused(MARK_GONE)
        return (False, None) if reply is None else (bool(reply[0]), int(reply[1]))

    async def subtract(self, product: str, quantity: int) -> int:
        """Subtract without a check: the stock after. Raises StockLost."""
        return int(await self.ask("DECRBY", self.key(product), quantity))

    async def begin(self, mark: Mark, lease_s: float) -> bytes | None:
        """Set the pending mark; None, or the mark that is there already. Raises StockLost."""
        key = self.mark_key(mark)
        for _ in range(3):
            if await self.ask("SET", key, mark.pending, "NX", "PX", int(lease_s * 1_000)) is not None:
                return None
            there: bytes | None = await self.ask("GET", key)
            if there is not None:
                return there
        raise StockLost("the mark of this Idempotency-Key comes and goes")

    async def finish(self, mark: Mark, done: bytes) -> bool:
        """Make the mark done if it is still pending for this request. Raises StockLost."""
        return bool(await self.ask("EVAL", _FINISH, 1, self.mark_key(mark), mark.pending, done, KEPT_S))

    async def drop(self, mark: Mark) -> None:
        """Remove the mark if it is still pending for this request. Raises StockLost."""
        await self.ask("EVAL", _DROP, 1, self.mark_key(mark), mark.pending)

    async def close(self) -> None:
        """The link is closed by whoever opened it."""
