"""The result of a comparison as data: where every lock stands at each load, beside which lock, and by which figures.

Promises: a claim is about one load only, and follows from the figures that it carries. Where a lock is ahead, the ratio
is at least 1: it says how many times better the figure of the first lock is. Reports are written from these types.
Does not do: comparing; `ranking` and `choice` do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from pybench.analysis.significance import Ratio
from pybench.matrix.conditions import AxisValue, Conditions


class Place(StrEnum):
    """Where a lock stands at one load."""

    AHEAD = "ahead"
    """First, and measurably better than every other ranked lock of the load."""
    TIED = "tied"
    """Statistically tied with another lock for the first place."""
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
    SHARED = "several clients may hold a key at once"
    EXCLUDES_NOBODY = "the lock keeps no client out"
    NO_GRANTS = "the lock got no grant"
    NO_TRIAL = "no complete trial"
    """The run ended early."""
    LATE = "the load generator was late"
    NO_LIMIT = "its search found no limit"
    NOT_MEASURED = "not measured"


class Figure(StrEnum):
    """A figure that may decide: a column of `summary.csv`, or for the last three a property from the catalogue."""

    THROUGHPUT = "grants_per_s"
    LIMIT = "limit_per_s"
    """The highest rate that the lock sustained, where a search set the rate."""
    REFUSALS = "refusals"
    """The share of the acquires that were refused or timed out."""
    STARVATION = "starved_clients"
    FAIRNESS = "jain"
    RESPONSE = "acquire_p99_us"
    LONGEST_WAIT = "longest_wait_us"
    PROMISE = "promise"
    """How far exclusion is promised, as a level; 0 means that the lock promises none."""
    SERVERS = "servers"
    COMMANDS = "commands"
    """The number of commands that an uncontended grant of one key sends."""

    @property
    def least_is_best(self) -> bool:
        """Whether the lower of two values is the better one."""
        return self not in {Figure.THROUGHPUT, Figure.LIMIT, Figure.FAIRNESS, Figure.PROMISE}


@dataclass(frozen=True, slots=True)
class LongerWait:
    """A measurably longer wait: the lock of the load with the greatest lead in waiting, and both figures."""

    beside: str
    """The lock whose clients wait less."""
    figure: Figure
    """The p99 response, or the longest wait where trials have too few grants for one."""
    value: float | None
    """The figure of the lock whose clients wait longer, in microseconds."""
    other: float | None
    """The figure of the lock `beside`, in microseconds."""
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one lock stands at one load."""

    lock: str
    """The strategy with its arguments, and the backend where the run has the lock on several backends."""
    strategy: str
    cell: str | None
    """None where the lock was not measured at this load."""
    place: Place
    rank: int | None
    """The rank within the load, from 1; tied locks share a rank. None where the lock is not ranked."""
    figure: Figure | None
    """The figure that placed the lock: throughput in a closed loop; in an open loop the p99 response, or the longest
    wait where trials have too few grants for a p99; the limit where a search set the rate. None where the lock is not
    ranked."""
    value: float | None
    """The value of `figure`: the median over the trials of the lock, or the longest wait of all its trials."""
    beside: str | None
    """The lock compared with: the first lock of the load, or for the first lock the next best."""
    other: float | None
    """The figure of the lock `beside`."""
    ratio: Ratio | None
    """How many times better this lock is than the lock `beside`; for a lock that is behind, how many times worse.
    None where the load has no other ranked lock, or too few trials to compare."""
    throughput: float | None = None
    """Safe grants/s, the median over the trials of the lock, whichever figure placed it."""
    out: Out | None = None
    """Why the lock is not ranked; None where it is ranked."""
    holders: float | None = None
    """How many clients may hold one key at once, where this is why the lock is not ranked; infinite without limit."""
    starved: int | None = None
    """How many clients starved in the worst trial, beyond chance; 0 where each trial served all clients; None where
    chance explains the number, or it is not known."""
    unserved: int | None = None
    """How many clients had no grant in the worst trial, including by chance."""
    gives_up: bool = False
    """Whether so many acquires ended without a grant that the waits of the granted ones do not describe the lock."""
    waits_longer: LongerWait | None = None
    """None where no other lock of the load has a measurably shorter wait."""
    shares_rank: bool = False
    """Whether another lock of the load has the same rank."""

    @property
    def mark(self) -> str:
        """The rank as tables show it: `1`, or `=1` where locks share it; empty where the lock is not ranked."""
        if self.rank is None:
            return ""
        return f"={self.rank}" if self.shares_rank else str(self.rank)


@dataclass(frozen=True, slots=True)
class Claim:
    """One self-contained statement about one load: `lock` is `kind` `beside`, by `figure`."""

    load: str
    kind: str
    """A `Place`, or `preferred`: the first locks tie, and `lock` is better in the figure that breaks the tie."""
    lock: str
    beside: tuple[str, ...]
    figure: Figure | None
    value: float | None
    other: float | None
    """The figure of the lock `beside`; of several, the best of their figures."""
    ratio: Ratio | None
    reason: str | None = None
    """Why the lock is not ranked; None for other kinds."""


