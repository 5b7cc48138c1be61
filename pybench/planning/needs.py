"""The needs of a cell: how many servers, replicas and connections of each backend.

Promises: functions of the cell alone. Cells with the same `Group` share servers: a cell that needs three servers uses
the first three of the five that another cell needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pybench.matrix.places import parts_of_place
from pybench.strategies import CATALOGUE, ServerKind

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell
    from pybench.servers import AnyServer, ServerPool

MONITORING_SESSIONS = 3
"""Sessions of a trial besides those of its clients: for its tables, for figures, and for the sampling of waits."""


CallConditions = tuple[str, str, str]
"""Backend, `appendfsync` and `poll`: the time of an idle call depends on these three."""


@dataclass(frozen=True, slots=True)
class Group:
    """Interchangeable servers. Servers with replicas form a group of their own, since replication costs time."""

    backend: str
    appendfsync: Literal["off", "everysec", "always", "none"]
    replicas: int


@dataclass(frozen=True, slots=True)
class Part:
    """The first servers of one group, on which a cell is measured."""

    group: Group
    servers: int


@dataclass(frozen=True, slots=True)
class Demand:
    """The needs of all cells of one group."""

    servers: int
    sessions: int
    """The most sessions that clients open to one server at a time."""


def parts_of(cell: Cell) -> list[Part]:
    """The servers of `cell`, in the order in which its lock numbers servers."""
    strategy, backends = CATALOGUE[cell.strategy], parts_of_place(cell.backend)
    if not strategy.server_kinds:
        return [Part(Group(backends[0], cell.appendfsync, 0), 1)]
    return [
        Part(Group(backend, cell.appendfsync, strategy.replicas(cell.args)), strategy.servers_of_kind(kind, cell.args))
        if kind is ServerKind.REDIS
        else Part(Group(backend, "none", 0), 1)
        for backend, kind in zip(backends, strategy.server_kinds, strict=True)
    ]


def guard_part_of(cell: Cell) -> Part | None:
    """The server of the guarded resource of `cell`, one of the lock's own where it is on their backend; else None."""
    if not cell.guard:
        return None
    own = next((part for part in parts_of(cell) if part.group.backend == cell.guard_on), None)
    if own is not None:
        return Part(own.group, 1)
    appendfsync = cell.appendfsync if cell.guard_kind is ServerKind.REDIS else "none"
    return Part(Group(cell.guard_on, appendfsync, 0), 1)


def guard_place_of(cell: Cell) -> int | None:
    """The place of the guard's server among those of the lock; None where it is another server, or there is none."""
    place = 0
    for part in parts_of(cell):
        if cell.guard and part.group.backend == cell.guard_on:
            return place
        place += part.servers
    return None


def all_parts_of(cell: Cell) -> list[Part]:
    """The servers of `cell` and, where it is another one, that of its guarded resource."""
    guard = guard_part_of(cell)
    return [*parts_of(cell), *([guard] if guard is not None and guard_place_of(cell) is None else [])]


def call_conditions_of(cell: Cell) -> list[CallConditions]:
    """The conditions of an idle call of `cell`, for each of its backends."""
    return [(part.group.backend, part.group.appendfsync, cell.poll) for part in parts_of(cell)]


def servers_of(cell: Cell) -> int:
    """How many independent servers `cell` is measured on."""
    return sum(part.servers for part in parts_of(cell))


def largest(cells: Iterable[Cell]) -> dict[Group, Demand]:
    """For each group the most servers and sessions that any of `cells` needs."""
    most: dict[Group, Demand] = {}
    for cell in cells:
        for part in all_parts_of(cell):
            before = most.get(part.group, Demand(0, 0))
            sessions = max(before.sessions, sessions_of(cell, part.group.backend))
            most[part.group] = Demand(max(before.servers, part.servers), sessions)
    return most


def on_backend(cell: Cell, backend: str) -> bool:
    """Whether `cell` uses a server of `backend`."""
    return backend in parts_of_place(cell.backend)


def servers_in(pool: ServerPool, matrix: Matrix, group: Group, demand: Demand) -> list[AnyServer]:
    """The first servers of `group`, as many as `demand` needs. Raises ServerError, or InputError for a bad address."""
    backend = matrix.backends[group.backend]
    if backend.kind is ServerKind.POSTGRES:
        return [pool.postgres(backend, sessions=demand.sessions)]
    assert group.appendfsync != "none", "a Redis server has an appendfsync setting"
    return [*pool.redis(backend, group.appendfsync, servers=demand.servers, replicas=group.replicas)]


def own_connections(cell: Cell) -> int:
    """How many connections to the first server belong to a single client."""
    return cell.concurrency if CATALOGUE[cell.strategy].opens_own_connections(cell.args) else 0


def further_connections(cell: Cell) -> int:
    """Connections to the first server besides the shared ones: clients' own, and one subscription per shared one."""
    return own_connections(cell) + (shared_connections(cell) if CATALOGUE[cell.strategy].subscribes else 0)


def shared_connections(cell: Cell) -> int:
    """How many shared connections a cell opens to each server; each thread needs at least one."""
    if not CATALOGUE[cell.strategy].opens_shared_connections(cell.args):
        return 0
    return max(cell.connections.used_by(cell.concurrency), cell.threads)


def sessions_of(cell: Cell, backend: str) -> int:
    """How many connections the clients of `cell` open to one server of `backend`."""
    parts = parts_of_place(cell.backend)
    by_lock = shared_connections(cell) if backend in parts else 0
    by_lock += further_connections(cell) if parts[0] == backend else 0
    return by_lock + (guard_connections(cell) if cell.guard_on == backend else 0)


def guard_connections(cell: Cell) -> int:
    """How many connections the clients of `cell` open to the server of the guarded resource: one for each."""
    return cell.concurrency if cell.guard else 0
