"""The answer first: one sentence that says which lock wins, at which load, and which are unsafe.

Promises: locks are compared at the same load only, by safe grants a second or, in an open loop, by the p99 of the
response; a lead that lies inside the intervals is not called one. Where speed decides nothing, the lock that promises
more is preferred.
Does not do: measuring how different two locks are; that takes trials that were paired.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybench.conditions import say_conditions
from pybench.contenders import (
    Contender,
    apart,
    contenders,
    decided_by_response,
    first_ones,
    in_order,
    lock_labels,
    offered_rate,
    why_apart,
)
from pybench.numbers import format_us, format_whole, plural, significant
from pybench.records.schema import SUMMARY_FIGURES
from pybench.stats import ENOUGH_TRIALS
from pybench.strategies import CATALOGUE, Exclusion, Judge
from pybench.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

# A load is everything but the lock: its strategy and arguments, and the backend that it runs on.
_LOCK_COLUMNS = ("cell", "strategy", "args", "backend", "server")

MOST_NAMED = 5

_PROMISES = (Exclusion.NOTHING, Exclusion.WHILE_NOBODY_OUTLIVES, Exclusion.ALWAYS)
"""The least first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run found, in clauses that begin in lower case where no name begins them, and end without a stop."""

    headline: str
    further: tuple[str, ...] = ()
    """What qualifies the headline."""
    unsafe: str | None = None
    """Every lock that was unsafe anywhere, and in how many of its cells; None when all were safe."""

    @property
    def text(self) -> str:
        """All of it as one sentence."""
        return "; ".join([self.headline, *self.further, *([self.unsafe] if self.unsafe else [])]) + "."


@dataclass(frozen=True, slots=True)
class Load:
    """One point of the matrix, the lock aside."""

    text: str
    """The axes by which the loads of the run differ: `64 clients, 1,000 keys`; empty when there is one load."""
    pressure: tuple[int, int, float]
    """Of two loads, the one with the higher has more clients, of as many clients fewer keys, and then more arrivals."""
    contenders: tuple[Contender, ...]
    """The one that is ahead first."""

    @property
    def is_open(self) -> bool:
        """Whether arrivals come at a rate."""
        return bool(self.contenders) and self.contenders[0].response is not None

    @property
    def winner(self) -> Contender | None:
        """The first, if there are others and it can be told apart from all of them."""
        first, *others = self.contenders or (None,)
        won = first is not None and others and all(first.is_told_apart_from(other) for other in others)
        return first if won else None


def answer(summary: pd.DataFrame, trials: pd.DataFrame | None = None) -> Answer:
    """What a run found. `summary` as in `summary.csv`; without `trials` open loops are not told apart."""
    rows = summary.to_dict("records")
    if not rows:
        return Answer("Nothing was measured")
    if any(row["verdict"] == Verdict.VOID for row in rows):
        return Answer("This run proves nothing: its control was not caught")
    locks = lock_labels(rows)
    aside = {locks[cell]: crowd for cell, crowd in apart(rows).items()}
    headline, *further = _who_wins(_loads(rows, trials), locks, aside)
    return Answer(headline, (*further, *_aside(aside)), _unsafe(rows, locks))


def _who_wins(loads: Sequence[Load], locks: Mapping[str, str], aside: Mapping[str, float]) -> list[str]:
    safe = {locks[contender.cell] for load in loads for contender in load.contenders}
    if not safe:
        return ["No lock of this run can be called safe"]
    if len(safe) == 1:
        return [_alone(loads, locks, alone_in_run=len(set(locks.values()) - aside.keys()) == 1)]
    contested = [load for load in loads if len(load.contenders) > 1]
    if not contested:
        return ["No two locks are safe at the same load, so that none can be compared"]
    wins = Counter(locks[load.winner.cell] for load in contested if load.winner is not None)
    return _led(contested, wins, locks) if wins else [_tied(contested, locks)]


def _led(contested: Sequence[Load], wins: Counter[str], locks: Mapping[str, str]) -> list[str]:
    """The lock that wins at most loads, where its win counts most, and what its win does not say."""
    champion, won = wins.most_common(1)[0]
    shown = max((load for load in contested if load.winner and locks[load.winner.cell] == champion), key=_pressure)
    figures = _figures(shown, locks)
    leads = _leads(contested)
    promises = {
        locks[contender.cell]: _promise(contender.strategy) for load in contested for contender in load.contenders
    }
    more = sorted(lock for lock, promise in promises.items() if promise > promises[champion])
    promising = [f"but {_listed(more)} {_verb(more, 'promises', 'promise')} more than {champion}"] if more else []
    if len(contested) == 1:
        return [f"{champion} {leads}: {figures}", *promising]
    others = [f"{lock} at {plural(count, 'load')}" for lock, count in wins.items() if lock != champion]
    untold = len(contested) - wins.total()
    most = all(promise < promises[champion] for lock, promise in promises.items() if lock != champion)
    so_prefer = f", and {champion} promises the most" if most else ""
    return [
        f"{champion} {leads} at {won} of {len(contested)} loads: {figures}",
        *([f"ahead elsewhere: {', '.join(others)}"] if others else []),
        *([f"at {plural(untold, 'load')} the first can't be told apart{so_prefer}"] if untold else []),
        *promising,
    ]


def _leads(contested: Sequence[Load]) -> str:
    if not any(load.is_open for load in contested):
        return "gives the most safe grants"
    return "answers soonest" if all(load.is_open for load in contested) else "leads"


def _figures(load: Load, locks: Mapping[str, str]) -> str:
    """By how much the first at `load` is ahead of the second."""
    first, second = load.contenders[:2]
    other = locks[second.cell]
    if first.response and second.response and decided_by_response(first, second):
        mine, others = format_us(first.response.p99_us), format_us(second.response.p99_us)
        return f"p99 response {mine}, {other}'s is {others}{_at(load)}"
    ratio = significant(first.safe_grants_per_s / second.safe_grants_per_s)
    return f"{format_whole(first.safe_grants_per_s)}/s, {ratio} times {other}'s{_at(load)}"


def _alone(loads: Sequence[Load], locks: Mapping[str, str], *, alone_in_run: bool) -> str:
    best = max((load for load in loads if load.contenders), key=lambda load: load.contenders[0].safe_grants_per_s)
    lock, rate = locks[best.contenders[0].cell], best.contenders[0].safe_grants_per_s
    most = f"{'' if len(loads) == 1 else 'up to '}{format_whole(rate)} safe grants/s{_at(best)}"
    if alone_in_run:
        return f"{lock} gives {most}; there is no other lock to compare it with"
    return f"{lock} is the only lock of this run that is safe: {most}"


def _tied(contested: Sequence[Load], locks: Mapping[str, str]) -> str:
    """No load has a winner: the lock that promises more than the others, if it is among the first at every load."""
    tied = [first_ones(load.contenders) for load in contested]
    fewest = min(contender.trials for group in tied for contender in group)
    where = " at every load" if len(contested) > 1 else ""
    too_few = f"{plural(fewest, 'trial')} a cell {_verb(range(fewest), 'is', 'are')} too few to tell"
    why = too_few if fewest < ENOUGH_TRIALS else _why_tied(tied, where)
    promises = {locks[contender.cell]: _promise(contender.strategy) for group in tied for contender in group}
    preferred = max(promises, key=promises.__getitem__)
    others = sorted(promises.keys() - {preferred})
    always_there = all(any(locks[contender.cell] == preferred for contender in group) for group in tied)
    if always_there and all(promises[lock] < promises[preferred] for lock in others):
        isnt, less = _verb(others, "is not", "are not"), _verb(others, "promises", "promise")
        return f"Prefer {preferred}: {_listed(others, 'others')} {isnt} measurably faster ({why}) and {less} less"
    decides = "p99 response" if all(load.is_open for load in contested) else "safe grants/s"
    return f"{_listed(sorted(promises))} can't be told apart by {decides}: {why}"


def _why_tied(tied: Sequence[Sequence[Contender]], where: str) -> str:
    without = [any(one.response and one.response.p99_us is None for one in group) for group in tied]
    if all(without):
        return f"too few grants a trial for a p99{where}"
    return f"their intervals overlap{' at every load that has a p99' if any(without) else where}"


def _aside(aside: Mapping[str, float]) -> list[str]:
    """What is not compared with the others, for it is granted more because it may be."""
    reasons: dict[str, list[str]] = {}
    for lock, crowd in sorted(aside.items()):
        reasons.setdefault(why_apart(crowd), []).append(lock if math.isinf(crowd) else f"{lock} ({crowd:.0f})")
    return [f"not compared, for {why}: {_listed(names)}" for why, names in reasons.items()]


def _unsafe(rows: Iterable[Mapping[Hashable, Any]], locks: Mapping[str, str]) -> str | None:
    cells, unsafe = Counter(locks.values()), Counter[str]()
    for row in rows:
        unsafe[locks[str(row["cell"])]] += row["verdict"] == Verdict.UNSAFE
    named = [f"{lock} is unsafe in {count} of {plural(cells[lock], 'cell')}" for lock, count in unsafe.items() if count]
    if len(named) > MOST_NAMED:
        return f"{len(named)} of {plural(len(cells), 'lock')} are unsafe in some cell"
    return _listed(named) if named else None


def _loads(rows: Sequence[Mapping[Hashable, Any]], trials: pd.DataFrame | None) -> list[Load]:
    safe = contenders(rows, trials)
    axes = [str(name) for name in rows[0] if name not in _LOCK_COLUMNS and name not in SUMMARY_FIGURES]
    varied = [axis for axis in axes if len({row[axis] for row in rows}) > 1]
    grouped: dict[tuple[Any, ...], list[Mapping[Hashable, Any]]] = {}
    for row in rows:
        grouped.setdefault(tuple(row[axis] for axis in axes), []).append(row)
    return [
        Load(
            text=say_conditions((axis, group[0][axis]) for axis in varied),
            pressure=(int(group[0]["concurrency"]), -int(group[0]["keys"]), offered_rate(group[0]) or 0.0),
            contenders=tuple(in_order(safe[str(row["cell"])] for row in group if str(row["cell"]) in safe)),
        )
        for group in grouped.values()
    ]


def _promise(strategy: str) -> int:
    # A record may name a strategy that this version does not know: nothing is claimed of it.
    known = CATALOGUE.get(strategy)
    if known and known.judged_by is Judge.GUARD:
        # Of two at work one is refused: that is another promise than exclusion, and none that is less.
        return _PROMISES.index(Exclusion.ALWAYS)
    return _PROMISES.index(known.exclusion if known else Exclusion.NOTHING)


def _pressure(load: Load) -> tuple[int, int, float]:
    return load.pressure


def _at(load: Load) -> str:
    return f" with {load.text}" if load.text else ""


def _verb(names: Sequence[object], of_one: str, of_several: str) -> str:
    return of_one if len(names) == 1 else of_several


def _listed(names: Sequence[str], noun: str = "locks") -> str:
    """The names, or how many there are where they would be a sentence of their own."""
    if len(names) > MOST_NAMED:
        return f"{len(names)} {noun}"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
