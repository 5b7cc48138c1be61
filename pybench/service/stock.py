"""What a purchase needs of the place where stock lives; `stock_redis` and `stock_postgres` are the two places.

A purchase reads the stock, works, and writes the value that it has computed from what it read: two purchases at once
that take no lock lose one of the two updates, as they would in a program that forgot its lock. `take` is the one
operation that checks and writes at once.
"""

from __future__ import annotations

from typing import Final, Protocol

from pybench.service.marks import Mark, Marks

Pieces = tuple[bytes, bytes, bytes]
"""The answer of a purchase around two numbers: the stock before, and the stock after."""

MARK_GONE: Final = "the mark of this Idempotency-Key ended before the write: nothing was written"


class StockLost(Exception):
    """The server of the stock did not answer. `is_unknown`: whether the write may have been carried out."""

    def __init__(self, message: str, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.is_unknown = is_unknown


class OutcomeUnknown(StockLost):
    """The server did not answer a write: it may have been carried out, or not."""


class StockRefused(Exception):
    """The server refused the write: its constraint, or a mark that is not this purchase's any more."""


class Sale(Protocol):
    """One purchase under way."""

    async def read(self) -> int | None:
        """The stock; None for an unknown product. Raises StockLost."""

    async def write(self, stock: int, quantity: int, mark: Mark | None, answer: bytes) -> None:
        """Set the stock, and keep `answer` under the mark in the same step. Raises StockLost, StockRefused."""

    async def close(self) -> None:
        """End it: what was not written stays as it was."""


class Stock(Protocol):
    """The stock of all products."""

    async def reset(self, product: str, stock: int) -> None:
        """Set the stock of a product. Raises StockLost."""

    async def read(self, product: str) -> int | None:
        """The stock; None for an unknown product. Raises StockLost."""

    def sale(self, product: str) -> Sale:
        """A purchase that reads first and writes later; the caller closes it."""

    async def take(self, product: str, quantity: int, mark: Mark | None, pieces: Pieces) -> tuple[bool, int | None]:
        """Check and write at once: whether there was enough, and the stock before; None for an unknown product.

        The answer that is kept under the mark is made of the `pieces`. Raises StockLost, StockRefused.
        """

    async def subtract(self, product: str, quantity: int) -> int:
        """Subtract without a check, as a program does that checked before: the stock after.

        Raises StockLost, StockRefused.
        """

    async def close(self) -> None:
        """Close its connections."""


class MarkedStock(Stock, Marks, Protocol):
    """A place of stock, and of the marks of repeated requests beside it."""
