"""The claims of a comparison as clauses: by how much a lock leads or is behind, and what breaks a tie.

Promises: a clause repeats the figures of its claim, and names only loads at which the whole clause is true.
Does not do: choosing the clauses of the answer; `answer` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.comparison import Figure, LoadComparison, LongerWait, Standing, TieBreak
from pybench.formats import Format
from pybench.numbers import format_percent, format_ratio, format_us, plural, significant

MOST_NAMED = 5
"""A clause about more locks than these gives their number in place of their names."""
WAITS = {Figure.RESPONSE, Figure.LONGEST_WAIT}
_CALLED = {Figure.RESPONSE: "p99 response", Figure.LONGEST_WAIT: "longest wait", Figure.LIMIT: "the limit"}
_OF_THE_LOCK = {Figure.PROMISE, Figure.SERVERS, Figure.COMMANDS}
"""Figures of the lock alone: they are the same at every load."""

FoundTieBreaks = Sequence[tuple[LoadComparison, TieBreak]]


def preferred(found: FoundTieBreaks, total: int, named: Sequence[str] = ()) -> str:
    """The clearest of these tie breaks, and at how many of the `total` loads the same holds for the same locks.

    Locks that the answer has `named` before come first; the clause gives the number of the others.
    """
    load, by = clearest(found)
    same = [one for one, other in found if (other.locks, other.over) == (by.locks, by.over)]
    who = _who(by.locks, named)
    if total == 1 or by.figure in _OF_THE_LOCK:
        return f"{who} {_better(by)}"
    return f"{who} {_better(by)}{at(load)}{further_loads(len(same) - 1)}"


def _who(locks: Sequence[str], named: Sequence[str]) -> str:
    others = len(set(locks) - set(named))
    if not named or not set(named) < set(locks) or others == 1:
        return "they" if len(locks) > 1 and set(locks) == set(named) else listed(locks)
    return f"{'they' if len(named) > 1 else named[0]} and {others} others"


def clearest(found: FoundTieBreaks) -> tuple[LoadComparison, TieBreak]:
    """The tie break with the greatest ratio."""
    return max(found, key=lambda pair: pair[1].ratio.value if pair[1].ratio else 1.0)


def _better(by: TieBreak) -> str:
    over, several = listed(by.over, "other locks"), len(by.locks) > 1
    # `by.other` is the best of several locks. The table shows their other figures, which this text must not deny.
    further = f" or {'less' if by.figure is Figure.FAIRNESS else 'more'}" if len(by.over) > 1 else ""
    against = f"{_shown(by.figure, by.value)} against {_shown(by.figure, by.other)}{further}"
    match by.figure:
        case Figure.REFUSALS:
            does = f"{'refuse' if several else 'refuses'} fewer acquires than {over}: {against}"
        case Figure.STARVATION if not by.value:
            starve = "starve" if len(by.over) > 1 else "starves"
            does = f"{'starve' if several else 'starves'} no client, and {over} {starve} some"
        case Figure.STARVATION:
            does = f"{'starve' if several else 'starves'} fewer clients than {over}: {against}"
        case Figure.FAIRNESS:
            does = f"{'serve' if several else 'serves'} clients more evenly than {over}: Jain's index {against}"
        case Figure.RESPONSE:
            does = f"{'have' if several else 'has'} a lower p99 than {over}: {against}"
        case Figure.LONGEST_WAIT:
            does = f"{'have' if several else 'has'} a shorter longest wait than {over}: {against}"
        case Figure.PROMISE:
            does = f"{'promise' if several else 'promises'} more than {over}"
        case Figure.SERVERS:
            does = f"{'need' if several else 'needs'} fewer servers than {over}: {against}"
        case _:
            does = f"{'send' if several else 'sends'} fewer commands per grant than {over}: {against}"
    return does


def leads(load: LoadComparison) -> str:
    """By how much the lock that is ahead at `load` leads the next."""
    first = load.first[0]
    if first.figure in WAITS:
        return f"{_waits(first)}{at(load)}"
    ratio = f", {_times(first.ratio.value)} {first.beside}'s" if first.ratio else ""
    what = "grants/s" if first.figure is Figure.THROUGHPUT else "arrivals/s"
    limit = "its limit is " if first.figure is Figure.LIMIT else ""
    return f"{limit}{Format.RATE.text(first.value)} {what}{ratio}{at(load)}"


def is_behind(found: Sequence[tuple[LoadComparison, Standing]], total: int) -> str:
    """At how many of `total` contested loads one lock is behind, and by how much where it is furthest behind."""
    load, one = max(found, key=lambda pair: ratio_of(pair[1]))
    where = f" at {len(found)} of {total} loads, furthest" if len(found) > 1 else ""
    match one.figure:
        case Figure.RESPONSE | Figure.LONGEST_WAIT:
            how_much = _waits(one)
        case Figure.LIMIT:
            own = f"its limit is {_shown(one.figure, one.value)} arrivals/s"
            how_much = f"{own}, {one.beside}'s is {_times(ratio_of(one))} as high"
        case _:
            how_much = f"{one.beside} gives {_times(ratio_of(one))} the grants"
    return f"{one.lock} is behind{where}{at(load)}: {how_much}"


def waits_longer(lock: str, longer: LongerWait) -> str:
    """By how much the clients of `lock` wait longer than those of another lock at the same load."""
    figures = f"{_shown(longer.figure, longer.value)} against {_shown(longer.figure, longer.other)}"
    return f"{lock} has a {_CALLED[longer.figure]} above that of {longer.beside}: {figures}"


def _waits(one: Standing) -> str:
    mine, others = _shown(one.figure, one.value), _shown(one.figure, one.other)
    return f"{_called(one.figure)} {mine}, {one.beside}'s is {others}"


def _times(ratio: float) -> str:
    """A ratio of paired trials. More digits would show that it differs a little from the ratio of the medians."""
    return f"{significant(ratio, 3 if ratio < 2 else 2)} times"


def _shown(figure: Figure | None, value: float | None) -> str:
    """A figure in its unit."""
    match figure:
        case Figure.RESPONSE | Figure.LONGEST_WAIT:
            return format_us(value)
        case Figure.FAIRNESS:
            return format_ratio(value)
        case Figure.REFUSALS:
            return format_percent(value)
        case Figure.THROUGHPUT | Figure.LIMIT:
            return Format.RATE.text(value)
        case _:
            return Format.COUNT.text(value)


def placed_by(load: LoadComparison) -> str:
    """The figure that placed the first locks of a load."""
    return _called(load.first[0].figure)


def _called(figure: Figure | None) -> str:
    return _CALLED.get(figure, "throughput") if figure else "throughput"


def at(load: LoadComparison) -> str:
    """The load, where the run has several."""
    return f" with {load.text}" if load.text else ""


def further_loads(count: int) -> str:
    """A note that the clause also holds at `count` further loads."""
    return f" (and at {plural(count, 'further load')})" if count else ""


def listed(names: Sequence[str], noun: str = "locks", last: str = "and") -> str:
    """The names; with more than `MOST_NAMED`, their number."""
    if len(names) > MOST_NAMED:
        return f"{len(names)} {noun}"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def ratio_of(one: Standing) -> float:
    """How many times better or worse the lock is; 1 where the ratio is unknown."""
    return one.ratio.value if one.ratio else 1.0
