"""The first use of each lock of a run: taken, renewed and released on its servers before any load goes there.

Promises: a server that refuses what a lock needs ends the run before it measures, with the server's own words.
Does not do: carrying the trials out; see `runner`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pybench.durations import MS
from pybench.probes import locks_of
from pybench.strategies import CATALOGUE, arguments_text
from pybench.values import ClosedLoop, Distribution, KeyChoice

if TYPE_CHECKING:
    from pybench.cells import Cell

USE_NS = 30 * MS
HOLD_NS = 1 * MS
CLIENTS = 2
"""One holds, the other waits: queues and subscriptions are used, too."""

RENEWED_USE_NS = 200 * MS
RENEWED_HOLD_NS = 250 * MS
RENEWED_TTL_MS = 300
"""Short enough for a renewal in the first hold, which comes every third of a ttl."""


def first_uses(cells: Iterable[Cell]) -> list[tuple[Cell, int]]:
    """One cell for each lock of `cells`, and for how many nanoseconds it is to run."""
    return [
        _first_use(members[0], nesting=max(cell.nesting for cell in members))
        for lock, members in locks_of(cells).items()
        if lock[0] != "none"
    ]


def _first_use(cell: Cell, *, nesting: int) -> tuple[Cell, int]:
    strategy = CATALOGUE[cell.strategy]
    renews = strategy.extends_lease and strategy.argument("renew", cell.args) != "off"
    arguments = f"({arguments_text(cell.args)})" if cell.args else ""
    use = replace(
        cell,
        id=f"first use of {cell.strategy}{arguments} on {cell.backend}",
        concurrency=CLIENTS,
        threads=1,
        keys=cell.keys_per_grant,
        key_choice=KeyChoice("uniform"),
        read_share=0.5 if cell.read_share else 0.0,
        nesting=nesting,
        hold=Distribution("fixed", (RENEWED_HOLD_NS if renews else HOLD_NS,)),
        think=Distribution("fixed", (0,)),
        ttl_ms=RENEWED_TTL_MS if renews else cell.ttl_ms,
        loop=ClosedLoop(),
        after_lease="continue",
        axes=(),
    )
    return use, RENEWED_USE_NS if renews else USE_NS
