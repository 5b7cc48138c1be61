"""The search for the highest rate that a lock sustains: which rate comes next, given what the rates before have shown.

A pure function: `next_step` repeats the search over the outcomes so far, so a resumed run goes on where it was killed.

    up       from the first rate, each twice the one before, until a rate fails; if the first fails, down by halves
    bisect   between the highest rate that held and the lowest that failed, in the geometric middle, until they are
             close enough
    recheck  the lowest rate that failed is probed twice more. If it holds after all, the search goes up again from it
    confirm  three probes in a row at the highest rate that held. If one fails, the search steps down and confirms again
    curve    after the search: a probe at each share of the limit

This is the search for the throughput of RFC 2544, section 26.1, with the loss verification of ETSI GS NFV-TST 009,
section 12.3: a probe that fails is repeated once, and only two failures are a failed rate. So a disturbed moment does
not end a phase. The interval begins with the rate that held in the three confirmations, and ends with the lowest rate
that failed: twice, and twice more in the recheck. By the exact bounds of Clopper and Pearson (1934), a rate of which
less than 37 % of the probes hold passes three confirmations in less than 5 % of searches; a rate of which more than
53 % hold fails four times in a row in less than 5 %.

A probe in which the load generator was late shows nothing of the lock: it is repeated. After four late ones the rate
has failed, since no measurement at it is possible. Only in a recheck a late probe counts as a failed one.

Does not do: choosing the bounds of a search, see `searches`; judging a probe, see `analysis.search_outcomes`.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

GROWTH = 2.0
"""The factor between the rates on the way up, and on the way down from a first rate that fails."""
CONFIRMATIONS = 3
FAILURES = 2
"""After so many failed probes, or `LATE_PROBES` late ones, a rate has failed."""
LATE_PROBES = 4
ROUNDS = 3
"""How often the search rechecks the upper end of its bracket, and goes up again if it holds after all."""
STEPS_DOWN = 6
"""How often the search steps down from a rate whose confirmation failed. Each step is twice as long as the last."""


class Phase(StrEnum):
    """Why a rate is probed."""

    UP = "up"
    DOWN = "down"
    BISECT = "bisect"
    RECHECK = "recheck"
    CONFIRM = "confirm"
    CURVE = "curve"


class Shown(StrEnum):
    """What a probe has shown of its rate."""

    HELD = "held"
    FAILED = "failed"
    LATE = "late"
    """The load generator did not keep its schedule."""
    UNSAFE = "unsafe"
    """The checker found a violation: the search ends."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The rates of a search, per second. Only the curve may probe below `least`, and nothing probes above `most`."""

    start: float
    least: float
    most: float
    within: float
    """The search ends when the lowest rate that failed is at most this share above the highest that held."""
    shares: tuple[float, ...] = ()
    """The shares of the limit that are measured after the search."""

    def __post_init__(self) -> None:
        assert 0 < self.least <= self.start <= self.most, "the first rate lies within the bounds"
        assert self.within > 0, "a search must be allowed to end"


