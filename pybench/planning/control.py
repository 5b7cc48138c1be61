"""The trials that check the run itself: its control, and two baselines of latency.

The control runs `none` with several clients on one key. Where the checker misses the overlaps of the control, the run
proves nothing. The baselines show the part of a latency that is not due to the lock: one idle round trip, and the
client's own work for a grant. An uncontended `mutex` acquires in one call. An advisory lock of a database does so, too,
with a prepared statement that reads no table and writes nothing. `none` sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pybench.matrix.cells import Cell
from pybench.matrix.durations import MS
from pybench.matrix.faults import NO_FAULTS
from pybench.matrix.guards import NO_GUARD
from pybench.matrix.round_trips import NO_ROUND_TRIP
from pybench.matrix.search_modes import MEASURE
from pybench.matrix.stages import NO_STAGES
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
"""For each kind of server the lock that acquires with one call of the least possible work."""

CALLS = {"naive": 2}
"""How many successive calls an acquire needs, for a lock that replaces those of `_ONE_CALL`."""


def control_cell(cells: Iterable[Cell], backend: str, kind: ServerKind) -> Cell:
    """The control of `backend`, with the most threads and processes of any cell and two clients on each thread."""
    everything = list(cells)
    threads, processes = most_load(everything)
    own = next(cell for cell in everything if on_backend(cell, backend))
    return replace(
        _plain(own, backend, kind),
        id=f"control of {backend}",
        strategy="none",
        concurrency=max(CLIENTS_AT_LEAST, 2 * threads * max(1, processes)),
        hold=Distribution("fixed", (HOLD_NS,)),
        threads=threads,
        processes=processes,
    )


def most_load(cells: Sequence[Cell]) -> tuple[int, int]:
    """The most threads of any of `cells`, and the most processes: the checker merges the events of all of them."""
    return max(cell.threads for cell in cells), max(cell.processes for cell in cells)


def round_trip_cell(cells: Sequence[Cell], backend: str, kind: ServerKind) -> Cell:
    """One client that takes a free lock: its service time is one idle call, received as in the first of `cells`.

    The call is that of the machine itself, without the axis `rtt`. The hold is the shortest hold of the cells, at most
    `HOLD_NS`. A call after a pause and a call in a tight loop differ in time, and which is faster depends on the sleep
    states of the machine.
    """
    shortest = min((cell.hold for cell in cells), key=lambda hold: hold.median())
    strategy, arguments = _ONE_CALL[kind]
    if {cell.strategy for cell in cells} == {"naive"}:
        # A run of `naive` alone needs no right to run scripts, so its baseline must not need the right either.
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
    """One client that sends nothing: its CPU time per grant is the client's own work."""
    return replace(_plain(cell, backend, kind), id="client alone", strategy="none", concurrency=1, threads=1)


def undisturbed(cell: Cell) -> Cell:
    """`cell` in a closed loop of one process, with uniform keys: no pauses, faults, stages, search, rtt or guard."""
    return replace(
        cell,
        key_choice=KeyChoice("uniform"),
        think=_NOTHING,
        rtt=NO_ROUND_TRIP,
        stages=NO_STAGES,
        mode=MEASURE,
        faults=NO_FAULTS,
        guard=NO_GUARD,
        guard_kind=None,
        rate_per_s=None,
        processes=0,
        after_lease="continue",
    )


def _plain(cell: Cell, backend: str, kind: ServerKind) -> Cell:
    return replace(
        undisturbed(cell),
        backend=backend,
        appendfsync=cell.appendfsync if kind is ServerKind.REDIS else "none",
        args=(),
        keys=1,
        keys_per_grant=1,
        key_order="random",
        read_share=0.0,
        nesting=1,
        hold=_NOTHING,
    )
