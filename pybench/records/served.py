"""How many of the clients a lock served at a time, how many it served not at all, and how many its releases woke.

By Little's law the clients that are somewhere in a cycle that ends well (wait, hold, release, pause) are on average as
many as grants/s times the mean length of such a cycle. A client whose wait does not end is in no such cycle: where few
clients take all grants their waits are short, and this figure says how few they are.

Promises: None in an open loop, whose clients wait for arrivals, and where nothing was granted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench.analysis import histograms
from pybench.analysis.evidence import LEAST_CONTENDED
from pybench.matrix.durations import MS
from pybench.strategies import Promise

if TYPE_CHECKING:
    from pybench._core import HistogramRow, TrialResult
    from pybench.matrix.cells import Cell
    from pybench.strategies import Strategy

CROWD = 8
"""So many clients for each key: one or two of them may take turns so quickly that nobody else comes to wait."""
LONG_WAIT_NS = 1_000 * MS
"""Whoever gives up earlier may be gone before a release wakes it."""


def served_columns(cell: Cell, result: TrialResult) -> dict[str, float | int | None]:
    """`clients_served` and `starved_clients` of one trial of `cell`."""
    return {"clients_served": clients_served(cell, result), "starved_clients": starved_clients(cell, result)}


def clients_served(cell: Cell, result: TrialResult) -> float | None:
    """Grants/s x (mean response + mean hold + mean release + mean pause), and no more than there are clients."""
    grants, window_ns = result.totals["grants"], result.totals["window_ns"]
    response_ns = _mean_ns(result.histograms, "response", "granted")
    if cell.rate_per_s is not None or not grants or not window_ns or response_ns is None:
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
    if cell.rate_per_s is None and cell.think.mean() == 0:
        asked = np.ones_like(asked)
    return int(np.count_nonzero(asked & (result.clients["grants"] == 0)))


def wake_up_columns(cell: Cell, result: TrialResult, strategy: Strategy) -> dict[str, int | None]:
    """`wake_ups` and `missed_wake_ups` of one trial of `cell`; both None of a lock that promises none."""
    if Promise.WAKE_UP not in strategy.promises:
        return {"wake_ups": None, "missed_wake_ups": None}
    return {"wake_ups": result.totals["wake_ups"], "missed_wake_ups": missed_wake_ups(cell, result.totals)}


def missed_wake_ups(cell: Cell, totals: Mapping[str, int]) -> int:
    """The contended grants of a trial in which no message woke anybody, though each of its releases should have.

    A wait may be over before its client has subscribed, so a single grant without a message proves nothing. Where all
    of many clients ask all the time, somebody has subscribed to each key and waits whenever one is released.
    """
    all_ask = cell.rate_per_s is None and cell.think.mean() == 0
    all_wait = cell.retry.kind != "none" and cell.retry.max_attempts is None and cell.retry.max_wait_ns >= LONG_WAIT_NS
    crowded = cell.concurrency >= CROWD * cell.keys
    undisturbed = not any(totals[name] for name in ("errors", "unknown", "reconnects", "lost_calls"))
    many = totals["contended_grants"] >= LEAST_CONTENDED
    judged = all_ask and all_wait and crowded and undisturbed and many and not totals["wake_ups"]
    return totals["contended_grants"] if judged else 0


def _mean_ns(rows: Sequence[HistogramRow], phase: str, outcome: str | None) -> float | None:
    parts: list[Any] = [row.hdr for row in rows if row.phase == phase and outcome in (None, row.outcome)]
    values_ns, counts = histograms.merged(parts)
    return float(np.average(values_ns, weights=counts)) if len(counts) else None
