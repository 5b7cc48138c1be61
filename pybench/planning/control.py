"""The trials that a run makes for itself: its control, and what an idle call and the client itself cost.

The control is `none` with several clients on one key: a run whose checker does not catch it proves nothing. The other
two show what of a latency is not the lock's: one idle round trip (an uncontended `mutex` acquires in one call, and so
does an advisory lock of a database, whose statement is prepared, reads no table and writes nothing) and the client's
own work for a grant (`none` sends nothing).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pybench.matrix.cells import Cell
from pybench.matrix.durations import MS
from pybench.matrix.values import Distribution, KeyChoice
from pybench.planning.needs import on_backend
from pybench.strategies import Arguments, ServerKind

CLIENTS_AT_LEAST = 8
HOLD_NS = 1 * MS
CONTROL_NS = 300 * MS
BASELINE_WARMUP_NS = 50 * MS
BASELINE_NS = 200 * MS
LONGER_BASELINE_NS = 10 * BASELINE_NS

_NOTHING = Distribution("fixed", (0,))

_ONE_CALL: dict[ServerKind, tuple[str, Arguments]] = {
    ServerKind.REDIS: ("mutex", ()),
    ServerKind.POSTGRES: ("pg-advisory", (("wait", "try"),)),
}
"""The lock of each kind of server that acquires in one call, and that call does as little as one can."""

CALLS = {"naive": 2}
"""Calls of an acquire, one after another, of a lock that stands in for those."""


def control_cell(cells: Iterable[Cell], backend: str, kind: ServerKind) -> Cell:
    """The control of `backend`: the most threads that any cell has, and two clients or more on each."""
    everything = list(cells)
    threads = max(cell.threads for cell in everything)
    own = next(cell for cell in everything if on_backend(cell, backend))
    return replace(
        _plain(own, backend, kind),
        id=f"control of {backend}",
        strategy="none",
        concurrency=max(CLIENTS_AT_LEAST, 2 * threads),
        hold=Distribution("fixed", (HOLD_NS,)),
        threads=threads,
    )


def round_trip_cell(cells: Sequence[Cell], backend: str, kind: ServerKind) -> Cell:
    """One client that takes a free lock: its service time is one idle call, waited for as the first of `cells` waits.

    It holds as the cells do, though at most `HOLD_NS`: a call after a pause is not as fast as one of a tight loop,
    and which of the two is the faster depends on how the machine sleeps.
    """
    shortest = min((cell.hold for cell in cells), key=lambda hold: hold.median())
    strategy, arguments = _ONE_CALL[kind]
    if {cell.strategy for cell in cells} == {"naive"}:
        # Such a run needs no right to scripts, and its baseline asks for no more.
        strategy, arguments = "naive", ()
    return replace(
        _plain(cells[0], backend, kind),
        id=f"idle call to {backend}",
        strategy=strategy,
        args=arguments,
        concurrency=1,
        threads=1,
        hold=Distribution("fixed", (min(shortest.median(), HOLD_NS),)),
    )


def client_cost_cell(cell: Cell, backend: str, kind: ServerKind) -> Cell:
    """One client that sends nothing: its CPU for a grant is the client's own."""
    return replace(_plain(cell, backend, kind), id="client alone", strategy="none", concurrency=1, threads=1)


def _plain(cell: Cell, backend: str, kind: ServerKind) -> Cell:
    return replace(
        cell,
        backend=backend,
        appendfsync=cell.appendfsync if kind is ServerKind.REDIS else "none",
        args=(),
        keys=1,
        key_choice=KeyChoice("uniform"),
        keys_per_grant=1,
        key_order="random",
        read_share=0.0,
        nesting=1,
        hold=_NOTHING,
        think=_NOTHING,
        rate_per_s=None,
        after_lease="continue",
    )
