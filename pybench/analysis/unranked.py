"""The clauses of the answer about locks that are not ranked at some load, by the reason: unsafe, no grant, and so on.

Promises: every clause repeats claims of the comparison; this module compares nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from pybench.analysis.claim_texts import MOST_NAMED, at, further_loads, listed
from pybench.analysis.comparison import Comparison, LoadComparison, Out, Place
from pybench.analysis.comparison.entrants import BASE_LINE
from pybench.numbers import plural


def dismissed(compared: Comparison, lock: str) -> str:
    """That all other ranked locks were unsafe somewhere, and which of them only where `lock` is not ranked.

    Such a load, as one with another guard, may ask more of a lock than any at which `lock` was measured.
    """
    unsafe: dict[str, list[LoadComparison]] = {}
    for load in compared.loads:
        for one in load.standings:
            if one.out is Out.UNSAFE and one.lock in compared.promises:
                unsafe.setdefault(one.lock, []).append(load)
    elsewhere = [name for name, loads in unsafe.items() if all(load.of(lock).place is Place.OUT for load in loads)]
    where = f" ({listed(elsewhere)} only where {lock} is not ranked)" if elsewhere else ""
    return f"every other ranked lock was unsafe at some load{where}"


def out_at(compared: Comparison, out: Out, locks: Sequence[str]) -> Iterator[str]:
    """The loads at which each of `locks` is not ranked for this reason, such as `x got no grant with 3 keys`."""
    for lock in locks[:MOST_NAMED]:
        loads = [load for load in compared.loads if load.of(lock).out is out]
        if loads:
            what = "got no grant" if out is Out.NO_GRANTS else "has too little evidence for SAFE"
            yield f"{lock} {what}{at(loads[0])}{further_loads(len(loads) - 1)}"


def not_ranked(compared: Comparison) -> Iterator[str]:
    """The locks that are ranked at no load and were never unsafe, by the reason."""
    ranked = {one.lock for load in compared.loads for one in load.ranked}
    reasons: dict[Out, list[str]] = {}
    for lock in compared.locks:
        standings = [load.of(lock) for load in compared.loads if load.of(lock).cell is not None]
        outs = {one.out: one.holders for one in standings if one.out is not None}
        if lock in ranked or Out.UNSAFE in outs:
            continue
        for out, holders in outs.items():
            many = f" ({holders:.0f})" if holders is not None and math.isfinite(holders) else ""
            reasons.setdefault(out, []).append(f"{_named(lock)}{many}")
    for out, names in reasons.items():
        yield f"not ranked ({out.value}): {listed(names)}"


def unsafe_locks(compared: Comparison) -> str | None:
    """Every lock that was unsafe at some load, and at how many of its loads; None where no lock was."""
    unsafe, measured = Counter[str](), Counter[str]()
    for load in compared.loads:
        for one in load.standings:
            # Overlaps without a lock are expected: they show that the checker works.
            if one.strategy != BASE_LINE:
                measured[one.lock] += one.cell is not None
                unsafe[one.lock] += one.out is Out.UNSAFE
    named = [
        f"{lock} is unsafe at {count} of {plural(measured[lock], 'load')}" for lock, count in unsafe.items() if count
    ]
    if len(named) > MOST_NAMED:
        return f"{len(named)} of {plural(len(compared.locks), 'lock')} are unsafe at some load"
    return listed(named) if named else None


def _named(lock: str) -> str:
    """The name of a lock; a bare `none` would read as "no lock"."""
    return f"no lock at all ({lock})" if lock.split(" ")[0] == BASE_LINE else lock
