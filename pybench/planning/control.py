"""The trials that check the run itself: its controls, and two baselines of latency.

A control runs `none` with several clients on one key. Where the checker misses the overlaps of a control, the run
proves nothing. The checker judges a trial of one process while it runs, and one of worker processes afterwards, from
their recordings: a backend has a control for each of these two ways that its cells use. The baselines show the part of
a latency that is not due to the lock: one idle round trip, and the client's own work for a grant. An uncontended
`mutex` acquires in one call. An advisory lock of a database does so, too, with a prepared statement that reads no table
and writes nothing. `none` sends nothing.
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
from pybench.planning.needs import parts_of
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


def control_cells(cells: Iterable[Cell]) -> list[Cell]:
    """The controls of `cells`, at most two for each backend: of its cells of one process, then of those of several.

    Each has the threads and processes of the `heaviest` of its cells, and two clients or more on each thread.
    """
    alike: dict[tuple[str, bool], list[Cell]] = {}
    for cell in cells:
        for part in parts_of(cell):
            alike.setdefault((part.group.backend, cell.processes > 0), []).append(cell)
    return [_control_cell(alike[key], key[0]) for key in sorted(alike)]


def _control_cell(cells: Sequence[Cell], backend: str) -> Cell:
    most = heaviest(cells)
    return replace(
        _plain(most, backend),
        id=f"control of {backend}" + (" in worker processes" if most.processes else ""),
        strategy="none",
        concurrency=max(CLIENTS_AT_LEAST, 2 * most.all_threads),
        hold=Distribution("fixed", (HOLD_NS,)),
        processes=most.processes,
    )


def heaviest(cells: Iterable[Cell]) -> Cell:
    """The one of `cells` with the most processes, and among those the one with the most threads.

    The product of the two maxima may be a number of threads that no cell has.
    """
    return max(cells, key=lambda cell: (cell.processes, cell.threads))


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
        _plain(cells[0], backend),
        id=f"idle call to {backend}",
        strategy=strategy,
        args=arguments,
        concurrency=1,
        threads=1,
        hold=Distribution("fixed", (min(shortest.median(), HOLD_NS),)),
    )


def client_cost_cell(cell: Cell, backend: str) -> Cell:
    """One client that sends nothing: its CPU time per grant is the client's own work."""
    return replace(_plain(cell, backend), id="client alone", strategy="none", concurrency=1, threads=1)


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


def _plain(cell: Cell, backend: str) -> Cell:
    """`cell` undisturbed, on `backend` alone, with one key and no hold."""
    group = next(part.group for part in parts_of(cell) if part.group.backend == backend)
    return replace(
        undisturbed(cell),
        backend=backend,
        appendfsync=group.appendfsync,
        args=(),
        keys=1,
        keys_per_grant=1,
        key_order="random",
        read_share=0.0,
        nesting=1,
        hold=_NOTHING,
    )
