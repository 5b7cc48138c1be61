"""The first use of each lock of a run: acquired, renewed and released on its servers before any load.

Promises: a server that refuses a call of a lock ends the run before the first trial, with the server's error text.
Does not do: running trials; see `observer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pybench.errors import ServerError
from pybench.matrix.durations import MS
from pybench.matrix.guards import NO_GUARD
from pybench.matrix.places import parts_of_place
from pybench.matrix.values import Distribution
from pybench.planning import control
from pybench.planning.probes import locks_of, takes_a_lock
from pybench.strategies import CATALOGUE, arguments_text

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell
    from pybench.running.observer import Observer

USE_NS = 30 * MS
HOLD_NS = 1 * MS
CLIENTS = 3
"""One client holds and two wait: queues and subscriptions are used, too, and whoever is next has a successor."""

RENEWED_USE_NS = 200 * MS
RENEWED_HOLD_NS = 250 * MS
RENEWED_TTL_MS = 300
"""Short enough for a renewal within the first hold, since locks renew every third of a ttl."""


def use_locks(observer: Observer, cells: Iterable[Cell]) -> Iterator[tuple[Cell, ServerError | None]]:
    """Use each lock of `cells` once; yields the cell, and the refusal of a server, if there was one.

    Raises KeyboardInterrupt when the use was stopped, ServerError where a server failed in another way.
    """
    for cell, duration_ns in first_uses(cells):
        yield cell, observer.use(cell, duration_ns)


def try_locks(matrix: Matrix) -> list[tuple[str, ServerError | None]]:
    """Use each lock of `matrix` once on its given servers; returns the strategy, and the error, if there was one.

    Cells that the plan refuses are left out, and so are cells that need a server that pybench starts. Raises
    ServerError where a server does not reply, InputError for a bad address, KeyboardInterrupt.
    """
    from pybench.planning.limits import Limits, limits_of
    from pybench.planning.needs import largest, servers_in
    from pybench.planning.placement import Placement
    from pybench.planning.plan import make_plan
    from pybench.running.interrupts import Interrupts
    from pybench.running.observer import Observer
    from pybench.running.watch import Silent
    from pybench.servers import ServerPool

    def is_on_given(cell: Cell) -> bool:
        return all(matrix.backends[name].is_given for name in parts_of_place(cell.backend))

    def on_given(cells: Iterable[Cell]) -> list[Cell]:
        # No lock needs its guarded resource, which may be on a server that pybench starts.
        return [replace(cell, guard=NO_GUARD, guard_kind=None) for cell in cells if is_on_given(cell)]

    with ServerPool() as pool, Interrupts() as interrupts:
        first = on_given(make_plan(matrix, Limits.of_this_machine()).cells)
        demands = largest(first).items()
        servers = [(group.backend, one) for group, need in demands for one in servers_in(pool, matrix, group, need)]
        cells = on_given(make_plan(matrix, limits_of(matrix, servers)).cells)
        observer = Observer(matrix, cells, pool, Placement(), Silent(), interrupts)
        return [(cell.strategy, _refused(observer, cell, duration_ns)) for cell, duration_ns in first_uses(cells)]


def _refused(observer: Observer, cell: Cell, duration_ns: int) -> ServerError | None:
    try:
        return observer.use(cell, duration_ns)
    except ServerError as error:
        return error


def first_uses(cells: Iterable[Cell]) -> list[tuple[Cell, int]]:
    """One cell for each lock of `cells`, with its duration in nanoseconds."""
    return [_first_use(members) for members in locks_of(filter(takes_a_lock, cells)).values()]


def _first_use(members: Sequence[Cell]) -> tuple[Cell, int]:
    """The first use of a lock, with every kind of call that its cells `members` need."""
    cell, taken = members[0], max(member.keys_per_grant for member in members)
    strategy = CATALOGUE[cell.strategy]
    renews = strategy.renews(cell.args)
    arguments = f"({arguments_text(cell.args)})" if cell.args else ""
    use = replace(
        control.undisturbed(cell),
        id=f"first use of {cell.strategy}{arguments} on {cell.backend}",
        concurrency=CLIENTS,
        threads=1,
        keys=taken,
        keys_per_grant=taken,
        read_share=0.5 if any(member.read_share for member in members) else 0.0,
        nesting=max(member.nesting for member in members),
        hold=Distribution("fixed", (RENEWED_HOLD_NS if renews else HOLD_NS,)),
        ttl_ms=RENEWED_TTL_MS if renews else cell.ttl_ms,
    )
    return use, RENEWED_USE_NS if renews else USE_NS