@dataclass(frozen=True, slots=True)
class Ask:
    """The next probe."""

    rate_per_s: float
    phase: Phase


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a search. Without a `limit_per_s` no rate was confirmed."""

    limit_per_s: float | None
    """The highest rate that was confirmed: the lower end of the interval."""
    high_per_s: float | None
    """The lowest rate above that failed: the upper end. None where no rate failed, or only below the limit."""
    unsafe: bool = False


Step = Ask | Ended
_Search = Generator[Ask, Shown, Ended]
_Bracket = tuple[float | None, float | None]


def next_step(bounds: Bounds, shown: Sequence[Shown]) -> Step:
    """What comes after probes that have `shown` this, in their order. Outcomes after the end are ignored."""
    search, left = _search(bounds), most_probes(bounds)
    try:
        step = next(search)
        for one in shown:
            if one is Shown.UNSAFE:
                return Ended(None, None, unsafe=True)
            left -= step.phase is not Phase.CURVE
            step = search.send(one)
            if left <= len(bounds.shares) and step.phase is not Phase.CURVE:
                return Ended(None, None)
    except StopIteration as end:
        ended: Ended = end.value
        return ended
    return step


def limit_of(bounds: Bounds, shown: Sequence[Shown]) -> Ended | None:
    """The result of the search for the limit, also while the shares of it are still measured; None before."""
    step = next_step(replace(bounds, shares=()), shown)
    return step if isinstance(step, Ended) else None


def most_probes(bounds: Bounds) -> int:
    """The most probes of a search within `bounds`: three times what it needs without a disturbance.

    A search that has not found a limit by then has none: its probes contradict each other.
    """
    needed = max(_rates(bounds.most / bounds.start), _rates(bounds.start / bounds.least)) + _bisections(bounds)
    return 3 * (needed + FAILURES + CONFIRMATIONS) + len(bounds.shares)


def usual_probes(bounds: Bounds, limit_per_s: float) -> int:
    """About how many probes a search takes that finds `limit_per_s`."""
    ratio = min(max(limit_per_s, bounds.least), bounds.most) / bounds.start
    # Of the rates of the bisection half fail, and a failed one is probed again.
    rates = _rates(max(ratio, 1 / ratio)) + 2 + math.ceil(1.5 * _bisections(bounds))
    return rates + FAILURES + CONFIRMATIONS + len(bounds.shares)


def _rates(ratio: float) -> int:
    """How many rates lead from one to `ratio` times as much."""
    return math.ceil(math.log(ratio) / math.log(GROWTH)) + 1


def _bisections(bounds: Bounds) -> int:
    return max(0, math.ceil(math.log2(math.log(GROWTH) / math.log1p(bounds.within))))


def _search(bounds: Bounds) -> _Search:
    low, high = yield from _bracketed(bounds)
    for _ in range(ROUNDS):
        low, high = yield from _bisected(bounds, low, high)
        if low is None or high is None or not (yield from _holds_after_all(high)):
            break
        low, high = yield from _climbed(high, bounds.most, 1 + bounds.within)
    if low is not None:
        low = yield from _confirmed(bounds, low)
    if low is None:
        return Ended(None, high)
    for share in bounds.shares:
        yield Ask(share * low, Phase.CURVE)
    return Ended(low, high)


def _bracketed(bounds: Bounds) -> Generator[Ask, Shown, _Bracket]:
    """The highest rate that held, and the lowest that failed above it; None where there is no such rate."""
    rate = bounds.start
    if (yield from _holds(rate, Phase.UP)):
        return (yield from _climbed(rate, bounds.most, GROWTH))
    while rate > bounds.least:
        failed, rate = rate, max(rate / GROWTH, bounds.least)
        if (yield from _holds(rate, Phase.DOWN)):
            return rate, failed
    return None, rate


def _climbed(held: float, most: float, step: float) -> Generator[Ask, Shown, _Bracket]:
    """The bracket that rates above `held` give. Small steps grow up to `GROWTH`."""
    while held < most:
        rate = min(held * step, most)
        if not (yield from _holds(rate, Phase.UP)):
            return held, rate
        held, step = rate, min(step**2, GROWTH)
    return held, None


def _bisected(bounds: Bounds, low: float | None, high: float | None) -> Generator[Ask, Shown, _Bracket]:
    """The bracket, narrowed until its ends are close enough."""
    while low is not None and high is not None and high > low * (1 + bounds.within):
        middle = math.sqrt(low * high)
        if (yield from _holds(middle, Phase.BISECT)):
            low = middle
        else:
            high = middle
    return low, high


def _holds_after_all(rate: float) -> Generator[Ask, Shown, bool]:
    """Whether the upper end of a bracket, which has failed, holds when it is probed again."""
    for _ in range(FAILURES):
        if (yield Ask(rate, Phase.RECHECK)) is Shown.HELD:
            return True
    return False


def _holds(rate: float, phase: Phase) -> Generator[Ask, Shown, bool]:
    """Whether a rate holds. A failed probe is repeated once, and a late one up to three times."""
    failures = late = 0
    while failures < FAILURES and late < LATE_PROBES:
        shown = yield Ask(rate, phase)
        if shown is Shown.HELD:
            return True
        late += shown is Shown.LATE
        failures += shown is Shown.FAILED
    return False


def _confirmed(bounds: Bounds, rate: float) -> Generator[Ask, Shown, float | None]:
    """The highest rate, from `rate` down, at which all confirmations hold; None where no rate is confirmed."""
    step = 1 + bounds.within
    for _ in range(1 + STEPS_DOWN):
        if (yield from _all_hold(rate)):
            return rate
        if rate <= bounds.least:
            return None
        rate, step = max(rate / step, bounds.least), step**2
    return None


def _all_hold(rate: float) -> Generator[Ask, Shown, bool]:
    """Whether all confirmations of a rate hold; only late ones are repeated."""
    for _ in range(CONFIRMATIONS):
        shown = Shown.LATE
        for _ in range(LATE_PROBES):
            shown = yield Ask(rate, Phase.CONFIRM)
            if shown is not Shown.LATE:
                break
        if shown is not Shown.HELD:
            return False
    return True
