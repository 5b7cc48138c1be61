"""Binding to cores: one core for each load-generating thread, and the other cores for the servers that pybench starts.

The kernel tends to wake a server on the core of the client that has just written to it, since they share a cache. While
the server runs there, the client's holds cannot end: with holds of 1 ms at a tenth of the load, the p99 of their delay
was 170 us, and 40 us with a core for each thread. With too few cores, or without a server of pybench, nothing is bound.
Pybench does not bind a given server. Where a given server runs on this machine, threads avoid the cores that the server
is bound to. If it is bound to none, threads still keep to the last cores, so that they do not move between cores.
Servers that outnumber their cores are not bound: five servers on one core reply one after another, and a lock that
calls all five at once took 1.5 times as long.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pybench.planning.needs import all_parts_of
from pybench.servers.local_processes import core_of

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell
    from pybench.servers.local_processes import LocalServer


@dataclass(frozen=True, slots=True)
class Placement:
    """Core numbers of the kernel. An empty tuple means that nothing is bound."""

    drivers: tuple[int, ...] = ()
    """One core for each thread of the cell with the most threads."""
    servers: tuple[int, ...] = ()
    given: tuple[LocalServer, ...] = ()
    """Given servers on this machine, which pybench does not bind."""

    def manifest(self) -> dict[str, Any]:
        """The placement as an entry of the manifest."""
        return {"drivers": list(self.drivers), "servers": list(self.servers)}

    def shares_core(self) -> bool | None:
        """Whether a given server runs right now on the core of a load-generating thread; None where this is unknown."""
        if not self.drivers:
            return None
        seen = [core for server in self.given if server.one_process and (core := core_of(server.pid)) is not None]
        return any(core in self.drivers for core in seen) if seen else None

    def notes(self) -> list[str]:
        """A warning for each given server that may only run on the cores of the load-generating threads."""
        return [
            f"{server.address} is bound to the cores that the load generator needs "
            f"({', '.join(map(str, server.cores))}): both share these cores, which slows both"
            for server in self.given
            if self.drivers and set(server.cores) <= set(self.drivers)
        ]

    def beside(self, given: Sequence[LocalServer], cores: Iterable[int], threads: int) -> Placement:
        """The placement with the `given` servers of this machine: `threads` threads may use any of `cores`."""
        if self.drivers or not given:
            return replace(self, given=tuple(given))
        ordered = sorted(cores)
        bound = {core for server in given if not set(ordered) <= set(server.cores) for core in server.cores}
        free = [core for core in ordered if core not in bound]
        if bound and len(free) >= threads:
            drivers = free[-threads:]
        else:
            drivers = ordered[-threads:] if len(ordered) > threads else []
        return Placement(tuple(drivers), self.servers, tuple(given))


def place(cores: Iterable[int], threads: int, servers: int = 1) -> Placement:
    """The last of `cores` for `threads` threads, and the others for servers; nothing where no core would be left.

    The `servers` are not bound where they outnumber their cores.
    """
    ordered = sorted(cores)
    drivers, others = tuple(ordered[-threads:]), tuple(ordered[:-threads])
    if not others:
        return Placement()
    return Placement(drivers=drivers, servers=others if servers <= len(others) else ())


def placement_of(matrix: Matrix, cells: Iterable[Cell]) -> Placement:
    """The placement of a run of `cells` on this machine."""
    ran = list(cells)
    parts = [all_parts_of(cell) for cell in ran]
    places = {part.group.backend for used in parts for part in used}
    starts_one = any(not matrix.backends[place].is_given for place in places)
    if not starts_one or not hasattr(os, "sched_getaffinity"):
        return Placement()
    threads, servers = max(cell.all_threads for cell in ran), max(sum(part.servers for part in used) for used in parts)
    return place(os.sched_getaffinity(0), threads, servers)
