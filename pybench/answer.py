"""The answer first: one sentence that says which lock wins, at which load, and which are unsafe.

Promises: locks are compared at the same load only, and a lead that lies inside the intervals is not called one.
Does not do: measuring how different two locks are; that takes trials that were paired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybench.records.schema import SUMMARY_FIGURES
from pybench.stats import Interval, number
from pybench.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

# A load is everything but the lock: its strategy and arguments, and the backend that it runs on.
_LOCK_COLUMNS = ("cell", "strategy", "args", "backend", "server")


@dataclass(frozen=True, slots=True)
class Contender:
    """One safe lock at one load."""

    lock: str
    safe_grants_per_s: float
    interval: Interval | None
    """Of the median over trials; None with one trial."""

    def is_told_apart_from(self, other: Contender) -> bool:
        """Whether both have an interval and the two do not overlap."""
        return self.interval is not None and other.interval is not None and not self.interval.overlaps(other.interval)


@dataclass(frozen=True, slots=True)
class Load:
    """One point of the matrix, the lock aside."""

    text: str
    """The axes by which the loads of the run differ: `concurrency 64, keys 1,000`; empty when there is one load."""
    pressure: tuple[int, int]
    """Of two loads, the one with the higher has more clients, and of as many clients fewer keys."""
    contenders: tuple[Contender, ...]
    """The most safe grants/s first."""

    @property
    def winner(self) -> Contender | None:
        """The first, if there are others and it can be told apart from all of them."""
        first, *others = self.contenders or (None,)
        won = first is not None and others and all(first.is_told_apart_from(other) for other in others)
        return first if won else None


def answer(summary: pd.DataFrame) -> str:
    """What a run found, in one plain sentence. `summary` as in `summary.csv`."""
    rows = summary.to_dict("records")
    if not rows:
        return "Nothing was measured."
    if any(row["verdict"] == Verdict.VOID for row in rows):
        return "This run proves nothing: its control was not caught."
    several_backends = summary["backend"].nunique() > 1
    locks = {str(row["cell"]): _lock(row, named_backend=several_backends) for row in rows}
    loads = _loads(rows, locks)
    clauses = [_who_wins(loads, set(locks.values())), *_unsafe(rows, locks)]
    return "; ".join(clauses) + "."


def _who_wins(loads: Sequence[Load], locks: set[str]) -> str:
    safe = {contender.lock for load in loads for contender in load.contenders}
    if not safe:
        return "No lock of this run can be called safe"
    if len(safe) == 1:
        return _alone(loads, alone_in_run=len(locks) == 1)
    contested = [load for load in loads if len(load.contenders) > 1]
    if not contested:
        return "No two locks are safe at the same load, so that none can be compared"
    wins = Counter(load.winner.lock for load in contested if load.winner is not None)
    if not wins:
        return _tied(contested)
    champion, won = wins.most_common(1)[0]
    shown = max((load for load in contested if load.winner and load.winner.lock == champion), key=_pressure)
    first, second = shown.contenders[:2]
    ratio = first.safe_grants_per_s / second.safe_grants_per_s
    figures = f"{_rate(first.safe_grants_per_s)}, {ratio:.3g} times {second.lock}'s{_at(shown)}"
    if len(contested) == 1:
        return f"{champion} gives the most safe grants: {figures}"
    others = [f"{lock} at {count}" for lock, count in wins.items() if lock != champion]
    untold = len(contested) - wins.total()
    rest = f"; ahead elsewhere: {', '.join(others)}" if others else ""
    rest += f"; at {untold} the first can't be told apart" if untold else ""
    return f"{champion} gives the most safe grants at {won} of {len(contested)} loads: {figures}{rest}"


def _alone(loads: Iterable[Load], *, alone_in_run: bool) -> str:
    best = max((load for load in loads if load.contenders), key=lambda load: load.contenders[0].safe_grants_per_s)
    lock, rate = best.contenders[0].lock, best.contenders[0].safe_grants_per_s
    if alone_in_run:
        return f"{lock} gives up to {_rate(rate)} of safe grants{_at(best)}, with no other lock to compare it with"
    return f"{lock} is the only lock of this run that is safe, with up to {_rate(rate)}{_at(best)}"


def _tied(contested: Sequence[Load]) -> str:
    pairs = [
        (load.contenders[0], other)
        for load in contested
        for other in load.contenders[1:]
        if not load.contenders[0].is_told_apart_from(other)
    ]
    names = _listed(sorted({contender.lock for pair in pairs for contender in pair}))
    without = any(contender.interval is None for pair in pairs for contender in pair)
    where = " at every load" if len(contested) > 1 else ""
    why = "one trial each gives no interval" if without else f"their intervals overlap{where}"
    return f"{names} can't be told apart by safe grants/s: {why}"


def _unsafe(rows: Iterable[Mapping[Hashable, Any]], locks: Mapping[str, str]) -> list[str]:
    """A clause with every lock that was unsafe anywhere; none when all were safe."""
    cells, unsafe = Counter(locks.values()), Counter[str]()
    for row in rows:
        unsafe[locks[str(row["cell"])]] += row["verdict"] == Verdict.UNSAFE
    named = [f"{lock} is unsafe in {count} of {_cells(cells[lock])}" for lock, count in unsafe.items() if count]
    return [_listed(named)] if named else []


def _loads(rows: Sequence[Mapping[Hashable, Any]], locks: Mapping[str, str]) -> list[Load]:
    axes = [str(name) for name in rows[0] if name not in _LOCK_COLUMNS and name not in SUMMARY_FIGURES]
    varied = [axis for axis in axes if len({row[axis] for row in rows}) > 1]
    grouped: dict[tuple[Any, ...], list[Mapping[Hashable, Any]]] = {}
    for row in rows:
        grouped.setdefault(tuple(row[axis] for axis in axes), []).append(row)
    return [
        Load(
            text=", ".join(f"{axis} {_axis_text(group[0][axis])}" for axis in varied),
            pressure=(int(group[0]["concurrency"]), -int(group[0]["keys"])),
            contenders=_contenders(group, locks),
        )
        for group in grouped.values()
    ]


def _contenders(group: Iterable[Mapping[Hashable, Any]], locks: Mapping[str, str]) -> tuple[Contender, ...]:
    contenders = []
    for row in group:
        rate = number(row["safe_grants_per_s"])
        low, high = number(row["grants_per_s_low"]), number(row["grants_per_s_high"])
        # Without a grant a second there is nothing to be ahead of.
        if row["verdict"] == Verdict.SAFE and rate:
            interval = Interval(low, high) if low is not None and high is not None else None
            contenders.append(Contender(locks[str(row["cell"])], rate, interval))
    return tuple(sorted(contenders, key=lambda contender: -contender.safe_grants_per_s))


def _lock(row: Mapping[Hashable, Any], *, named_backend: bool) -> str:
    name = f"{row['strategy']}({row['args']})" if row["args"] else str(row["strategy"])
    return f"{name} on {row['backend']}" if named_backend else name


def _pressure(load: Load) -> tuple[int, int]:
    return load.pressure


def _at(load: Load) -> str:
    return f" at {load.text}" if load.text else ""


def _axis_text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}/s" if per_s >= 100 else f"{per_s:.3g}/s"


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
