"""The answer of a run in a few clauses: which lock to take, why, and the arguments against it.

Promises: every clause repeats a claim of the comparison and names the load of its figures; this module compares
nothing. A lock that was unsafe at some load is never recommended while another ranked lock was safe everywhere.
Does not do: listing every lock at every load; the tables do.
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
from pybench.analysis.overload import overload
from pybench.analysis.rates import limits_of, most_of
from pybench.analysis.send_delay import late_cells
from pybench.analysis.unranked import dismissed, not_ranked, out_at, unsafe_locks
from pybench.matrix.conditions import AxisValue
from pybench.numbers import plural

if TYPE_CHECKING:
    import pandas as pd

LEAST_WAIT_RATIO = 2
"""Where throughput decides, the answer names a wait that is at least so many times as long as another lock's."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a run as clauses. A clause has no full stop, and no capital unless a name begins it."""

    headline: str
    further: tuple[str, ...] = ()
    """Clauses that qualify the headline."""
    unsafe: str | None = None
    """Every lock that was unsafe at some load, and at how many of its loads; `none`, which takes no lock, is left out.

    None when all locks were safe.
    """

    @property
    def text(self) -> str:
        """All clauses as one sentence."""
        return "; ".join([self.headline, *self.further, *([self.unsafe] if self.unsafe else [])]) + "."


def answer_of(summary: pd.DataFrame, trials: pd.DataFrame | None = None, compared: Comparison | None = None) -> Answer:
    """The answer of a run. `summary` is as in `summary.csv`; without `trials` no lock is ahead of another.

    `compared` is what `compare_locks` makes of the two, where that is known already.
    """
    compared = compare_locks(summary, trials) if compared is None else compared
    answer = answer_from(compared)
    return replace(answer, further=(*answer.further, *_overloaded(compared, summary, trials)))


def answer_from(compared: Comparison) -> Answer:
    """The answer that the claims of `compared` support."""
    chosen = compared.choice
    further: list[str] = []
    match chosen.basis:
        case Basis.NOTHING_MEASURED:
            return Answer("Nothing was measured")
        case Basis.VOID:
            return Answer("This run proves nothing: its control was not caught")
        case Basis.NONE_RANKED:
            headline = "No lock can be recommended: no lock of this run is ranked"
        case Basis.NOT_CONTESTED:
            headline = _not_contested(compared)
        case Basis.ONLY_LOCK | Basis.ONLY_RANKED:
            headline = _alone(compared, chosen.locks[0])
        case Basis.TIED:
            headline, further = _tied(compared), _qualified(compared)
        case _:
            headline, further = f"Take {chosen.locks[0]}: {_taken(compared, chosen.locks[0])}", _qualified(compared)
    return Answer(
        headline, (*limits_of(compared), *_starving(compared), *further, *not_ranked(compared)), unsafe_locks(compared)
    )


def _alone(compared: Comparison, lock: str) -> str:
    most = most_of(compared, lock)
    if compared.choice.basis is Basis.ONLY_LOCK:
        return f"{most}; there is no other lock to compare it with"
    return f"Take {lock}: no other lock of this run is ranked; {most}"


def _not_contested(compared: Comparison) -> str:
    if not _contested(compared):
        return "No two locks are ranked at the same load, so no locks can be compared"
    (lock,) = compared.choice.locks
    return f"No lock can be recommended: only {lock} was unsafe at no load, and no other ranked lock has its loads"


def _tied(compared: Comparison) -> str:
    locks, contested = compared.choice.locks, _contested(compared)
    if _too_few(compared):
        return f"No clear winner among {listed(locks)}: {_too_few(compared)}"
    undecided = f"{plural(compared.trials, 'trial')} per cell show no statistically significant difference"
    reasons = list(_steps(compared))
    if reasons and len(locks) <= MOST_NAMED:
        return f"Take {listed(locks, last='or')}: {', and '.join(reasons)}; between them {undecided}"
    where = "" if len(contested) == 1 else f" over {len(contested)} loads"
    return f"No clear winner among {listed(locks)}{where}: {undecided}"


