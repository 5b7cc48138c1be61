"""How many clients a lock served at a time, how many it starved, and how many waiting clients its releases woke.

By Little's law the average number of clients in a successful cycle (wait, hold, release, pause) is grants/s times the
mean length of a cycle. A client whose wait does not end is in no such cycle. Where few clients take all grants, the
waits of the grants are short, and this figure shows how few clients there are.

Promises: None in an open loop, whose clients wait for arrivals, and in a trial without a grant. With stages of clients
no client is called starved: only a part of the clients asks throughout the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench.analysis import histograms
from pybench.analysis.evidence import LEAST_CONTENDED
from pybench.matrix.durations import MS
from pybench.records.parts import KILLED
from pybench.strategies import Promise

if TYPE_CHECKING:
    from pybench.analysis.outcome import Counted, Outcome
    from pybench.matrix.cells import Cell
    from pybench.strategies import Strategy

CROWD = 8
"""The clients per key from which some client surely waits: one or two clients may alternate without a waiter."""
LONG_WAIT_NS = 1_000 * MS
"""A client with a shorter wait may give up before a release wakes it."""


def served_columns(cell: Cell, result: Outcome) -> dict[str, float | int | None]:
    """`clients_served` and `starved_clients` of one trial of `cell`."""
    return {"clients_served": clients_served(cell, result), "starved_clients": starved_clients(cell, result)}


def clients_served(cell: Cell, result: Outcome) -> float | None:
    """Grants/s x (mean response + mean hold + mean release + mean pause), at most the mean number of clients."""
    grants, window_ns = result.totals["grants"], result.totals["window_ns"]
    response_ns = _mean_ns(result.histograms, "response", "granted")
    if cell.rate_per_s is not None or not grants or not window_ns or response_ns is None:
        return None
    # With effects the release writes, and a hold with a conflict has no release: missing phases count as 0.
    other_ns = (_mean_ns(result.histograms, phase, None) or 0.0 for phase in ("hold", "release"))
    cycle_ns = response_ns + sum(other_ns) + cell.think.mean()
    return min(cell.mean_clients, grants / window_ns * cycle_ns)


def starved_clients(cell: Cell, result: Outcome) -> int | None:
    """The number of clients that asked in the window and had no grant; None in a trial without a grant.

    None too where the number of clients changes: a client that joins last may have no grant without any starvation. A
    client that died with its process did not ask to the end of the window, and is not counted.

    Without pauses every client of a closed loop asks all the time, even if its only attempt began before the window.
    """
    if not result.totals["grants"] or (cell.stages and cell.rate_per_s is None):
        return None
    asked = result.clients["attempts"] > 0
    if cell.rate_per_s is None and cell.think.mean() == 0:
        asked = np.ones_like(asked)
    if KILLED in result.clients:
        asked = asked.astype(bool) & (result.clients[KILLED] == 0)
    return int(np.count_nonzero(asked & (result.clients["grants"] == 0)))


def wake_up_columns(cell: Cell, result: Outcome, strategy: Strategy) -> dict[str, int | None]:
    """`wake_ups` and `missed_wake_ups` of one trial of `cell`; None for a lock that promises no wake-up."""
    if Promise.WAKE_UP not in strategy.promises:
        return {"wake_ups": None, "missed_wake_ups": None}
    return {"wake_ups": result.totals["wake_ups"], "missed_wake_ups": missed_wake_ups(cell, result.totals)}


def missed_wake_ups(cell: Cell, totals: Mapping[str, int]) -> int:
    """The contended grants of a trial without any wake-up message, although every release should send one; else 0.

    A wait may end before its client has subscribed, so a single grant without a message proves nothing. If many clients
    ask all the time, every release of a key has a subscribed client that waits.
    """
    all_ask = cell.rate_per_s is None and cell.think.mean() == 0 and not cell.stages
    all_wait = cell.retry.kind != "none" and cell.retry.max_attempts is None and cell.retry.max_wait_ns >= LONG_WAIT_NS
    crowded = cell.concurrency >= CROWD * cell.keys
    undisturbed = not any(totals[name] for name in ("errors", "unknown", "reconnects", "lost_calls"))
    many = totals["contended_grants"] >= LEAST_CONTENDED
    judged = all_ask and all_wait and crowded and undisturbed and many and not totals["wake_ups"]
    return totals["contended_grants"] if judged else 0


def _mean_ns(rows: Sequence[Counted], phase: str, outcome: str | None) -> float | None:
    parts: list[Any] = [row.hdr for row in rows if row.phase == phase and outcome in (None, row.outcome)]
    return histograms.mean_ns(parts)
