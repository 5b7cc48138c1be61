"""Utilisation, the share of time in which keys were held, and efficiency, the share of the highest rate of one key.

Promises: both figures are from 0 to 1. They are None where holds overlapped or readers shared a key, since overlapping
holds do not add up to a share of time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pybench.strategies import Judge

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell
    from pybench.strategies import Strategy

OVERLAPS = ("double_grants", "double_grants_after_overrun", "sessions_lost", "lease_overruns")
"""The totals that count forbidden overlaps of holds."""


def use_columns(
    cell: Cell, strategy: Strategy, totals: Mapping[str, int], round_trip_us: float | None
) -> dict[str, float | None]:
    """`utilisation` and `efficiency` of one trial of `cell`."""
    window_ns, permits = totals["window_ns"], strategy.permits(cell.args)
    if not _excluded(cell, strategy, totals) or window_ns <= 0:
        return {"utilisation": None, "efficiency": None}
    held_ns = totals["nominal_hold_ns"] * cell.keys_per_grant
    utilisation = _share(held_ns, window_ns * cell.keys * permits)
    efficiency = None
    if cell.keys == 1 and round_trip_us is not None:
        # Grants/s times the shortest time of a grant of one key: its hold and one idle round trip, `rtt` included.
        efficiency = _share(held_ns + totals["grants"] * round_trip_us * 1e3, window_ns * permits)
    return {"utilisation": utilisation, "efficiency": efficiency}


def _excluded(cell: Cell, strategy: Strategy, totals: Mapping[str, int]) -> bool:
    """Whether no two holds of one permit overlapped."""
    if strategy.judged_by is Judge.EFFECTS or cell.read_share > 0:
        return False
    return not any(totals[name] for name in OVERLAPS)


def _share(of: float, whole: float) -> float:
    # A hold that began in the window may end after it, and a busy server may reply faster than an idle one.
    return min(1.0, of / whole)