def _taken(compared: Comparison, lock: str) -> str:
    """Where the recommended lock stands, and what decided between it and the locks tied with it."""
    contested = [load for load in _contested(compared) if load.of(lock).place is not Place.OUT]
    if not contested:
        return dismissed(compared, lock)
    reasons = list(_steps(compared))
    if _too_few(compared):
        figures = {load.of(lock).figure for load in contested}
        what = "limits were" if figures == {Figure.LIMIT} else "speed was"
        stands = f"{what} not compared ({_too_few(compared)})"
    else:
        stands = _stands(contested, lock) if len(contested) > 1 else _stands_once(contested[0], lock)
    others = [name for name in compared.locks if name != lock]
    unless = list(out_at(compared, Out.NO_GRANTS, others)) or [dismissed(compared, lock)]
    unless = [] if stands or reasons else unless
    return ", and ".join([*([stands] if stands else []), *reasons, *unless])


def _stands(contested: Sequence[LoadComparison], lock: str) -> str:
    """Where the recommended lock stands at several loads, with its figures where it leads most."""
    places = Counter(load.of(lock).place for load in contested)
    ahead = [load for load in contested if load.of(lock).place is Place.AHEAD]
    total = len(contested)
    parts = []
    if ahead:
        # A lead counts least where the lock starves clients: it may come from serving few of them.
        best = max(ahead, key=lambda load: (not load.of(lock).starved, _ratio_of_first(load)))
        parts.append(f"ahead at {len(ahead)} of {total} loads ({leads(best)})")
    if places[Place.TIED]:
        where = "every load" if places[Place.TIED] == total else plural(places[Place.TIED], "load")
        parts.append(f"{'' if parts else 'statistically '}tied for the first place at {where}")
    return ", ".join(parts)


def _stands_once(load: LoadComparison, lock: str) -> str:
    """Where the recommended lock stands in a run with one contested load."""
    one = load.of(lock)
    if one.place is Place.AHEAD:
        return leads(load)
    if one.place is Place.BEHIND:
        return ""
    others = [other.lock for other in load.first if other is not one]
    return f"tied with {listed(others, 'other locks')} on {placed_by(load)}"


def _qualified(compared: Comparison) -> list[str]:
    """What a reader who takes a chosen lock must know: its missing grants, where other locks are better or worse."""
    chosen = compared.choice.locks
    contested = _contested(compared)
    return [
        *(f"but {clause}" for out in (Out.NO_GRANTS, Out.UNDECIDED) for clause in out_at(compared, out, chosen)),
        *_losses(contested, chosen),
        *_better_elsewhere(contested, chosen),
        *_waiting(contested, chosen),
        *_promises(compared),
        *_losers(contested, chosen),
    ]


def _steps(compared: Comparison) -> Iterator[str]:
    """Why the chosen locks are preferred to the locks that they tie with, step by step."""
    chosen, contested = compared.choice.locks, _contested(compared)
    for step in compared.choice.steps:
        if step.figure is None:
            behind = {one.lock for load in contested for one in load.ranked if one.place is Place.BEHIND}
            yield from out_at(compared, Out.NO_GRANTS, [lock for lock in step.over if lock not in behind])
            continue
        found = [
            (load, by)
            for load in contested
            for by in load.tie_breaks
            if by.figure is step.figure and set(by.over) & set(step.over) and set(chosen) <= set(by.locks)
        ]
        # One lock may have been dropped at one load, and another lock at another load.
        left = set(step.over)
        while covering := [(load, by) for load, by in found if left & set(by.over)]:
            yield preferred(covering, len(contested), chosen)
            left -= set(clearest(covering)[1].over)
        if step.figure is not Figure.STARVATION or found:
            by_text = {load.text: load for load in contested}
            clearest_of = [(by_text[text], by) for text, by in step.because if left & set(by.over) and text in by_text]
            yield from (preferred([one], len(contested)) for one in clearest_of[:MOST_NAMED])
        if not found and step.figure is Figure.STARVATION:
            yield from _serving(contested, chosen, step.over)


def _serving(contested: Sequence[LoadComparison], chosen: Sequence[str], over: Sequence[str]) -> Iterator[str]:
    """The load at which the chosen locks serve more clients than one of `over` that starves the most clients."""
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
    """For each chosen lock that starves clients: the load with the most, and the locks that serve all clients there."""
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
    """The loads at which a tie for the first place is broken in favour of a lock that was not chosen."""
    found: dict[tuple[Figure, tuple[str, ...], tuple[str, ...]], list[tuple[LoadComparison, TieBreak]]] = {}
    for load in contested:
        for by in load.tie_breaks:
            is_named = by.figure is Figure.STARVATION and any(load.of(lock).starved for lock in chosen)
            if set(chosen) & set(by.over) and not is_named:
                found.setdefault((by.figure, by.locks, by.over), []).append((load, by))
    for same in found.values():
        placed = ", ".join(dict.fromkeys(placed_by(load) for load, _ in same))
        yield f"but {preferred(same, len(contested))}, where {placed} is tied"


