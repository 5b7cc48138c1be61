"""Which lock to take: how ties at one load are broken, and which lock is best over all loads of a run.

Where the figure that places locks leaves a tie, further figures decide, in this order: refused acquires, starved
clients, fairness, the p99 response or the longest wait, the promise, and the cost. Each lock that a step keeps is
better than each lock that it drops.
A lead in throughput does not count against a lock that serves all clients if the leading lock starves clients.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from pybench.analysis.comparison.claims import Basis, Choice, Figure, LoadComparison, Out, Place, Step, TieBreak
from pybench.analysis.comparison.entrants import Entrant, LoadCells, Row, commands, promise, servers
from pybench.analysis.comparison.rivals import Rivals, deciding, shown

NEXT = (
    *(Figure.REFUSALS, Figure.STARVATION, Figure.FAIRNESS, Figure.RESPONSE, Figure.LONGEST_WAIT),
    *(Figure.PROMISE, Figure.SERVERS, Figure.COMMANDS),
)
"""The figures that break ties, in this order."""

_KNOWN: Mapping[Figure, Callable[[Row], int | None]] = {
    Figure.PROMISE: promise,
    Figure.SERVERS: servers,
    Figure.COMMANDS: commands,
}


def break_tie(group: Sequence[Entrant], rivals: Rivals, *, placed_by: AbstractSet[Figure | None]) -> Iterator[TieBreak]:
    """The tie breaks within `group`, the first locks of a load; figures that have placed the locks are skipped."""
    for figure in NEXT:
        if len(group) < 2:
            return
        if figure in placed_by:
            continue
        left = _left(group, figure, rivals)
        over = [one for one in group if one not in left]
        if over:
            worst = max(left, key=lambda one: _badness(one, figure, rivals))
            best = min(over, key=lambda one: _badness(one, figure, rivals))
            ratio = rivals.ratio(worst, best, figure)
            yield TieBreak(
                figure,
                _names(left),
                _names(over),
                value_of(worst, figure, rivals),
                value_of(best, figure, rivals),
                ratio,
            )
        group = left


def _left(group: Sequence[Entrant], figure: Figure, rivals: Rivals) -> list[Entrant]:
    """The locks of `group` that are kept: each kept lock is better than each dropped lock."""
    best = min(group, key=lambda one: _badness(one, figure, rivals))
    dropped = [one for one in group if is_better(best, one, figure, rivals)]
    while dropped:
        left = [one for one in group if one not in dropped]
        still = [one for one in dropped if all(is_better(other, one, figure, rivals) for other in left)]
        if len(still) == len(dropped):
            return left
        dropped = still
    return list(group)


def is_better(one: Entrant, other: Entrant, figure: Figure, rivals: Rivals) -> bool:
    """Whether `one` is better than `other` in `figure`."""
    if figure not in _KNOWN:
        return rivals.better(one, other, figure)
    mine, others = value_of(one, figure, rivals), value_of(other, figure, rivals)
    if mine is None or others is None:
        return False
    return mine < others if figure.least_is_best else mine > others


def value_of(one: Entrant, figure: Figure, rivals: Rivals) -> float | None:
    """The figure of a cell or of its lock. Starvation is the number of clients without a grant in the worst trial."""
    if figure is Figure.REFUSALS:
        return rivals.refusals.get(one.cell)
    if figure is Figure.STARVATION:
        return rivals.unserved.get(one.cell)
    if figure in _KNOWN:
        known = _KNOWN[figure](one.row)
        return None if known is None else float(known)
    return shown(one, figure)


def _badness(one: Entrant, figure: Figure, rivals: Rivals) -> float:
    value = value_of(one, figure, rivals)
    if value is None:
        return math.inf
    return value if figure.least_is_best else -value


def _names(entrants: Sequence[Entrant]) -> tuple[str, ...]:
    return tuple(one.lock for one in entrants)


def choose(loads: Sequence[LoadCells], compared: Sequence[LoadComparison], rivals: Rivals) -> Choice:
    """The lock to take over all loads: a lock that no other beats, else the lock with the smallest worst loss."""
    outs = [one.out for load in loads for one in load.entrants]
    if not outs:
        return Choice(Basis.NOTHING_MEASURED)
    if Out.VOID in outs:
        return Choice(Basis.VOID)
    locks = _candidates(loads)
    if not locks:
        return Choice(Basis.NONE_RANKED)
    if len(locks) == 1:
        return Choice(_alone(locks[0], loads), tuple(locks))
    if not any(load.is_contested for load in compared):
        return Choice(Basis.NOT_CONTESTED, tuple(locks))
    return _decide(locks, loads, compared, rivals)


def _candidates(loads: Sequence[LoadCells]) -> list[str]:
    """The ranked locks that are unsafe at no load; if there are none, all locks that are ranked at some load."""
    entrants = [one for load in loads for one in load.entrants]
    unsafe = {one.lock for one in entrants if one.out is Out.UNSAFE}
    ranked = list(dict.fromkeys(one.lock for one in entrants if one.out is None))
    return [lock for lock in ranked if lock not in unsafe] or ranked


def _alone(lock: str, loads: Sequence[LoadCells]) -> Basis:
    """Why `lock` is the only candidate; NOT_CONTESTED where that rests on loads at which it was not measured."""
    others = [one for load in loads for one in load.entrants if one.lock != lock]
    if not others:
        return Basis.ONLY_LOCK
    ranked = {one.lock for one in others if one.out is None}
    rivals = ranked or {one.lock for one in others}
    measured = [{one.lock for one in load.entrants} for load in loads]
    if not any(lock in locks and rivals & locks for locks in measured):
        return Basis.NOT_CONTESTED
    return Basis.ONLY_SAFE if ranked else Basis.ONLY_RANKED


def _decide(
    locks: Sequence[str], loads: Sequence[LoadCells], compared: Sequence[LoadComparison], rivals: Rivals
) -> Choice:
    wins = _placing_wins(locks, loads, rivals)
    left = _undominated(locks, wins)
    steps = [Step(None, _without(locks, left))] if len(left) < len(locks) else []
    if any(wins[one, other] and wins[other, one] for one in left for other in left):
        loses = {lock: _worst_loss(lock, compared) for lock in left}
        ahead = Counter(one.lock for load in compared for one in load.ranked if one.place is Place.AHEAD)
        return Choice(Basis.DEPENDS, (min(left, key=lambda lock: (loses[lock], -ahead[lock])),), tuple(steps))
    for figure in NEXT:
        if len(left) == 1:
            break
        further = _undominated(left, _tie_wins(left, loads, compared, figure, rivals))
        if len(further) < len(left):
            over = _without(left, further)
            because = [found for lock in over if (found := _clearest(lock, further, figure, loads, compared, rivals))]
            steps.append(Step(figure, over, tuple(because)))
            left = further
    return Choice(Basis.DECIDED if len(left) == 1 else Basis.TIED, tuple(left), tuple(steps))


def _clearest(
    over: str,
    left: Sequence[str],
    figure: Figure,
    loads: Sequence[LoadCells],
    compared: Sequence[LoadComparison],
    rivals: Rivals,
) -> tuple[str, TieBreak] | None:
    """The load at which a lock of `left` has the greatest lead over `over`, with the tie break there."""
    found = []
    for load, entrants in _among_the_first(loads, compared, figure, {over, *left}):
        worse = [one for one in entrants if one.lock == over]
        for one in entrants:
            for other in worse:
                if one.lock in left and is_better(one, other, figure, rivals):
                    ratio = rivals.ratio(one, other, figure)
                    values = value_of(one, figure, rivals), value_of(other, figure, rivals)
                    found.append((load.text, TieBreak(figure, (one.lock,), (over,), *values, ratio)))
    return max(found, key=lambda pair: pair[1].ratio.value if pair[1].ratio else 1.0, default=None)


def _without(locks: Sequence[str], left: Sequence[str]) -> tuple[str, ...]:
    return tuple(lock for lock in locks if lock not in left)


def _placing_wins(locks: Sequence[str], loads: Sequence[LoadCells], rivals: Rivals) -> Counter[tuple[str, str]]:
    """At how many loads the first lock of each pair is better than the second in the figure that places them."""
    wins: Counter[tuple[str, str]] = Counter()
    for load in loads:
        here = [one for one in load.entrants if one.out is None and one.lock in locks]
        for one in here:
            for other in here:
                leads = rivals.better(one, other, deciding(one, other, load))
                wins[one.lock, other.lock] += leads and not rivals.starves_where(one, other)
            for other in load.entrants:
                # A lock with grants is better than a lock without a grant.
                wins[one.lock, other.lock] += other.out is Out.NO_GRANTS and other.lock in locks
    return wins


def _tie_wins(
    locks: Sequence[str],
    loads: Sequence[LoadCells],
    compared: Sequence[LoadComparison],
    figure: Figure,
    rivals: Rivals,
) -> Counter[tuple[str, str]]:
    """At how many loads the first lock of each pair is better in `figure`, among loads at which both tie for first.

    Starvation counts at all loads at which both are ranked.
    """
    wins: Counter[tuple[str, str]] = Counter()
    for _, here in _among_the_first(loads, compared, figure, set(locks)):
        for one in here:
            for other in here:
                wins[one.lock, other.lock] += is_better(one, other, figure, rivals)
    return wins


def _among_the_first(
    loads: Sequence[LoadCells], compared: Sequence[LoadComparison], figure: Figure, locks: AbstractSet[str]
) -> Iterator[tuple[LoadComparison, list[Entrant]]]:
    """Each load with those of `locks` between which `figure` may decide: the first locks, if it did not place them."""
    for load, found in zip(loads, compared, strict=True):
        if figure in {one.figure for one in found.first}:
            continue
        asked = found.ranked if figure is Figure.STARVATION else found.first
        among = {one.lock for one in asked} & locks
        yield found, [one for one in load.entrants if one.out is None and one.lock in among]


def _undominated(locks: Sequence[str], wins: Mapping[tuple[str, str], int]) -> list[str]:
    """The `locks` that no other lock beats without losing to them elsewhere; all `locks` if there are none."""
    left = [lock for lock in locks if not any(wins[other, lock] and not wins[lock, other] for other in locks)]
    return left or list(locks)


def _worst_loss(lock: str, compared: Sequence[LoadComparison]) -> float:
    standings = [load.of(lock) for load in compared if load.ranked]
    if any(one.out is Out.NO_GRANTS for one in standings):
        return math.inf
    return max((one.ratio.value for one in standings if one.place is Place.BEHIND and one.ratio), default=1.0)
