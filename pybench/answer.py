"""The answer first: which lock to take, why, and what speaks against it; written from the comparison of a run.

Promises: every clause says what claims of the comparison say, and names the load that its figures are of; nothing is
compared here. A lock that was unsafe anywhere is never the one to take while another was not.
Does not do: more than a few clauses; the tables have every lock at every load.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pybench.comparison import (
    Basis,
    Comparison,
    Figure,
    LoadComparison,
    Out,
    Place,
    Standing,
    TieBreak,
    compare_locks,
)
from pybench.comparison.pairs import ENOUGH_BLOCKS
from pybench.lateness import late_cells
from pybench.numbers import format_ratio, format_us, format_whole, plural, significant
from pybench.overload import overload

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run found, in clauses that begin in lower case where no name begins them, and end without a stop."""

    headline: str
    further: tuple[str, ...] = ()
    """What qualifies the headline."""
    unsafe: str | None = None
    """Every lock that was unsafe anywhere, and at how many of its loads; None when all were safe."""

    @property
    def text(self) -> str:
        """All of it as one sentence."""
        return "; ".join([self.headline, *self.further, *([self.unsafe] if self.unsafe else [])]) + "."


def answer(summary: pd.DataFrame, trials: pd.DataFrame | None = None) -> Answer:
    """What a run found. `summary` as in `summary.csv`; without `trials` no lock is ahead of another."""
    compared = compare_locks(summary, trials)
    found = say(compared)
    return replace(found, further=(*found.further, *_overloaded(compared, summary, trials)))


def say(compared: Comparison) -> Answer:
    """What `compared` comes to, in words."""
    chosen = compared.choice
    further: list[str] = []
    match chosen.basis:
        case Basis.NOTHING_MEASURED:
            return Answer("Nothing was measured")
        case Basis.VOID:
            return Answer("This run proves nothing: its control was not caught")
        case Basis.NONE_RANKED:
            headline = "No lock of this run can be recommended: none is ranked"
        case Basis.NOT_CONTESTED:
            headline = "No two locks are ranked at the same load, so none can be compared"
        case Basis.ONLY_LOCK | Basis.ONLY_RANKED:
            headline = _alone(compared, chosen.locks[0])
        case Basis.TIED:
            headline, further = _tied(compared), _qualified(compared)
        case _:
            headline, further = f"Take {chosen.locks[0]}: {_taken(compared, chosen.locks[0])}", _qualified(compared)
    return Answer(headline, (*_starving(compared), *further, *_not_ranked(compared)), _unsafe(compared))


def _alone(compared: Comparison, lock: str) -> str:
    ranked = [(load, load.of(lock)) for load in compared.loads if load.of(lock).place is not Place.OUT]
    rates = [(load.of(lock).throughput or 0.0, load) for load, _ in ranked]
    rate, load = max(rates, key=lambda pair: pair[0])
    most = f"{'' if len(rates) == 1 else 'up to '}{format_whole(rate)} safe grants/s{_at(load)}"
    if compared.choice.basis is Basis.ONLY_LOCK:
        return f"{lock} gives {most}; there is no other lock to compare it with"
    return f"Take {lock}: no other lock of this run is ranked; {lock} gives {most}"


def _tied(compared: Comparison) -> str:
    locks, contested = compared.choice.locks, _contested(compared)
    if _too_few(compared):
        return f"No clear winner among {_listed(locks)}: {_too_few(compared)}"
    if compared.choice.steps and len(locks) <= MOST_NAMED:
        reasons = "".join(f", and {reason}" for reason in _steps(compared))
        return f"Take {_listed(locks, last='or')}: nothing that was compared decides between them{reasons}"
    where = "" if len(contested) == 1 else f" over {len(contested)} loads"
    return f"No clear winner among {_listed(locks)}{where}: nothing that was compared decides between them"


def _taken(compared: Comparison, lock: str) -> str:
    """Where the lock to take stands, and what decided where others tie with it."""
    contested = [load for load in _contested(compared) if load.of(lock).place is not Place.OUT]
    if not contested:
        return "every other lock that is ranked was unsafe at some load"
    reasons = list(_steps(compared))
    stands = _stands(contested, lock) if len(contested) > 1 else _stands_once(compared, contested[0], lock)
    return ", and ".join([stands, *reasons])


