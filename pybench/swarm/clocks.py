"""How far the wall clock of a worker is ahead of the master's, by messages that go there and back.

The worker's clock is read between the two readings of ours, so its offset lies within half a round trip around the
middle. The exchange with the shortest round trip has the smallest error.

Does not do: correcting anything. Clocks of different hosts are never compared to judge a lock.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ClockOffset:
    """The best estimate so far. Both are None before the first answer."""

    offset_ns: int | None = None
    """The worker's wall clock less ours."""
    error_ns: int | None = None
    """The true offset is at most this far from `offset_ns`."""

    def learn(self, sent_ns: int, theirs_ns: int, received_ns: int) -> None:
        """One exchange: our clock at both ends, and the worker's in between."""
        error_ns = max(received_ns - sent_ns, 0) // 2
        if self.error_ns is None or error_ns < self.error_ns:
            self.offset_ns = theirs_ns - (sent_ns + received_ns) // 2
            self.error_ns = error_ns
