"""What a comparison says, as data: for each load where every lock stands, beside whom, and by which figures.

Promises: a claim is about one load only, and holds in the figures that it carries. A ratio is never below 1 where
somebody is ahead: it says how many times better the figure of the first is. What is shown is written from these types
and compares nothing itself.
Does not do: deciding any of it; `ranking` and `choice` do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from pybench.matrix.conditions import AxisValue, Conditions


class Place(StrEnum):
    """Where a lock stands at one load."""

    AHEAD = "ahead"
    """First, and measurably better than every other ranked lock of the load."""
    TIED = "tied"
    """First, or statistically tied with the first."""
    BEHIND = "behind"
    """Measurably worse than the first."""
    ALONE = "alone"
    """The only lock that is ranked at the load."""
    OUT = "out"
    """Not ranked: `Standing.out` says why."""


class Out(StrEnum):
    """Why a lock is not ranked at a load."""

    UNSAFE = "unsafe"
    UNDECIDED = "undecided"
    VOID = "void"
    SHARED = "more may hold a key at a time"
    EXCLUDES_NOBODY = "nobody is kept out"
    NO_GRANTS = "nothing was granted"
    LATE = "the load generator was late"
    NOT_MEASURED = "not measured"


class Figure(StrEnum):
    """What decides, by its column in `summary.csv` or, of the last three, by what the catalogue says of a lock."""

    THROUGHPUT = "grants_per_s"
    REFUSALS = "refusals"
    """The share of the acquires that ended without a grant: refused, or out of time."""
    STARVATION = "starved_clients"
    FAIRNESS = "jain"
    RESPONSE = "acquire_p99_us"
    LONGEST_WAIT = "longest_wait_us"
    PROMISE = "promise"
    """How far exclusion is promised: 0 is not at all."""
    SERVERS = "servers"
    COMMANDS = "commands"
    """That an uncontended grant of one key sends."""

    @property
    def least_is_best(self) -> bool:
        """Whether the lower of two values is the better one."""
        return self not in {Figure.THROUGHPUT, Figure.FAIRNESS, Figure.PROMISE}


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times better one lock's figure is than another's, over the blocks in which both were measured."""

    value: float
    """The geometric mean over blocks."""
    low: float
    high: float
    confidence: float
    """That of the interval from `low` to `high`: 0.95, or higher where the run has many comparisons."""
    blocks: int


@dataclass(frozen=True, slots=True)
class LongerWait:
    """Beside which lock of its load the clients of another wait longer, measurably and by the most."""

    beside: str
    figure: Figure
    """The p99 response, or the longest wait where trials have too few grants for one."""
    value: float | None
    """Of the lock whose clients wait longer, in microseconds."""
    other: float | None
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one lock stands at one load."""

    lock: str
    """Its strategy with its arguments, and its backend where the run has that lock on several."""
    strategy: str
    cell: str | None
    """None where the lock was not measured at this load."""
    place: Place
    rank: int | None
    """Within the load, from 1; tied locks share a rank. None where the lock is out."""
    figure: Figure | None
    """The column that placed it: throughput in a closed loop; in an open one the p99 response, or the longest wait
    where trials have too few grants for a p99. None where it is out."""
    value: float | None
    """That figure of the lock: the median of its trials; of a longest wait that of all trials."""
    beside: str | None
    """The first lock of the load; of the first itself the next best."""
    other: float | None
    """The figure of the lock `beside`."""
    ratio: Ratio | None
    """How many times better this lock is than the one `beside`; of a lock that is behind, how many times better that
    one is. None where there is none beside, or too few trials to compare."""
    throughput: float | None = None
    """Safe grants/s, whatever placed the lock: the median of its trials."""
    out: Out | None = None
    holders: float | None = None
    """How many may hold one key at a time, where that is why the lock is out; infinite where nobody is kept out."""
    starved: int | None = None
    """How many clients were granted nothing in the worst trial, if more than by chance; 0 where each trial served all
    clients; None where neither is known."""
    unserved: int | None = None
    """How many clients had no grant in the worst trial, by chance or not."""
    gives_up: bool = False
    """Whether many of its acquires ended without a grant, so that those it served say little of the others."""
    waits_longer: LongerWait | None = None
    """None where no other lock of the load measurably lets its clients wait less."""
    shares_rank: bool = False
    """Whether another lock of the load has the same rank."""

    @property
    def mark(self) -> str:
        """The rank as tables show it: `1`, `=1` of several that share it; empty where the lock is out."""
        if self.rank is None:
            return ""
        return f"={self.rank}" if self.shares_rank else str(self.rank)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement about one load, whole in itself: `lock` is `kind` `beside`, by `figure`."""

    load: str
    kind: str
    """A `Place`, or `preferred`: the first locks tie, and this one is better in what comes next."""
    lock: str
    beside: tuple[str, ...]
    figure: Figure | None
    value: float | None
    other: float | None
    """Of the lock `beside`; of several, of the best of them."""
    ratio: Ratio | None
    reason: str | None = None
    """Of a lock that is out."""


@dataclass(frozen=True, slots=True)
class TieBreak:
    """How the tie between the first locks of a load is broken: `locks` are better in `figure` than all of `over`."""

    figure: Figure
    locks: tuple[str, ...]
    over: tuple[str, ...]
    value: float | None
    """The worst of `locks`."""
    other: float | None
    """The best of `over`."""
    ratio: Ratio | None
    """Between those two; None where the figure is a count or the catalogue's."""


