"""What a cell needs of its backends: how many servers, replicas, connections.

Promises: a function of the cell alone. Cells with the same `Group` share servers: one that needs three takes the first
three of those that another takes five of.
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

WATCHING_SESSIONS = 3
"""Sessions of a database that a trial needs beside those of its clients: tables, figures, and who samples waits."""


Setting = tuple[str, str, str]
"""Backend, `appendfsync` and `poll`: what an idle call depends on."""


@dataclass(frozen=True, slots=True)
class Group:
    """Servers that are alike. A server with replicas is another one than that without: it has more to do."""

    backend: str
    appendfsync: Literal["off", "everysec", "always", "none"]
    replicas: int


@dataclass(frozen=True, slots=True)
class Part:
    """The servers of one group that a cell is measured on: its first ones."""

    group: Group
    servers: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What cells need of one group."""

    servers: int
    sessions: int
    """The most that clients have with one of them at a time."""


def parts_of(cell: Cell) -> list[Part]:
    """What `cell` is measured on, in the order in which its lock counts servers."""
    strategy, backends = CATALOGUE[cell.strategy], parts_of_place(cell.backend)
    if not strategy.server_kinds:
        return [Part(Group(backends[0], cell.appendfsync, 0), 1)]
    return [
        Part(Group(backend, cell.appendfsync, strategy.replicas(cell.args)), strategy.servers_of_kind(kind, cell.args))
        if kind is ServerKind.REDIS
        else Part(Group(backend, "none", 0), 1)
        for backend, kind in zip(backends, strategy.server_kinds, strict=True)
    ]


def settings_of(cell: Cell) -> list[Setting]:
    """What an idle call of `cell` depends on, for each of its backends."""
    return [(part.group.backend, part.group.appendfsync, cell.poll) for part in parts_of(cell)]


def servers_of(cell: Cell) -> int:
    """How many servers, independent of each other, `cell` is measured on."""
    return sum(part.servers for part in parts_of(cell))


def largest(cells: Iterable[Cell]) -> dict[Group, Demand]:
    """What each group of `cells` has to have for the one that needs most."""
    most: dict[Group, Demand] = {}
    for cell in cells:
        for part in parts_of(cell):
            before = most.get(part.group, Demand(0, 0))
            sessions = max(before.sessions, sessions_of(cell, part.group.backend))
            most[part.group] = Demand(max(before.servers, part.servers), sessions)
    return most


def on_backend(cell: Cell, backend: str) -> bool:
    """Whether `cell` has a server of `backend`."""
    return backend in parts_of_place(cell.backend)


def servers_in(pool: ServerPool, matrix: Matrix, group: Group, demand: Demand) -> list[AnyServer]:
    """The first servers of `group`, as many as `demand` says. Raises ServerError, InputError for an address."""
    backend = matrix.backends[group.backend]
    if backend.kind is ServerKind.POSTGRES:
        return [pool.postgres(backend, sessions=demand.sessions)]
    assert group.appendfsync != "none", "a Redis server keeps its data in some way"
    return [*pool.redis(backend, group.appendfsync, servers=demand.servers, replicas=group.replicas)]


def own_connections(cell: Cell) -> int:
    """Connections that are each one client's own, to the first server."""
    return cell.concurrency if CATALOGUE[cell.strategy].opens_own_connections(cell.args) else 0


def further_connections(cell: Cell) -> int:
    """All that lead to the first server besides those that clients share; to subscribe over there are as many again."""
    return own_connections(cell) + (shared_connections(cell) if CATALOGUE[cell.strategy].subscribes else 0)


def shared_connections(cell: Cell) -> int:
    """Connections that clients share, to each server; each thread has one at least, however few are to be shared."""
    if not CATALOGUE[cell.strategy].opens_shared_connections(cell.args):
        return 0
    return max(cell.connections.used_by(cell.concurrency), cell.threads)


def sessions_of(cell: Cell, backend: str) -> int:
    """Connections that the clients of a trial of `cell` have with one server of `backend`."""
    is_first = parts_of_place(cell.backend)[0] == backend
    return shared_connections(cell) + (further_connections(cell) if is_first else 0)