def _stands(contested: Sequence[LoadComparison], lock: str) -> str:
    """Where the lock to take stands at several loads, and by which figure where it leads most."""
    places = Counter(load.of(lock).place for load in contested)
    ahead = [load for load in contested if load.of(lock).place is Place.AHEAD]
    total = len(contested)
    parts = [f"ahead at {len(ahead)} of {total} loads ({_lead(max(ahead, key=_ratio_of_first))})"] if ahead else []
    if places[Place.TIED]:
        at = "every load" if places[Place.TIED] == total else plural(places[Place.TIED], "load")
        parts.append(f"{'' if parts else 'statistically '}tied for the first place at {at}")
    return ", ".join(parts) or "every other lock that is ranked was unsafe at some load"


def _stands_once(compared: Comparison, load: LoadComparison, lock: str) -> str:
    """The same where one load is contested."""
    one = load.of(lock)
    if one.place is Place.AHEAD:
        return _lead(load)
    if one.place is Place.BEHIND:
        return "every other lock that is ranked was unsafe at some load"
    if _too_few(compared):
        return f"speed was not compared ({_too_few(compared)})"
    others = [other.lock for other in load.first if other is not one]
    return f"{_placed_by(load)} ties with {_listed(others, 'other locks')}"


def _qualified(compared: Comparison) -> list[str]:
    """What a reader who takes the chosen lock must know: what decided, where another is better, who is worse."""
    chosen = compared.choice.locks
    contested = _contested(compared)
    return [
        *_losses(contested, chosen),
        *_better_elsewhere(contested, chosen),
        *_promises(compared),
        *_losers(contested, chosen),
    ]


def _steps(compared: Comparison) -> Iterator[str]:
    """The steps after the figure that places locks: why the chosen one is preferred to those it ties with."""
    chosen, contested = compared.choice.locks, _contested(compared)
    for step in compared.choice.steps:
        shown = [
            (load, by)
            for load in contested
            for by in load.tie_breaks
            if by.figure is step.figure and set(by.over) & set(step.over) and set(chosen) <= set(by.locks)
        ]
        if shown:
            load, by = max(shown, key=lambda pair: _size(pair[1]))
            yield f"{_reason(by)}{_measured_at(by, load, len(shown), len(contested))}"


def _starving(compared: Comparison) -> Iterator[str]:
    """Where a chosen lock leaves clients without a grant, the load with most of them, and who serves all there."""
    for lock in compared.choice.locks[:MOST_NAMED]:
        found = [(load, one.starved) for load in compared.loads if (one := load.of(lock)).starved]
        if not found:
            continue
        load, starved = max(found, key=lambda pair: pair[1])
        clients = dict(load.values)["concurrency"]
        more = f" (and at {plural(len(found) - 1, 'further load')})" if len(found) > 1 else ""
        serving = [other.lock for other in load.ranked if other.starved == 0]
        served = f", and {_listed(serving)} {'serve' if len(serving) > 1 else 'serves'} all of them" if serving else ""
        yield f"but {lock} starves {starved} of {clients} clients{_at(load)}{more}{served}"


def _better_elsewhere(contested: Sequence[LoadComparison], chosen: Sequence[str]) -> Iterator[str]:
    """The loads at which the first tie, and the tie is broken for others than the chosen locks."""
    found: dict[tuple[Figure, tuple[str, ...]], list[tuple[LoadComparison, TieBreak]]] = {}
    for load in contested:
        for by in load.tie_breaks:
            is_said = by.figure is Figure.STARVATION and any(load.of(lock).starved for lock in chosen)
            if set(chosen) & set(by.over) and not is_said:
                found.setdefault((by.figure, by.locks), []).append((load, by))
    for shown in found.values():
        load, by = max(shown, key=lambda pair: _size(pair[1]))
        where = _measured_at(by, load, len(shown), len(contested))
        yield f"but {_reason(by)}{where}, where {_placed_by(load)} ties"


def _measured_at(by: TieBreak, load: LoadComparison, count: int, total: int) -> str:
    """At which loads a tie is broken so, `load` being the one that says most."""
    if total == 1 or by.figure in _OF_THE_LOCK:
        return ""
    return _at(load) if count == 1 else f"{_at(load)} (and at {plural(count - 1, 'further load')})"


