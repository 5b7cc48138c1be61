"""The needs of a cell: how many servers, replicas and connections of each backend.

Promises: functions of the cell alone. Cells with the same `Group` share servers: a cell that needs three servers uses
the first three of the five that another cell needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pybench.matrix.fault_kinds import Target
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
    moves_clock: bool = False
    """Whether a fault moves the wall clock of one of them. Such a server takes longer to read its clock."""


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
        Part(_redis_group(cell, backend), strategy.servers_of_kind(kind, cell.args))
        if kind is ServerKind.REDIS
        else Part(Group(backend, "none", 0), 1)
        for backend, kind in zip(backends, strategy.server_kinds, strict=True)
    ]


def _redis_group(cell: Cell, backend: str) -> Group:
    """The group of the Redis servers of `cell`. With a fault `failover` each of them has a replica at least."""
    least = 1 if cell.faults.has("failover", Target.REDIS) else 0
    replicas = max(least, CATALOGUE[cell.strategy].replicas(cell.args))
    return Group(backend, cell.appendfsync, replicas, moves_clock=cell.faults.has("clock", Target.REDIS))


def guard_part_of(cell: Cell) -> Part | None:
    """The server of the guarded resource of `cell`, one of the lock's own where it is on their backend; else None."""
    if not cell.guard:
        return None
    own = next((part for part in parts_of(cell) if part.group.backend == cell.guard_on), None)
    if own is not None:
        return Part(own.group, 1)
    if cell.guard_kind is ServerKind.REDIS:
        return Part(_redis_group(cell, cell.guard_on), 1)
    return Part(Group(cell.guard_on, "none", 0), 1)


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


def group_for(part: Part, demands: Mapping[Group, Demand]) -> Group:
    """The group among `demands` whose servers `part` uses: its own, or one like it that can do more.

    The checks of a lock run without the faults of its cells, and so may need less than any cell.
    """
    wanted = part.group
    alike = [
        group
        for group, demand in demands.items()
        if (group.backend, group.appendfsync) == (wanted.backend, wanted.appendfsync)
        and group.replicas >= wanted.replicas
        and demand.servers >= part.servers
    ]
    return wanted if wanted in demands else min(alike, key=lambda group: (group.moves_clock, group.replicas))


def on_backend(cell: Cell, backend: str) -> bool:
    """Whether `cell` uses a server of `backend`."""
    return backend in parts_of_place(cell.backend)


def servers_in(pool: ServerPool, matrix: Matrix, group: Group, demand: Demand) -> list[AnyServer]:
    """The first servers of `group`, as many as `demand` needs. Raises ServerError, or InputError for a bad address."""
    backend = matrix.backends[group.backend]
    if backend.kind is ServerKind.POSTGRES:
        return [pool.postgres(backend, sessions=demand.sessions)]
    assert group.appendfsync != "none", "a Redis server has an appendfsync setting"
    wanted = {"servers": demand.servers, "replicas": group.replicas}
    return [*pool.redis(backend, group.appendfsync, **wanted, moves_clock=group.moves_clock)]


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
    return max(cell.connections.used_by(cell.concurrency), cell.all_threads)


def sessions_of(cell: Cell, backend: str) -> int:
    """How many connections the clients of `cell` open to one server of `backend`."""
    parts = parts_of_place(cell.backend)
    by_lock = shared_connections(cell) if backend in parts else 0
    by_lock += further_connections(cell) if parts[0] == backend else 0
    return by_lock + (guard_connections(cell) if cell.guard_on == backend else 0)


def guard_connections(cell: Cell) -> int:
    """How many connections the clients of `cell` open to the server of the guarded resource: one for each."""
    return cell.concurrency if cell.guard else 0