@dataclass(frozen=True, slots=True)
class TieBreak:
    """How the tie between the first locks of a load is broken: `locks` are better in `figure` than all of `over`."""

    figure: Figure
    locks: tuple[str, ...]
    over: tuple[str, ...]
    value: float | None
    """The worst figure of `locks`."""
    other: float | None
    """The best figure of `over`."""
    ratio: Ratio | None
    """The ratio of `value` and `other`; None where the figure is a count or comes from the catalogue."""


@dataclass(frozen=True)
class LoadComparison:
    """The comparison at one load, which is a combination of all axes except the lock."""

    text: str
    """The axes by which the loads of the run differ: `64 clients, 1,000 keys`; empty where the run has one load."""
    conditions: Conditions
    """The axes of `text` with their values."""
    values: Conditions
    """All axes, with their values."""
    offered_per_s: float | None
    """Arrivals per second; None in a closed loop."""
    standings: tuple[Standing, ...]
    """The standing of every lock of the run: in order of rank, with the locks that are not ranked at the end."""
    tie_breaks: tuple[TieBreak, ...] = ()
    """The tie breaks in the order of their figures; none where one lock is ahead, or nothing breaks the tie."""
    best: tuple[str, ...] = ()
    """The locks to take if this were the only load; none where no lock is ranked."""

    @cached_property
    def ranked(self) -> tuple[Standing, ...]:
        """The standings of the ranked locks."""
        return tuple(standing for standing in self.standings if standing.place is not Place.OUT)

    @cached_property
    def first(self) -> tuple[Standing, ...]:
        """The standing of the lock that is ahead or alone, or of the locks that tie for the first place."""
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
        """The standing of `lock`."""
        return next(standing for standing in self.standings if standing.lock == lock)

    def claims(self) -> Iterator[Claim]:
        """All claims about this load."""
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
    """Why a lock was chosen, or why none was."""

    VOID = "void"
    NOTHING_MEASURED = "nothing measured"
    NONE_RANKED = "none ranked"
    ONLY_LOCK = "only lock"
    """The run has no other lock to compare it with."""
    ONLY_RANKED = "only ranked"
    """No other lock of the run is ranked at any load."""
    ONLY_SAFE = "only safe"
    """Every other lock that is ranked at some load was unsafe at another."""
    NOT_CONTESTED = "not contested"
    """No two locks are ranked at one load; or the only candidate was measured at no load of another lock."""
    DECIDED = "decided"
    """Each other lock was dropped at one of the steps."""
    DEPENDS = "depends"
    """Each remaining lock is behind another at some load. The chosen lock has the smallest worst loss."""
    TIED = "tied"
    """Several locks remain, and no figure decides between them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the choice: each lock of `over` is worse than another at some load, and better at none."""

    figure: Figure | None
    """The figure that decided; None for the figure that places the locks at each load."""
    over: tuple[str, ...]
    because: tuple[tuple[str, TieBreak], ...] = ()
    """The clearest tie break against each lock of `over`, with its load; empty where `figure` is None."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The lock to take, over all loads of the run; several where nothing decides between them."""

    basis: Basis
    locks: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    """The steps in the order in which they were taken."""


@dataclass(frozen=True)
class Comparison:
    """The locks of one run, load by load."""

    loads: tuple[LoadComparison, ...]
    locks: tuple[str, ...]
    """All locks, in the order of the summary."""
    labels: Mapping[str, str]
    """Cell -> the name of its lock."""
    choice: Choice
    trials: int
    """The fewest complete trials of a ranked cell; 0 without a ranked cell."""
    promises: Mapping[str, int]
    """Lock -> how far it promises exclusion, as a level, for each lock that is ranked at some load; 0 is none."""

    @cached_property
    def _by_cell(self) -> dict[str, tuple[LoadComparison, Standing]]:
        return {one.cell: (load, one) for load in self.loads for one in load.standings if one.cell is not None}

    def standing(self, cell: str) -> Standing:
        """The standing of the cell with this id at its load."""
        return self._by_cell[cell][1]

    def load_of(self, cell: str) -> LoadComparison:
        """The comparison at the load of the cell with this id."""
        return self._by_cell[cell][0]

    def claims(self) -> Iterator[Claim]:
        """All claims about all loads."""
        for load in self.loads:
            yield from load.claims()

    def to_json(self) -> dict[str, Any]:
        """The comparison as a JSON object; unknown and infinite values are null."""
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
    """`value` converted to types of JSON."""
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
    """The value of an axis as a plain Python value: None for NaN, and Python numbers for those of numpy."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if isinstance(value, int | float | str | bool) else None