_OF_THE_LOCK = {Figure.PROMISE, Figure.SERVERS, Figure.COMMANDS}
"""What is the same at every load."""


def _reason(by: TieBreak) -> str:
    over, several = _listed(by.over, "other locks"), len(by.locks) > 1
    against = f"{_shown(by.figure, by.value)} against {_shown(by.figure, by.other)}"
    match by.figure:
        case Figure.STARVATION:
            does = f"{'starve' if several else 'starves'} no client, and {over} {'do' if len(by.over) > 1 else 'does'}"
        case Figure.FAIRNESS:
            does = f"{'serve' if several else 'serves'} clients more evenly than {over}: Jain's index {against}"
        case Figure.RESPONSE:
            does = f"{'have' if several else 'has'} a lower p99 than {over}: {against}"
        case Figure.LONGEST_WAIT:
            does = f"{'keep' if several else 'keeps'} no client waiting as long as {over}: longest wait {against}"
        case Figure.PROMISE:
            does = f"{'promise' if several else 'promises'} more than {over}"
        case Figure.SERVERS:
            does = f"{'need' if several else 'needs'} fewer servers than {over}: {against}"
        case _:
            does = f"{'send' if several else 'sends'} fewer commands per grant than {over}: {against}"
    return f"{_listed(by.locks)} {does}"


def _losses(contested: Sequence[LoadComparison], chosen: Sequence[str]) -> Iterator[str]:
    """Where a chosen lock is behind."""
    for lock in chosen[:MOST_NAMED]:
        behind = [(load, load.of(lock)) for load in contested if load.of(lock).place is Place.BEHIND]
        if behind:
            yield f"but {_behind(behind, len(contested))}"


def _losers(contested: Sequence[LoadComparison], chosen: Sequence[str]) -> Iterator[str]:
    """The other locks that are behind somewhere, the one that loses most first."""
    losers: dict[str, list[tuple[LoadComparison, Standing]]] = {}
    for load in contested:
        for one in load.ranked:
            if one.place is Place.BEHIND and one.lock not in chosen:
                losers.setdefault(one.lock, []).append((load, one))
    lead = max((load for load in contested if load.first[0].lock in chosen), key=_ratio_of_first, default=None)
    if lead is not None and lead.first[0].place is Place.AHEAD and len(losers.get(lead.first[0].beside or "", [])) == 1:
        # The headline has said by how much.
        del losers[lead.first[0].beside or ""]
    order = sorted(losers.values(), key=lambda behind: -max(_ratio(one) for _, one in behind))
    yield from (_behind(behind, len(contested)) for behind in order[:MOST_NAMED])
    if len(order) > MOST_NAMED:
        more = len(order) - MOST_NAMED
        yield f"{plural(more, 'further lock')} {'is' if more == 1 else 'are'} behind at some load"


def _behind(behind: Sequence[tuple[LoadComparison, Standing]], total: int) -> str:
    """That one lock is behind at these of `total` contested loads, and by how much where it loses most."""
    load, one = max(behind, key=lambda pair: _ratio(pair[1]))
    where = f" at {len(behind)} of {total} loads, most" if len(behind) > 1 else ""
    return f"{one.lock} is behind{where}{_at(load)}: {_gap(one)}"


def _promises(compared: Comparison) -> Iterator[str]:
    """Which of the ranked locks promise more than what was chosen."""
    chosen = compared.choice.locks
    promises = compared.promises
    most = max(promises[lock] for lock in chosen)
    more = [lock for lock, much in promises.items() if much > most]
    if more:
        yield f"but {_listed(more)} {'promises' if len(more) == 1 else 'promise'} more than {_listed(chosen)}"


