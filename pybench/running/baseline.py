"""What of every grant is not the lock's, as a run measured it before its trials.

Does not do: measuring it; see `runner` and `control`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Baseline:
    """What of every grant is not the lock's: one idle call, and the client's own CPU. None: too few to tell."""

    round_trips_us: Sequence[float | None]
    """To each server that was given; to the first of those that pybench started, which are alike."""
    client_cpu_us: float | None

    def round_trip_us(self, servers: int) -> float | None:
        """What the call of a majority of the first `servers` takes at least: the last of the nearest ones to answer."""
        known = self.round_trips_us[:servers]
        if len(known) == 1:
            return known[0]
        nearest = sorted(trip for trip in known if trip is not None)
        return nearest[len(known) // 2] if len(nearest) > len(known) // 2 else None
