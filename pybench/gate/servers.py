"""The servers of a gate whose two sides share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pybench.planning.limits import Limits
from pybench.planning.needs import largest, servers_in
from pybench.planning.placement import placement_of
from pybench.planning.plan import make_plan

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.servers import ServerPool


def start_for_both(pool: ServerPool, matrices: Sequence[Matrix]) -> None:
    """Start the servers that the cells of all `matrices` need, each for the most that any of them needs."""
    plans = [make_plan(matrix, Limits.of_this_machine()) for matrix in matrices]
    for plan in plans:
        plan.require_cells()
    cells = [cell for plan in plans for cell in plan.cells]
    pool.cores = placement_of(matrices[0], cells).servers
    for group, demand in largest(cells).items():
        owner = next(matrix for matrix in matrices if group.backend in matrix.backends)
        servers_in(pool, owner, group, demand)
