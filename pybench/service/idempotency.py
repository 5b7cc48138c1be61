"""Repeated requests: an `Idempotency-Key` gives a repeated purchase or lock call the answer of the first.

A mark under the key is set before the work. It is *pending* with the token of its request, or *done* with the answer.
The write of a purchase makes the mark done in the same atomic step, and only if the mark is still its own. So a mark
that is pending says that nothing was sold: after a crash it ends with its lease, and a repeat may begin anew, while a
purchase that comes late finds its mark gone and writes nothing.

Promises: over all processes of a service, each key leads to at most one write.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from pybench.service.answers import Answer, Problem
from pybench.service.marks import PENDING, Mark
from pybench.service.stock import StockLost

if TYPE_CHECKING:
    from pybench.service.calls import Call
    from pybench.service.marks import Marks

SPARE_S: Final = 10.0
"""How much longer than its wait and its work a request may take before its mark ends."""
REPLAYED: Final = (b"idempotency-replayed", b"true")


async def begin(marks: Marks, call: Call, key: str, body: bytes, lease_s: float) -> Mark | Answer:
    """The mark of a first request, or the answer of the request that it repeats.

    Raises Problem for a key that another request uses, and while the first request is still under way. Raises
    StockLost.
    """
    route = b"%s %s?%s\n" % (call.method.encode(), call.raw_path, call.query)
    fingerprint = hashlib.sha256(route + body).hexdigest()[:32].encode()
    token = b"%s:%s:%s" % (PENDING, fingerprint, secrets.token_hex(8).encode())
    mark = Mark(hashlib.sha256(key.encode()).hexdigest(), token, fingerprint)
    try:
        there = await marks.begin(mark, lease_s)
    except asyncio.CancelledError:
        await dropped(marks, mark)
        raise
    if there is None:
        return mark
    state, other, rest = there.split(b":", 2)
    if other != fingerprint:
        raise Problem(422, "Idempotency-Key reused", "another request was sent with this Idempotency-Key")
    if state == PENDING:
        message = "the first request with this Idempotency-Key is still under way: nothing is known of it yet"
        raise Problem(409, "Request in progress", message, retry_s=1)
    status, _, stored = rest.partition(b":")
    return Answer(int(status), stored, (REPLAYED,))


async def dropped(marks: Marks, mark: Mark) -> None:
    """Remove the mark of a request that had no effect; a mark that cannot be removed ends by itself."""
    with contextlib.suppress(StockLost):
        await marks.drop(mark)
