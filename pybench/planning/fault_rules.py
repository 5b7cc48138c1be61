"""The faults of a cell on its servers: which server each fault is for, and why a plan of faults is impossible.

Promises: pure functions of a cell and its matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pybench.matrix.durations import format_duration
from pybench.matrix.fault_kinds import BREAK_MY_SERVERS, Does, Target
from pybench.numbers import plural
from pybench.planning.needs import all_parts_of
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybench.core_specs import FaultSpec
    from pybench.matrix import Matrix
    from pybench.matrix.backends import Backend
    from pybench.matrix.cells import Cell
    from pybench.matrix.faults import Fault
    from pybench.strategies import ServerKind


def _backends_of_servers(cell: Cell, matrix: Matrix) -> list[Backend]:
    """The backend of each server of `cell`, in the order in which its lock numbers them.

    The server of a guarded resource comes last, where it is not one of the lock.
    """
    return [matrix.backends[part.group.backend] for part in all_parts_of(cell) for _ in range(part.servers)]


def kinds_of_servers(cell: Cell, matrix: Matrix) -> list[ServerKind]:
    """The kind of each server of `cell`, in the order in which its lock numbers them."""
    return [backend.kind for backend in _backends_of_servers(cell, matrix)]


def place_of(fault: Fault, kinds: Sequence[ServerKind]) -> int | None:
    """The place of the fault's server among servers of these `kinds`; None where there is no such server."""
    alike = [place for place, kind in enumerate(kinds) if kind is fault.on.server_kind]
    return alike[fault.index] if fault.index < len(alike) else None


def servers_that_end(cell: Cell, matrix: Matrix) -> set[int]:
    """The places of the servers of `cell` that its faults end."""
    kinds = kinds_of_servers(cell, matrix) if cell.faults else []
    places = (place_of(fault, kinds) for fault in cell.faults.faults if fault.kind.does is Does.ENDS)
    return {place for place in places if place is not None}


def of_core(cell: Cell, kinds: Sequence[ServerKind], window_ns: int) -> list[FaultSpec]:
    """The faults of `cell` that the core carries out, in its form, in a window of this length."""
    return [
        cast(
            "FaultSpec",
            {
                "at_ns": fault.at_ns,
                "for_ns": window_ns - fault.at_ns if fault.for_ns is None else fault.for_ns,
                "do": fault.do,
                "server": place_of(fault, kinds),
                "client": fault.index if fault.on is Target.CLIENT else None,
                **{_IN_CORE.get(name, name): value for name, value in fault.arguments},
            },
        )
        for fault in cell.faults.faults
        if fault.kind.by_core
    ]


def periods_of(cell: Cell, window_ns: int) -> list[tuple[int, int]]:
    """When the faults of servers are planned, from the opening of the window."""
    return [
        (fault.at_ns, min(window_ns if fault.until_ns is None else fault.until_ns, window_ns))
        for fault in cell.faults.faults
        if not fault.kind.by_core
    ]


_IN_CORE = {"by": "by_ns"}


def why_no_faults(cell: Cell, matrix: Matrix) -> str | None:
    """The first reason against the faults of `cell`; None where they can be carried out."""
    if not cell.faults:
        return None
    if cell.mode.is_search:
        return (
            f"mode {cell.mode.kind} looks for the limit on healthy servers; remove the faults, or set a rate instead "
            "of the mode"
        )
    backends, window_ns = _backends_of_servers(cell, matrix), cell.window_ns(matrix.duration_ns)
    kinds = [backend.kind for backend in backends]
    may_harm = BREAK_MY_SERVERS in matrix.allow
    for fault in cell.faults.faults:
        place = place_of(fault, kinds)
        if place is None and (missing := _missing(fault, cell, kinds)):
            return f"{fault.text}: {missing}"
        is_given = place is not None and backends[place].is_given
        if is_given and not fault.kind.by_core and (reason := _of_given(fault, may_harm=may_harm)):
            return f"{fault.text}: {reason}"
        if fault.do == "drop-renewals" and not CATALOGUE[cell.strategy].renews(cell.args):
            return f"{fault.text}: {cell.strategy} renews no lease here, so this fault does nothing; drop this fault"
        if reason := _beyond(fault, window_ns):
            return f"{fault.text}: {reason}"
    return None


def harms_of_given(cell: Cell, matrix: Matrix) -> list[tuple[Fault, str]]:
    """The faults of `cell` that are done to given servers, each with the address of its server, without a password."""
    backends = _backends_of_servers(cell, matrix)
    kinds = [backend.kind for backend in backends]
    placed = [(fault, place_of(fault, kinds)) for fault in cell.faults.faults if not fault.kind.by_core]
    return [
        (fault, backends[place].shown_urls[backends[:place].count(backends[place])])
        for fault, place in placed
        if place is not None and backends[place].is_given
    ]


def _of_given(fault: Fault, *, may_harm: bool) -> str | None:
    """Why a fault cannot be done to a given server."""
    if fault.on not in fault.kind.of_given:
        return (
            f"pybench did not start this server, and {fault.do} needs its process; let pybench start it, or use a "
            "fault of its connections, such as cut"
        )
    if not may_harm:
        return "pybench harms no server of yours; --break-my-servers allows it, or let pybench start the server"
    if fault.do == "pause" and fault.for_ns is None:
        return "the pause of your own server needs a length, since the server itself ends it; add for"
    return None


def _missing(fault: Fault, cell: Cell, kinds: Sequence[ServerKind]) -> str | None:
    """Why `cell` has nothing that the fault can be done to."""
    kind = fault.on.server_kind
    if fault.on is Target.PROCESS:
        if not cell.processes:
            # With one process alone, its death would end the load.
            return f"the cell has no worker processes; add processes: {max(2, fault.index + 1)}, or use client[0]"
        last = f"process[{cell.processes - 1}]"
        has = plural(cell.processes, "process", "processes")
        return f"the cell has {has}; the last one is {last}" if fault.index >= cell.processes else None
    if kind is None:
        last = f"client[{cell.concurrency - 1}]"
        has = plural(cell.concurrency, "client")
        return f"the cell has {has}; the last one is {last}" if fault.index >= cell.concurrency else None
    count = kinds.count(kind)
    if not count:
        return f"the cell has no {kind.label} server; drop this fault"
    return f"the cell has {plural(count, f'{kind.label} server')}; the last one is {fault.on.value}[{count - 1}]"


def _beyond(fault: Fault, window_ns: int) -> str | None:
    """Why the fault does not fit into a window of this length."""
    window = format_duration(window_ns)
    if fault.at_ns >= window_ns:
        return f"the window of {window} is over by then; lengthen duration, or let the fault begin earlier"
    if fault.until_ns is not None and fault.until_ns > window_ns:
        return f"the window of {window} ends before the fault does; lengthen duration, or shorten the fault"
    return None
