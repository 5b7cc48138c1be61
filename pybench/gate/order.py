"""The order of a gate's trials: cells in random order in each block, and the sides of a cell in turn.

The trials of a cell in a block follow each other, so that they meet the same machine. Six blocks have every order of
the three sides once, so that no side is always the first.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from pybench.analysis.between_runs.changes import BASE
from pybench.planning.plan import block_order

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell

HEAD, AGAIN = "head", "again"
SIDES = (BASE, HEAD, AGAIN)
"""The base, the head, and the head once more: the last two tell the noise."""


def turns(seed: int, block: int, cells: Sequence[Cell]) -> list[tuple[int, str]]:
    """The index of the cell and the side of each trial of a block, in order. Blocks count from 1."""
    places = block_order(seed, block, list(cells))
    return [(place, side) for place in places for side in _sides(seed, block, cells[place].id)]


def _sides(seed: int, block: int, cell: str) -> tuple[str, ...]:
    orders = list(permutations(SIDES))
    cycle, step = divmod(block - 1, len(orders))
    random.Random(f"{seed}:{cycle}:{cell}").shuffle(orders)
    return orders[step]
