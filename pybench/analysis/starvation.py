"""Starved clients: clients that asked throughout the window of a trial and had no grant.

With few grants a client may have none by chance. If m grants fall on n clients at random, about n exp(-m / n) clients
have none. Starvation is put down to the lock only above twice that number plus one.

Promises: a record without counts of starved clients, as older versions wrote, shows no starvation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pybench.numbers import missing

if TYPE_CHECKING:
    import pandas as pd

GIVES_UP = 0.05
"""Above this share of acquires without a grant, the waits of the granted acquires do not describe the lock."""
COLUMN = "starved_clients"
"""The column of `trials.parquet` with the clients that asked in the window and had no grant."""


def starving(trials: pd.DataFrame, clients: int) -> tuple[int, float] | None:
    """The most starved `clients` in one of a cell's `trials`, and the window of that trial in seconds.

    None where chance explains the number in every trial.
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
    """Whether every client had a grant in each of the `trials` of one cell."""
    return COLUMN in trials and len(trials) > 0 and bool((trials[COLUMN] == 0).all())


def refused_share(trials: pd.DataFrame) -> float | None:
    """The share of acquires that were refused or timed out; unfinished and failed acquires do not count."""
    if not {"grants", "refused", "timeouts"} <= set(trials.columns):
        return None
    without = trials["refused"].sum() + trials["timeouts"].sum()
    ended = trials["grants"].sum() + without
    return float(without / ended) if ended else None


def _unlucky(clients: int, grants: int) -> float:
    return 2 * clients * math.exp(-grants / clients) + 1
