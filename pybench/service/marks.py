"""The marks of requests with an `Idempotency-Key`, as they are kept beside the stock; `idempotency` has their use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

KEPT_S: Final = 86_400
"""How long an answer is kept."""
PENDING, DONE = b"p", b"d"
"""The first field of a mark."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The pending mark of one request."""

    key: str
    """Without the prefix of the service."""
    pending: bytes
    fingerprint: bytes

    def done(self, status: int, body: bytes) -> bytes:
        """The mark once the request has its answer."""
        return b"%s:%s:%d:%s" % (DONE, self.fingerprint, status, body)


class Marks(Protocol):
    """Where marks are kept: beside the stock."""

    async def begin(self, mark: Mark, lease_s: float) -> bytes | None:
        """Set the pending mark; None, or the mark that is there already. Raises StockLost."""

    async def finish(self, mark: Mark, done: bytes) -> bool:
        """Make the mark done if it is still pending for this request. Raises StockLost."""

    async def drop(self, mark: Mark) -> None:
        """Remove the mark if it is still pending for this request: a repeat begins anew. Raises StockLost."""
