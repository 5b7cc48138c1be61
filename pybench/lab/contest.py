"""Two clients and one lock: the first holds it, something happens to the servers, and the second one asks.

Both know their leases by their own clocks: the first still holds the lock as long as it has time left.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybench.errors import InputError
from pybench.lab.clients import client_row
from pybench.lab.findings import ClientRow
from pybench.strategies import ServerKind

if TYPE_CHECKING:
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage
    from pybench.lock_client import Held, LockClient
    from pybench.servers import Endpoint

TTL = "30s"
"""Longer than any of these experiments: only a loss on a server frees such a lock."""
ONCE = "0"
"""The `wait` of a client that tries once."""
REFUSED = "Lock not acquired"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of one acquire."""

    held: Held | None
    """None: refused."""
    at: float
    """When it ended, a reading of `time.monotonic`."""
    row: ClientRow
    reason: str = ""
    """Why it was refused, as the lock client says it."""

    @property
    def holds(self) -> bool:
        """Whether the client believes to hold the lock now."""
        held = self.held
        return held is not None and not held.lost.is_set() and held.time_left != 0

    @property
    def left_ms(self) -> float | None:
        """What its lease has left now in milliseconds; None where it does not hold the lock, or has no lease."""
        return round(self.held.time_left * 1e3, 3) if self.held is not None and self.held.time_left else None


@contextmanager
def attempt(
    client: LockClient, name: str, *, ttl: str = TTL, wait: str = ONCE, shared: bool = False
) -> Iterator[Attempt]:
    """Try to take a lock, and hold it in the block. A release that fails, as that of a lost lock does, is no error.

    Raises InputError for a ttl that the lock does not take.
    """
    from pybench.lock_client import LockError, NotAcquired, Unknown, Unreachable

    began = time.monotonic()
    try:
        lock = client.lock(name, ttl=ttl, wait=wait, shared=shared)
    except ValueError as error:
        message, _, hint = str(error).partition("\n  hint: ")
        raise InputError(f"--ttl: {message}", hint=hint or "give another --ttl") from None
    try:
        held = lock.__enter__()
    except (NotAcquired, Unknown, Unreachable) as error:
        yield Attempt(None, time.monotonic(), client_row(began, locked=False, error=REFUSED), error.message)
        return
    try:
        yield Attempt(held, time.monotonic(), client_row(began, locked=True))
    finally:
        with suppress(LockError):
            lock.__exit__(None, None, None)


def client_on(stage: Stage, lock: ChosenLock, servers: Sequence[Endpoint], *, connections: int = 2) -> LockClient:
    """A client of a lock on these servers, closed when the experiment ends. Raises InputError."""
    from pybench.lab.stage import ClientSpec

    urls = [server.url.get_secret_value() for server in servers]
    client = ClientSpec(lock.text, urls, None, connections, None).open()
    stage.at_end(client.close)
    return client


def servers_of(lock: ChosenLock) -> int:
    """How many Redis servers a lock needs."""
    entry = lock.entry
    assert entry is not None, "only locks of the catalogue take part"
    return max(1, entry.servers_of_kind(ServerKind.REDIS, lock.arguments))


def not_of_redis_alone(lock: ChosenLock) -> str:
    """For `Experiment.unfit` of experiments on Redis servers that fail while one client holds the lock."""
    from pybench.lab.locks import needs_client

    entry = lock.entry
    if entry is None or not lock.keeps_out:
        return "it takes no lock"
    if entry.server_kinds != (ServerKind.REDIS,):
        return "here only Redis servers fail, and a database decides"
    if entry.permits(lock.arguments) > 1:
        return "the second client has a permit of its own"
    return needs_client(lock)
