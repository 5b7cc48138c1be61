"""How many of the clients a lock served at a time, and how many it served not at all.

By Little's law the clients that are somewhere in a cycle that ends well (wait, hold, release, pause) are on average as
many as grants/s times the mean length of such a cycle. A client whose wait does not end is in no such cycle: where few
clients take all grants their waits are short, and this figure says how few they are.

Promises: None in an open loop, whose clients wait for arrivals, and where nothing was granted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench import histograms
from pybench.values import ClosedLoop

if TYPE_CHECKING:
    from pybench._core import HistogramRow, TrialResult
    from pybench.cells import Cell


def served_columns(cell: Cell, result: TrialResult) -> dict[str, float | int | None]:
    """`clients_served` and `starved_clients` of one trial of `cell`."""
    return {"clients_served": clients_served(cell, result), "starved_clients": starved_clients(cell, result)}


def clients_served(cell: Cell, result: TrialResult) -> float | None:
    """Grants/s x (mean response + mean hold + mean release + mean pause), and no more than there are clients."""
    grants, window_ns = result.totals["grants"], result.totals["window_ns"]
    response_ns = _mean_ns(result.histograms, "response", "granted")
    if not isinstance(cell.loop, ClosedLoop) or not grants or not window_ns or response_ns is None:
        return None
    # Effects are written by the release, and a hold that met a conflict has no release: absent phases take no time.
    rest_ns = (_mean_ns(result.histograms, phase, None) or 0.0 for phase in ("hold", "release"))
    cycle_ns = response_ns + sum(rest_ns) + cell.think.mean()
    return min(float(cell.concurrency), grants / window_ns * cycle_ns)


def starved_clients(cell: Cell, result: TrialResult) -> int | None:
    """The clients without a grant in the window, though they asked for one; None where nothing was granted.

    Without pauses every client of a closed loop asks all the time, also one whose only attempt began before the window.
    """
    if not result.totals["grants"]:
        return None
    asked = result.clients["attempts"] > 0
    if isinstance(cell.loop, ClosedLoop) and cell.think.mean() == 0:
        asked = np.ones_like(asked)
    return int(np.count_nonzero(asked & (result.clients["grants"] == 0)))


def _mean_ns(rows: Sequence[HistogramRow], phase: str, outcome: str | None) -> float | None:
    parts: list[Any] = [row.hdr for row in rows if row.phase == phase and outcome in (None, row.outcome)]
    values_ns, counts = histograms.merged(parts)
    return float(np.average(values_ns, weights=counts)) if len(counts) else None
