"""A circuit breaker: after so many failures in a row requests are refused at once, until a probe succeeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pybench.service.answers import Problem

OPEN_S: Final = 1.0
"""How long an open breaker refuses before it lets one request through, the probe."""


class Breaker:
    """Of the servers of one strategy. A refusal of a lock is no failure: its servers have answered."""

    __slots__ = ("_failures", "_most", "_now", "_opened_at", "_probing")

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        """Open after `most` failures in a row; never where `most` is 0."""
        self._most = most
        self._now = now
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False

    def check(self) -> None:
        """Let a request through, or raise Problem. Each request let through ends with `worked`, `failed` or `left`."""
        if self._opened_at is None:
            return
        remaining = self._opened_at + OPEN_S - self._now()
        if remaining > 0 or self._probing:
            message = f"the last {self._failures} requests for this lock failed: the breaker is open"
            raise Problem(503, "Breaker open", message, retry_s=1)
        self._probing = True

    def worked(self) -> None:
        """A server of the lock has answered."""
        self._failures = 0
        self._opened_at = None
        self._probing = False

    def failed(self) -> None:
        """The servers of the lock did not answer, or answered with an error."""
        self._failures += 1
        self._probing = False
        if self._most and self._failures >= self._most:
            self._opened_at = self._now()

    def left(self) -> None:
        """The request ended before anything was known of the servers."""
        self._probing = False
