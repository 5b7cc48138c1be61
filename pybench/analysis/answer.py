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

from pybench.analysis.claim_texts import (
    MOST_NAMED,
    WAITS,
    at,
    clearest,
    further_loads,
    is_behind,
    leads,
    listed,
    placed_by,
    preferred,
    ratio_of,
    waits_longer,
)
from pybench.analysis.comparison import (
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
from pybench.analysis.comparison.pairs import ENOUGH_BLOCKS
from pybench.analysis.lateness import late_cells
from pybench.analysis.overload import overload
from pybench.matrix.conditions import AxisValue
from pybench.numbers import format_whole, plural

if TYPE_CHECKING:
    import pandas as pd

TOLD_TIMES = 2
"""How many times as long a wait must be to be told where throughput has decided."""


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
    most = f"{'' if len(rates) == 1 else 'up to '}{format_whole(rate)} safe grants/s{at(load)}"
    if compared.choice.basis is Basis.ONLY_LOCK:
        return f"{lock} gives {most}; there is no other lock to compare it with"
    return f"Take {lock}: no other lock of this run is ranked; {lock} gives {most}"


def _tied(compared: Comparison) -> str:
    locks, contested = compared.choice.locks, _contested(compared)
    if _too_few(compared):
        return f"No clear winner among {listed(locks)}: {_too_few(compared)}"
    undecided = f"{plural(compared.trials, 'trial')} per cell show no difference that is more than chance"
    reasons = list(_steps(compared))
    if reasons and len(locks) <= MOST_NAMED:
        return f"Take {listed(locks, last='or')}: {', and '.join(reasons)}; between them {undecided}"
    where = "" if len(contested) == 1 else f" over {len(contested)} loads"
    return f"No clear winner among {listed(locks)}{where}: {undecided}"


def _taken(compared: Comparison, lock: str) -> str:
    """Where the lock to take stands, and what decided where others tie with it."""
    contested = [load for load in _contested(compared) if load.of(lock).place is not Place.OUT]
    if not contested:
        return "every other lock that is ranked was unsafe at some load"
    reasons = list(_steps(compared))
    stands = _stands(contested, lock) if len(contested) > 1 else _stands_once(compared, contested[0], lock)
    others = [name for name in compared.locks if name != lock]
    unless = list(_out_at(compared, Out.NO_GRANTS, others)) or [
        "every other lock that is ranked was unsafe at some load"
    ]
    unless = [] if stands or reasons else unless
    return ", and ".join([*([stands] if stands else []), *reasons, *unless])


def _stands(contested: Sequence[LoadComparison], lock: str) -> str:
    """Where the lock to take stands at several loads, and by which figure where it leads most."""
    places = Counter(load.of(lock).place for load in contested)
    ahead = [load for load in contested if load.of(lock).place is Place.AHEAD]
    total = len(contested)
    parts = []
    if ahead:
        # A lead that goes with starving clients shows least.
        best = max(ahead, key=lambda load: (not load.of(lock).starved, _ratio_of_first(load)))
        parts.append(f"ahead at {len(ahead)} of {total} loads ({leads(best)})")
    if places[Place.TIED]:
        where = "every load" if places[Place.TIED] == total else plural(places[Place.TIED], "load")
        parts.append(f"{'' if parts else 'statistically '}tied for the first place at {where}")
    return ", ".join(parts)


def _stands_once(compared: Comparison, load: LoadComparison, lock: str) -> str:
    """The same where one load is contested."""
    one = load.of(lock)
    if one.place is Place.AHEAD:
        return leads(load)
    if one.place is Place.BEHIND:
        return ""
    if _too_few(compared):
        return f"speed was not compared ({_too_few(compared)})"
    others = [other.lock for other in load.first if other is not one]
    return f"{placed_by(load)} ties with {listed(others, 'other locks')}"


def _qualified(compared: Comparison) -> list[str]:
    """What a reader who takes the chosen lock must know: what decided, where another is better, who is worse."""
    chosen = compared.choice.locks
    contested = _contested(compared)
    return [
        *(f"but {said}" for out in (Out.NO_GRANTS, Out.UNDECIDED) for said in _out_at(compared, out, chosen)),
        *_losses(contested, chosen),
        *_better_elsewhere(contested, chosen),
        *_waiting(contested, chosen),
        *_promises(compared),
        *_losers(contested, chosen),
    ]


def _steps(compared: Comparison) -> Iterator[str]:
    """The steps after the figure that places locks: why the chosen one is preferred to those it ties with."""
    chosen, contested = compared.choice.locks, _contested(compared)
    for step in compared.choice.steps:
        if step.figure is None:
            behind = {one.lock for load in contested for one in load.ranked if one.place is Place.BEHIND}
            yield from _out_at(compared, Out.NO_GRANTS, [lock for lock in step.over if lock not in behind])
            continue
        found = [
            (load, by)
            for load in contested
            for by in load.tie_breaks
            if by.figure is step.figure and set(by.over) & set(step.over) and set(chosen) <= set(by.locks)
        ]
        # Some may have been dropped at one load, and some at another.
        left = set(step.over)
        while covering := [(load, by) for load, by in found if left & set(by.over)]:
            yield preferred(covering, len(contested), chosen)
            left -= set(clearest(covering)[1].over)
        if step.figure is not Figure.STARVATION or found:
            by_text = {load.text: load for load in contested}
            rest = [(by_text[text], by) for text, by in step.because if left & set(by.over) and text in by_text]
            yield from (preferred([one], len(contested)) for one in rest[:MOST_NAMED])
        if not found and step.figure is Figure.STARVATION:
            yield from _serving(contested, chosen, step.over)


def _out_at(compared: Comparison, out: Out, locks: Sequence[str]) -> Iterator[str]:
    """The loads at which each of `locks` is out for this reason, such as `x was granted nothing with 3 keys`."""
    for lock in locks[:MOST_NAMED]:
        loads = [load for load in compared.loads if load.of(lock).out is out]
        if loads:
            what = "was granted nothing" if out is Out.NO_GRANTS else "has too little evidence to be called safe"
            yield f"{lock} {what}{at(loads[0])}{further_loads(len(loads) - 1)}"


def _serving(contested: Sequence[LoadComparison], chosen: Sequence[str], over: Sequence[str]) -> Iterator[str]:
    """The load at which the chosen locks serve all clients, and one of `over` most of them not."""
    found = [
        (load, one)
        for load in contested
        for one in load.ranked
        if one.lock in over and one.starved and all(_starved(load, lock) < one.starved for lock in chosen)
    ]
    if found:
        load, one = max(found, key=lambda pair: pair[1].starved or 0)
        worst, several = max(_starved(load, lock) for lock in chosen), len(chosen) > 1
        serves, starves = ("they serve", "they starve") if several else ("it serves", "it starves")
        does = f"{starves} {worst} of {_clients(load)}" if worst else f"{serves} all {_clients(load)}"
        yield f"{does} clients, where {one.lock} starves {one.starved} of them{at(load)}"


def _starved(load: LoadComparison, lock: str) -> float:
    unserved = load.of(lock).unserved
    return math.inf if unserved is None else unserved


def _starving(compared: Comparison) -> Iterator[str]:
    """Where a chosen lock leaves clients without a grant, the load with most of them, and who serves all there."""
    for lock in compared.choice.locks[:MOST_NAMED]:
        found = [(load, one.starved) for load in compared.loads if (one := load.of(lock)).starved]
        if not found:
            continue
        load, starved = max(found, key=lambda pair: pair[1])
        serving = [other.lock for other in load.ranked if other.starved == 0 and not other.gives_up]
        served = f", and {listed(serving)} {'serve' if len(serving) > 1 else 'serves'} all of them" if serving else ""
        some = f"{starved} of {_clients(load)} clients"
        yield f"but {lock} starves {some}{at(load)}{further_loads(len(found) - 1)}{served}"


def _better_elsewhere(contested: Sequence[LoadComparison], chosen: Sequence[str]) -> Iterator[str]:
    """The loads at which the first tie, and the tie is broken for others than the chosen locks."""
    found: dict[tuple[Figure, tuple[str, ...], tuple[str, ...]], list[tuple[LoadComparison, TieBreak]]] = {}
    for load in contested:
        for by in load.tie_breaks:
            is_said = by.figure is Figure.STARVATION and any(load.of(lock).starved for lock in chosen)
            if set(chosen) & set(by.over) and not is_said:
                found.setdefault((by.figure, by.locks, by.over), []).append((load, by))
    for same in found.values():
        placed = ", ".join(dict.fromkeys(placed_by(load) for load, _ in same))
        yield f"but {preferred(same, len(contested))}, where {placed} ties"


def _waiting(contested: Sequence[LoadComparison], chosen: Sequence[str]) -> Iterator[str]:
    """Where the clients of a chosen lock wait at least twice as long as another's, if nothing else says so."""
    for lock in chosen[:MOST_NAMED]:
        found = []
        for load in contested:
            one = load.of(lock)
            longer = one.waits_longer
            is_said = bool(one.starved) or one.figure is not Figure.THROUGHPUT
            is_said = is_said or any(lock in by.over and by.figure in WAITS for by in load.tie_breaks)
            if longer is not None and longer.ratio.value >= TOLD_TIMES and not is_said:
                found.append((load, longer))
        if found:
            load, longer = max(found, key=lambda pair: pair[1].ratio.value)
            yield f"but {waits_longer(lock, longer)}{at(load)}"


def _losses(contested: Sequence[LoadComparison], chosen: Sequence[str]) -> Iterator[str]:
    """Where a chosen lock is behind."""
    for lock in chosen[:MOST_NAMED]:
        behind = [(load, load.of(lock)) for load in contested if load.of(lock).place is Place.BEHIND]
        if behind:
            yield f"but {is_behind(behind, len(contested))}"


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
    order = sorted(losers.values(), key=lambda behind: -max(ratio_of(one) for _, one in behind))
    yield from (is_behind(behind, len(contested)) for behind in order[:MOST_NAMED])
    if len(order) > MOST_NAMED:
        more = len(order) - MOST_NAMED
        yield f"{plural(more, 'further lock')} {'is' if more == 1 else 'are'} behind at some load"


def _promises(compared: Comparison) -> Iterator[str]:
    """Which of the ranked locks promise more than what was chosen."""
    chosen = compared.choice.locks
    promises = compared.promises
    most = max(promises[lock] for lock in chosen)
    more = [lock for lock, much in promises.items() if much > most]
    if more:
        yield f"but {listed(more)} {'promises' if len(more) == 1 else 'promise'} more than {listed(chosen)}"


def _overloaded(compared: Comparison, summary: pd.DataFrame, trials: pd.DataFrame | None) -> Iterator[str]:
    """Where a chosen lock does not keep up with the arrivals of an open loop, and how far it falls short at worst."""
    late = late_cells(trials) if trials is not None and "arrivals" in trials else {}
    rows = {row["cell"]: row for row in summary.to_dict("records") if row["cell"] not in late}
    if trials is not None and "drops" in trials:
        drops = trials.groupby("cell")["drops"].sum()
        rows = {cell: {**row, "drops": drops.get(cell)} for cell, row in rows.items()}
    for lock in compared.choice.locks[:MOST_NAMED]:
        found = []
        for load in compared.loads:
            one = load.of(lock)
            said = overload(rows[one.cell]) if one.cell in rows and one.place is not Place.OUT else None
            if said is not None:
                found.append(((one.throughput or 0.0) / (load.offered_per_s or 1.0), load, said))
        if found:
            _, load, said = min(found, key=lambda shortfall: shortfall[0])
            more = further_loads(len(found) - 1)
            yield f"but {lock} does not keep up with the arrivals{at(load)}{more}: {said.replace(': ', ', so ')}"


def _clients(load: LoadComparison) -> AxisValue:
    return dict(load.values)["concurrency"]


def _ratio_of_first(load: LoadComparison) -> float:
    return ratio_of(load.first[0])


def _too_few(compared: Comparison) -> str:
    if compared.trials >= ENOUGH_BLOCKS:
        return ""
    return f"{plural(compared.trials, 'trial')} per cell, and a comparison needs {ENOUGH_BLOCKS}"


def _contested(compared: Comparison) -> list[LoadComparison]:
    return [load for load in compared.loads if load.is_contested]


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
            reasons.setdefault(out, []).append(f"{_named(lock)}{many}")
    for out, names in reasons.items():
        yield f"not ranked ({out.value}): {listed(names)}"


def _named(lock: str) -> str:
    """Its name; a bare `none` would read as "no lock"."""
    return f"no lock at all ({lock})" if lock.split(" ")[0] == "none" else lock


def _unsafe(compared: Comparison) -> str | None:
    unsafe, measured = Counter[str](), Counter[str]()
    for load in compared.loads:
        for one in load.standings:
            measured[one.lock] += one.cell is not None
            unsafe[one.lock] += one.out is Out.UNSAFE
    named = [
        f"{_named(lock)} is unsafe at {count} of {plural(measured[lock], 'load')}"
        for lock, count in unsafe.items()
        if count
    ]
    if len(named) > MOST_NAMED:
        return f"{len(named)} of {plural(len(compared.locks), 'lock')} are unsafe at some load"
    return listed(named) if named else None