@dataclass(frozen=True)
class LoadComparison:
    """One load: a point of the matrix, the lock left out."""

    text: str
    """The axes by which the loads of the run differ: `64 clients, 1,000 keys`; empty where the run has one load."""
    conditions: Conditions
    """Those axes with their values."""
    values: Conditions
    """All axes, with their values."""
    offered_per_s: float | None
    """Arrivals per second; None in a closed loop."""
    standings: tuple[Standing, ...]
    """Of every lock of the run, the first first, and what is out at the end."""
    tie_breaks: tuple[TieBreak, ...] = ()
    """In the order in which they were asked; none where one lock is ahead, or nothing breaks the tie."""
    best: tuple[str, ...] = ()
    """The locks to take, were this the only load; none where none is ranked."""

    @cached_property
    def ranked(self) -> tuple[Standing, ...]:
        """Those that are not out."""
        return tuple(standing for standing in self.standings if standing.place is not Place.OUT)

    @cached_property
    def first(self) -> tuple[Standing, ...]:
        """The lock that is ahead or alone, or those that tie for the first place."""
        return tuple(standing for standing in self.ranked if standing.rank == 1)

    @property
    def is_open(self) -> bool:
        """Whether arrivals come at a rate."""
        return self.offered_per_s is not None

    @property
    def is_contested(self) -> bool:
        """Whether at least two locks are ranked."""
        return len(self.ranked) > 1

    def of(self, lock: str) -> Standing:
        """Where `lock` stands."""
        return next(standing for standing in self.standings if standing.lock == lock)

    def claims(self) -> Iterator[Claim]:
        """All that is said of this load."""
        for one in self.standings:
            is_first = one is self.standings[0]
            beside = tuple(other.lock for other in (self.ranked if one.place is Place.AHEAD else self.first))
            beside = tuple(other for other in beside if other != one.lock) if is_first else beside[:1]
            if one.place in {Place.ALONE, Place.OUT}:
                beside = ()
            reason = one.out.value if one.out else None
            yield Claim(
                self.text, one.place.value, one.lock, beside, one.figure, one.value, one.other, one.ratio, reason
            )
        for by in self.tie_breaks:
            for lock in by.locks:
                yield Claim(self.text, "preferred", lock, by.over, by.figure, by.value, by.other, by.ratio)


class Basis(StrEnum):
    """What a choice of a lock stands on."""

    VOID = "void"
    NOTHING_MEASURED = "nothing measured"
    NONE_RANKED = "none ranked"
    ONLY_LOCK = "only lock"
    """The run has no other lock to compare it with."""
    ONLY_RANKED = "only ranked"
    """Every other lock of the run is out at every load."""
    ONLY_SAFE = "only safe"
    """Every other lock that is ranked at some load was unsafe at another."""
    NOT_CONTESTED = "not contested"
    """No two locks are ranked at one load."""
    DECIDED = "decided"
    """Each other lock was dropped at one of the steps."""
    DEPENDS = "depends"
    """Of the locks that are left each is behind another somewhere: the one chosen loses least where it loses most."""
    TIED = "tied"
    """Several are left, and nothing that was compared decides between them."""


@dataclass(frozen=True, slots=True)
class Step:
    """What dropped locks from the choice: each of `over` is worse than another at some load, and better at none."""

    figure: Figure | None
    """None stands for the figure that places the locks of each load."""
    over: tuple[str, ...]
    because: tuple[tuple[str, TieBreak], ...] = ()
    """For each of `over` where it is clearest: the load, and which of those that are left is better there. Of a tie."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The lock to take, over all loads of the run; several where nothing decides between them."""

    basis: Basis
    locks: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    """In their order."""


@dataclass(frozen=True)
class Comparison:
    """The locks of one run, load by load."""

    loads: tuple[LoadComparison, ...]
    locks: tuple[str, ...]
    """In the order of the summary."""
    labels: Mapping[str, str]
    """Cell -> its lock."""
    choice: Choice
    trials: int
    """The fewest complete trials of a ranked cell; 0 without one."""
    promises: Mapping[str, int]
    """How far each lock that is ranked somewhere promises exclusion: 0 is not at all."""

    @cached_property
    def _by_cell(self) -> dict[str, tuple[LoadComparison, Standing]]:
        return {one.cell: (load, one) for load in self.loads for one in load.standings if one.cell is not None}

    def standing(self, cell: str) -> Standing:
        """Where the cell with this id stands at its load."""
        return self._by_cell[cell][1]

    def load_of(self, cell: str) -> LoadComparison:
        """The load of the cell with this id."""
        return self._by_cell[cell][0]

    def claims(self) -> Iterator[Claim]:
        """All that is said of all loads."""
        for load in self.loads:
            yield from load.claims()

    def to_json(self) -> dict[str, Any]:
        """All of it as an object that JSON can say; what is not known or infinite is null."""
        loads = [
            {
                "load": load.text,
                "axes": dict(load.values),
                "offered_per_s": load.offered_per_s,
                "locks": [asdict(one) for one in load.standings],
                "tie_breaks": [asdict(one) for one in load.tie_breaks],
                "best": load.best,
            }
            for load in self.loads
        ]
        plain: dict[str, Any] = _plain({"choice": asdict(self.choice), "trials": self.trials, "loads": loads})
        return plain


def _plain(value: Any) -> Any:  # noqa: ANN401 - any part of a JSON object
    """`value` of types that JSON has."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def axis_value(value: Any) -> AxisValue:  # noqa: ANN401 - a field of a frame's row
    """The value of an axis as plain Python has it: None for NaN, and a number for numpy's."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if isinstance(value, int | float | str | bool) else None