def _waiting(contested: Sequence[LoadComparison], chosen: Sequence[str]) -> Iterator[str]:
    """Where a chosen lock has at least twice the wait of another lock, if no other clause names that wait."""
    for lock in chosen[:MOST_NAMED]:
        found = []
        for load in contested:
            one = load.of(lock)
            longer = one.waits_longer
            is_named = bool(one.starved) or one.figure is not Figure.THROUGHPUT
            is_named = is_named or any(lock in by.over and by.figure in WAITS for by in load.tie_breaks)
            if longer is not None and longer.ratio.value >= LEAST_WAIT_RATIO and not is_named:
                found.append((load, longer))
        if found:
            load, longer = max(found, key=lambda pair: pair[1].ratio.value)
            yield f"but {waits_longer(lock, longer)}{at(load)}"


def _losses(contested: Sequence[LoadComparison], chosen: Sequence[str]) -> Iterator[str]:
    """The loads at which a chosen lock is behind."""
    for lock in chosen[:MOST_NAMED]:
        behind = [(load, load.of(lock)) for load in contested if load.of(lock).place is Place.BEHIND]
        if behind:
            yield f"but {is_behind(behind, len(contested))}"


def _losers(contested: Sequence[LoadComparison], chosen: Sequence[str]) -> Iterator[str]:
    """The other locks that are behind at some load, the one furthest behind first."""
    losers: dict[str, list[tuple[LoadComparison, Standing]]] = {}
    for load in contested:
        for one in load.ranked:
            if one.place is Place.BEHIND and one.lock not in chosen:
                losers.setdefault(one.lock, []).append((load, one))
    lead = max((load for load in contested if load.first[0].lock in chosen), key=_ratio_of_first, default=None)
    if lead is not None and lead.first[0].place is Place.AHEAD and len(losers.get(lead.first[0].beside or "", [])) == 1:
        # The headline gives the ratio of these two locks.
        del losers[lead.first[0].beside or ""]
    order = sorted(losers.values(), key=lambda behind: -max(ratio_of(one) for _, one in behind))
    yield from (is_behind(behind, len(contested)) for behind in order[:MOST_NAMED])
    if len(order) > MOST_NAMED:
        more = len(order) - MOST_NAMED
        yield f"{plural(more, 'further lock')} {'is' if more == 1 else 'are'} behind at some load"


def _promises(compared: Comparison) -> Iterator[str]:
    """The ranked locks that promise more than every chosen lock."""
    chosen = compared.choice.locks
    promises = compared.promises
    most = max(promises[lock] for lock in chosen)
    more = [lock for lock, level in promises.items() if level > most]
    if more:
        yield f"but {listed(more)} {'promises' if len(more) == 1 else 'promise'} more than {listed(chosen)}"


def _overloaded(compared: Comparison, summary: pd.DataFrame, trials: pd.DataFrame | None) -> Iterator[str]:
    """For each chosen lock that does not keep up in an open loop: the load with the worst shortfall."""
    late = late_cells(trials) if trials is not None and "arrivals" in trials else {}
    rows = {row["cell"]: row for row in summary.to_dict("records") if row["cell"] not in late}
    if trials is not None and "drops" in trials:
        drops = trials.groupby("cell")["drops"].sum()
        rows = {cell: {**row, "drops": drops.get(cell)} for cell, row in rows.items()}
    for lock in compared.choice.locks[:MOST_NAMED]:
        found = []
        for load in compared.loads:
            one = load.of(lock)
            text = overload(rows[one.cell]) if one.cell in rows and one.place is not Place.OUT else None
            if text is not None:
                found.append(((one.throughput or 0.0) / (load.offered_per_s or 1.0), load, text))
        if found:
            _, load, text = min(found, key=lambda shortfall: shortfall[0])
            more = further_loads(len(found) - 1)
            yield f"but {lock} does not keep up with the arrivals{at(load)}{more}: {text.replace(': ', ', so ')}"


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
