"""Waiting for a lock: by the lock client's own policy, or by one that the request names.

The lock client tries again with full jitter from 1 ms to 50 ms, or waits in the queue of the server. A request may
name another policy of the matrix, `fixed(base=100ms)`; then each attempt is an acquire of its own with a wait of 0.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Final

from pybench.lock_client import NotAcquired
from pybench.matrix.values import Retry

if TYPE_CHECKING:
    from pybench.lock_client import Lock, LockClient
    from pybench.service.calls import Limits

_S: Final = 1e-9


class Retries:
    """One acquire of one request."""

    __slots__ = ("_client", "_name", "_policy", "_ttl", "_wait_ns")

    def __init__(self, client: LockClient, name: str, limits: Limits, wait_ns: int) -> None:
        self._client = client
        self._name = name
        self._ttl = limits.ttl
        self._policy = limits.retry
        self._wait_ns = wait_ns

    async def acquired(self) -> Lock:
        """The lock, which is held. Raises LockError."""
        if self._policy is None:
            return await self._attempt(f"{self._wait_ns}ns")
        return await self._by(self._policy)

    async def _attempt(self, wait: str) -> Lock:
        lock = self._client.lock(self._name, ttl=self._ttl, wait=wait)
        await lock.__aenter__()
        return lock

    async def _by(self, policy: Retry) -> Lock:
        deadline = time.monotonic() + min(self._wait_ns, policy.max_wait_ns) * _S
        pause = policy.base_ns * _S
        attempts = 0
        while True:
            try:
                return await self._attempt("0")
            except NotAcquired:
                attempts += 1
                pause = next_pause(policy, attempts, pause)
                is_last = policy.max_attempts is not None and attempts >= policy.max_attempts
                if is_last or policy.kind == "none" or time.monotonic() + pause > deadline:
                    raise
            await asyncio.sleep(pause)


def next_pause(policy: Retry, refusals: int, last_s: float) -> float:
    """Seconds before the next attempt after so many refusals, of which the last was followed by `last_s`."""
    base, cap = policy.base_ns * _S, policy.cap_ns * _S
    # A power of a hundred is beyond any cap.
    grown = min(cap, base * policy.factor ** min(refusals - 1, 100))
    match policy.kind:
        case "exponential":
            return grown
        case "full-jitter":
            return random.uniform(0, grown)
        case "equal-jitter":
            return grown / 2 + random.uniform(0, grown / 2)
        case "decorrelated-jitter":
            return min(cap, random.uniform(base, max(base, last_s * 3)))
        case "fixed" | "none":
            return base
