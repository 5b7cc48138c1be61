"""The search of a cell for its limit: the rates between which it looks, how many probes and how long that takes.

Promises: a function of the cell and of the matrix alone, so a resumed run has the same searches.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pybench.matrix.durations import S, format_duration, format_rate
from pybench.planning.ceilings import most_per_s
from pybench.planning.limit_search import Bounds, most_probes, usual_probes

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell

START_SHARE = 1 / 16
"""The first rate, as a share of the most that clients and keys allow with an idle server."""
MOST_TIMES = 16
"""The highest rate, as a multiple of that: several calls in one write cost less than a call of an idle server."""
ARRIVALS = 20
"""The search probes no rate at which fewer arrivals come in a window; the curve may."""
HIGHEST_PER_S = 10_000_000.0
LEAST_PER_S = 0.001
"""As the axis `rate` allows."""


def bounds_of(cell: Cell, matrix: Matrix, trial: int) -> Bounds:
    """The bounds of the search of `cell` in trial number `trial`.

    The first rate differs from trial to trial by less than the width of the interval. Otherwise all trials would probe
    the same rates, and the median over them would be as coarse as a single search.
    """
    forecast = most_per_s(cell)
    least = least_per_s(cell, matrix)
    start = cell.mode.start_per_s or forecast * START_SHARE
    start = start * (1 + cell.mode.within) ** -_drawn(matrix.seed, trial)
    most = max(forecast, start, least) * MOST_TIMES
    start = min(max(start, least), HIGHEST_PER_S)
    return Bounds(start, least, min(max(most, start), HIGHEST_PER_S), cell.mode.within, cell.mode.shares)


def least_per_s(cell: Cell, matrix: Matrix) -> float:
    """The lowest rate that a window of `cell` can judge."""
    return max(ARRIVALS * S / cell.window_ns(matrix.duration_ns), LEAST_PER_S)


def usual_probes_of(cell: Cell, matrix: Matrix) -> int:
    """About how many probes one search takes; 1 for a cell without a search."""
    if not cell.mode.is_search:
        return 1
    return usual_probes(bounds_of(cell, matrix, 1), most_per_s(cell))


def most_probes_of(cell: Cell, matrix: Matrix) -> int:
    """The most probes that one search can take; 1 for a cell without a search."""
    return most_probes(bounds_of(cell, matrix, 1)) if cell.mode.is_search else 1


def why_no_search(cell: Cell, matrix: Matrix) -> str | None:
    """Why the search of `cell` is impossible; None where it is possible, and for a cell without a search."""
    if not cell.mode.is_search:
        return None
    if cell.stages:
        return f"mode {cell.mode.kind} sets the rate itself; drop stages"
    if cell.rate_per_s is not None:
        return f"mode {cell.mode.kind} sets the rate itself; drop rate, or use {cell.mode.kind}(start=...)"
    most, least = most_per_s(cell), least_per_s(cell, matrix)
    if most < least:
        needed = format_duration(int(-(-ARRIVALS * S // most) // S + 1) * S)
        return (
            f"clients and keys allow at most {format_rate(float(f'{most:.3g}'))}, and a search needs {ARRIVALS} "
            f"arrivals in a window; use a duration of {needed} or more"
        )
    return None


def _drawn(seed: int, trial: int) -> float:
    """A number from 0 to 1 for each trial, the same for all cells of a block."""
    digest = hashlib.sha256(f"search:{seed}:{trial}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
