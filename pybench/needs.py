"""What a cell needs of its backend: how many servers, replicas, connections.

Promises: a function of the cell alone. Cells with the same `Group` share servers: one that needs three takes the first
three of those that another takes five of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from pybench.cells import Cell
    from pybench.matrix import Matrix
    from pybench.servers import Server, ServerPool


@dataclass(frozen=True, slots=True)
class Group:
    """Servers that are alike. A server with replicas is another one than that without: it has more to do."""

    backend: str
    appendfsync: Literal["off", "everysec", "always"]
    replicas: int


def group_of(cell: Cell) -> Group:
    """The group whose first servers `cell` is measured on."""
    return Group(cell.backend, cell.appendfsync, CATALOGUE[cell.strategy].replicas(cell.args))


def servers_of(cell: Cell) -> int:
    """How many servers, independent of each other, `cell` is measured on."""
    return CATALOGUE[cell.strategy].servers(cell.args)


def largest(cells: Iterable[Cell]) -> dict[Group, int]:
    """The servers that each group of `cells` has to have."""
    most: dict[Group, int] = {}
    for cell in cells:
        group = group_of(cell)
        most[group] = max(most.get(group, 0), servers_of(cell))
    return most


def servers_in(pool: ServerPool, matrix: Matrix, group: Group, count: int) -> list[Server]:
    """The first `count` servers of `group`. Raises ServerError, InputError for an address."""
    backend = matrix.backends[group.backend]
    return pool.get(backend, group.appendfsync, servers=count, replicas=group.replicas)


def own_connections(cell: Cell) -> int:
    """Connections that are each one client's own, to the first server."""
    return cell.concurrency if CATALOGUE[cell.strategy].owns_connection else 0


def subscribing_connections(cell: Cell) -> int:
    """Connections to subscribe over, to the first server: as many as clients share."""
    return shared_connections(cell) if CATALOGUE[cell.strategy].subscribes else 0


def shared_connections(cell: Cell) -> int:
    """Connections that clients share, to each server; each thread has one at least, however few are to be shared."""
    return max(cell.connections.used_by(cell.concurrency), cell.threads)
