"""The rates of locks as clauses of the answer: the most grants that a lock gave, and the limits of the locks of a run.

Promises: a rate is called a limit only where searches found it; grants at a limit are no figure to compare locks by.
"""

from __future__ import annotations

from collections.abc import Iterator

from pybench.analysis.claim_texts import MOST_NAMED, at, listed
from pybench.analysis.comparison import Comparison, Figure, Place
from pybench.formats import Format


def most_of(compared: Comparison, lock: str) -> str:
    """The most safe grants/s of `lock` over the loads of a run; its highest limit where it was only searched for."""
    ranked = [(load, load.of(lock)) for load in compared.loads if load.of(lock).place is not Place.OUT]
    grants = [(one.throughput or 0.0, load) for load, one in ranked if one.figure is not Figure.LIMIT]
    limits = [(one.value or 0.0, load) for load, one in ranked if one.figure is Figure.LIMIT]
    rate, load = max(grants or limits, key=lambda pair: pair[0])
    up_to = "up to " if len(grants or limits) > 1 else ""
    does, what = ("gives", "safe grants/s") if grants else ("sustains", "arrivals/s")
    return f"{lock} {does} {up_to}{Format.RATE.text(rate)} {what}{at(load)}"


def limits_of(compared: Comparison) -> Iterator[str]:
    """The limits of the locks, where they were searched for at one load; the table has those of more loads or locks."""
    loads = [load for load in compared.loads if len(load.ranked) > 1 and load.first[0].figure is Figure.LIMIT]
    if len(loads) == 1 and len(loads[0].ranked) <= MOST_NAMED:
        limits = [f"{Format.RATE.text(one.value)}/s for {one.lock}" for one in loads[0].ranked]
        yield f"limits{at(loads[0])}: {listed(limits)}"
