"""The highest rate of grants that a cell allows, whatever the lock: by its clients, its keys and an idle server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.matrix.durations import US, S
from pybench.planning.network import added_ns
from pybench.strategies import CATALOGUE, Judge

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell

CALL_NS = 50 * US
"""The time of one call to an idle server on the same machine."""


def most_per_s(cell: Cell, clients: float | None = None) -> float:
    """The most grants/s that `clients`, by default all clients of `cell`, and its keys allow."""
    strategy = CATALOGUE[cell.strategy]
    # A lock that sends nothing crosses no network.
    hold_ns, call_ns = cell.hold.mean(), CALL_NS + (added_ns(cell) if strategy.commands else 0)
    by_clients = (cell.concurrency if clients is None else clients) * S / (hold_ns + cell.think.mean() + 2 * call_ns)
    most = [by_clients]
    if strategy.judged_by is not Judge.EFFECTS and strategy.commands and cell.read_share == 0:
        keys = 1 if cell.key_choice.kind == "single" else cell.keys // cell.keys_per_grant
        most.append(keys * strategy.permits(cell.args) * S / (hold_ns + call_ns))
    return min(most)
