"""Which cores the parts of a run keep to: one for each thread that drives, the others for the servers it starts.

Left to itself the kernel likes to wake a server on the core of the client that has just written to it, the better for
their shared cache. While it runs there, holds that end must wait: with holds of 1 ms at a tenth of the load their
lateness had a p99 of 170 us so, and of 40 us with a core for each. Where there are too few cores for that, or no server
of ours, the kernel decides as before. A given server is not ours to bind: where it runs on this machine the driving
threads keep off the cores that its owner bound it to, and where he bound it to none, to the last cores all the same, so
that at least they do not wander. Servers of which there are more than cores for them are bound to none: five on
one core answer one after another, and a lock that asks them all at once took half as long again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pybench.planning.needs import parts_of, servers_of
from pybench.servers.local_processes import core_of

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell
    from pybench.servers.local_processes import LocalServer


@dataclass(frozen=True, slots=True)
class Placement:
    """Numbers of cores, as the kernel counts them. Empty: these are bound to none."""

    drivers: tuple[int, ...] = ()
    """One for each thread of the cell that has most."""
    servers: tuple[int, ...] = ()
    given: tuple[LocalServer, ...] = ()
    """Given servers of this machine, which are bound to what their owners like."""

    def manifest(self) -> dict[str, Any]:
        """As the manifest has it."""
        return {"drivers": list(self.drivers), "servers": list(self.servers)}

    def shares_core(self) -> bool | None:
        """Whether a given server ran just now on a core that a driving thread keeps to; None where nobody can tell."""
        if not self.drivers:
            return None
        seen = [core for server in self.given if server.one_process and (core := core_of(server.pid)) is not None]
        return any(core in self.drivers for core in seen) if seen else None

    def notes(self) -> list[str]:
        """What is amiss before anything is measured: a given server that may run on the cores of the threads alone."""
        return [
            f"{server.address} is bound to the cores that the load generator needs "
            f"({', '.join(map(str, server.cores))}): the two take turns there"
            for server in self.given
            if self.drivers and set(server.cores) <= set(self.drivers)
        ]

    def beside(self, given: Sequence[LocalServer], cores: Iterable[int], threads: int) -> Placement:
        """The same beside the `given` servers of this machine: `threads` threads may have any of `cores`."""
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
    """The last of `cores` for `threads` threads; nothing where none would be left.

    The others for the servers, unless they are fewer than the `servers` that answer one client at a time.
    """
    ordered = sorted(cores)
    drivers, others = tuple(ordered[-threads:]), tuple(ordered[:-threads])
    if not others:
        return Placement()
    return Placement(drivers=drivers, servers=others if servers <= len(others) else ())


def placement_of(matrix: Matrix, cells: Iterable[Cell]) -> Placement:
    """Where the parts of a run of `cells` belong on this machine."""
    ran = list(cells)
    places = {part.group.backend for cell in ran for part in parts_of(cell)}
    starts_one = any(not matrix.backends[place].is_given for place in places)
    if not starts_one or not hasattr(os, "sched_getaffinity"):
        return Placement()
    threads, servers = max(cell.threads for cell in ran), max(servers_of(cell) for cell in ran)
    return place(os.sched_getaffinity(0), threads, servers)