def _overloaded(compared: Comparison, summary: pd.DataFrame, trials: pd.DataFrame | None) -> Iterator[str]:
    """Where a chosen lock does not keep up with the arrivals of an open loop, and how far it falls short at worst."""
    late = late_cells(trials) if trials is not None and "arrivals" in trials else {}
    rows = {row["cell"]: row for row in summary.to_dict("records") if row["cell"] not in late}
    for lock in compared.choice.locks[:MOST_NAMED]:
        found = []
        for load in compared.loads:
            one = load.of(lock)
            said = overload(rows[one.cell]) if one.cell in rows and one.place is not Place.OUT else None
            if said is not None:
                found.append(((one.throughput or 0.0) / (load.offered_per_s or 1.0), load, said))
        if found:
            _, load, said = min(found, key=lambda shortfall: shortfall[0])
            more = f" (and at {plural(len(found) - 1, 'further load')})" if len(found) > 1 else ""
            yield f"but {lock} does not keep up with the arrivals{_at(load)}{more}: {said.replace(': ', ', so ')}"


def _lead(load: LoadComparison) -> str:
    """By how much the lock that is ahead at `load` leads the next."""
    first = load.first[0]
    if first.figure is Figure.RESPONSE:
        return f"p99 response {_shown(first.figure, first.value)}, {first.beside}'s is {_other(first)}{_at(load)}"
    times = f", {significant(first.ratio.value)} times {first.beside}'s" if first.ratio else ""
    return f"{format_whole(first.value)} grants/s{times}{_at(load)}"


def _gap(one: Standing) -> str:
    """By how much a lock that is behind is so."""
    if one.figure is Figure.RESPONSE:
        return f"p99 response {_shown(one.figure, one.value)}, {one.beside}'s is {_other(one)}"
    return f"{one.beside} gives {significant(_ratio(one))} times the grants"


def _other(one: Standing) -> str:
    return _shown(one.figure, one.other)


def _shown(figure: Figure | None, value: float | None) -> str:
    match figure:
        case Figure.RESPONSE | Figure.LONGEST_WAIT:
            return format_us(value)
        case Figure.FAIRNESS:
            return format_ratio(value)
        case _:
            return format_whole(value)


def _placed_by(load: LoadComparison) -> str:
    return "p99 response" if load.is_open else "throughput"


def _too_few(compared: Comparison) -> str:
    if compared.trials >= ENOUGH_BLOCKS:
        return ""
    return f"{plural(compared.trials, 'trial')} per cell, and a comparison needs {ENOUGH_BLOCKS}"


def _contested(compared: Comparison) -> list[LoadComparison]:
    return [load for load in compared.loads if load.is_contested]


def _ratio(one: Standing) -> float:
    return one.ratio.value if one.ratio else 1.0


def _ratio_of_first(load: LoadComparison) -> float:
    return _ratio(load.first[0])


def _size(by: TieBreak) -> float:
    return by.ratio.value if by.ratio else 1.0


def _not_ranked(compared: Comparison) -> Iterator[str]:
    """The locks that are nowhere ranked though nothing was wrong with them, by the reason."""
    ranked = {one.lock for load in compared.loads for one in load.ranked}
    reasons: dict[Out, list[str]] = {}
    for lock in compared.locks:
        standings = [load.of(lock) for load in compared.loads if load.of(lock).cell is not None]
        outs = {one.out: one.holders for one in standings if one.out is not None}
        if lock in ranked or Out.UNSAFE in outs:
            continue
        for out, holders in outs.items():
            many = f" ({holders:.0f})" if holders is not None and math.isfinite(holders) else ""
            reasons.setdefault(out, []).append(f"{lock}{many}")
    for out, names in reasons.items():
        yield f"not ranked ({out.value}): {_listed(names)}"


def _unsafe(compared: Comparison) -> str | None:
    unsafe, measured = Counter[str](), Counter[str]()
    for load in compared.loads:
        for one in load.standings:
            measured[one.lock] += one.cell is not None
            unsafe[one.lock] += one.out is Out.UNSAFE
    named = [
        f"{lock} is unsafe at {count} of {plural(measured[lock], 'load')}" for lock, count in unsafe.items() if count
    ]
    if len(named) > MOST_NAMED:
        return f"{len(named)} of {plural(len(compared.locks), 'lock')} are unsafe at some load"
    return _listed(named) if named else None


def _at(load: LoadComparison) -> str:
    return f" with {load.text}" if load.text else ""


def _listed(names: Sequence[str], noun: str = "locks", last: str = "and") -> str:
    """The names, or how many there are where they would be a sentence of their own."""
    if len(names) > MOST_NAMED:
        return f"{len(names)} {noun}"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
