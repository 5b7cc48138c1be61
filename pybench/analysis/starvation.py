"""Who starves: clients that asked all through the window of a trial and were granted nothing.

A client may go without a grant by chance where grants are few. Of n clients and m grants that fall on them at random
about n exp(-m / n) have none; only twice as many, and one more, are put down to the lock.

Promises: a record that does not count starved clients, as older ones do not, says of none that it starved.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pybench.numbers import missing

if TYPE_CHECKING:
    import pandas as pd

GIVES_UP = 0.05
"""From this share of acquires without a grant on, what the others saw says little of the lock."""
COLUMN = "starved_clients"
"""Of `trials.parquet`: those without a grant in the window, though they asked for one."""


def starving(trials: pd.DataFrame, clients: int) -> tuple[int, float] | None:
    """Of the `trials` of one cell of `clients` the one in which most starved: how many, and its window in seconds.

    None where chance explains as many in each.
    """
    if COLUMN not in trials:
        return None
    worst: tuple[int, float] | None = None
    for starved, grants, window_s in zip(trials[COLUMN], trials["grants"], trials["window_s"], strict=True):
        if missing(starved) or starved <= _unlucky(clients, int(grants)):
            continue
        if worst is None or starved > worst[0]:
            worst = int(starved), float(window_s)
    return worst


def serves_all(trials: pd.DataFrame) -> bool:
    """Whether every client was granted something in each of the `trials` of one cell."""
    return COLUMN in trials and len(trials) > 0 and bool((trials[COLUMN] == 0).all())


def refused_share(trials: pd.DataFrame) -> float | None:
    """Of the acquires of one cell that ended with a grant, a refusal or a timeout, the share without a grant."""
    if not {"grants", "refused", "timeouts"} <= set(trials.columns):
        return None
    without = trials["refused"].sum() + trials["timeouts"].sum()
    ended = trials["grants"].sum() + without
    return float(without / ended) if ended else None


def _unlucky(clients: int, grants: int) -> float:
    return 2 * clients * math.exp(-grants / clients) + 1
