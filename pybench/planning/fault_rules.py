"""The faults of a cell on its servers: which server each fault is for, and why a plan of faults is impossible.

Promises: pure functions of a cell and its matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pybench.matrix.durations import format_duration
from pybench.matrix.fault_kinds import Does, Target
from pybench.numbers import plural
from pybench.planning.needs import all_parts_of

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
        return f"mode {cell.mode.kind} looks for the rate of healthy servers; drop faults, or use a rate"
    backends, window_ns = _backends_of_servers(cell, matrix), cell.window_ns(matrix.duration_ns)
    kinds = [backend.kind for backend in backends]
    for fault in cell.faults.faults:
        place = place_of(fault, kinds)
        if place is None and (missing := _missing(fault, cell, kinds)):
            return f"{fault.text}: {missing}"
        if place is not None and backends[place].is_given and not fault.kind.by_core:
            return f"{fault.text}: pybench harms only servers that it started; let pybench start them, or drop faults"
        if reason := _beyond(fault, window_ns):
            return f"{fault.text}: {reason}"
    return None


def _missing(fault: Fault, cell: Cell, kinds: Sequence[ServerKind]) -> str | None:
    """Why `cell` has nothing that the fault can be done to."""
    kind = fault.on.server_kind
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
