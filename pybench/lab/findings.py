"""What an experiment saw, and what that means.

A case is one lock, or one way to use it, under the experiment. `Expected` says what is known of it beforehand; only
`Case.seen` compares that with what happened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from pybench.exits import Exit, first


class Expected(StrEnum):
    """What is known of a case beforehand."""

    WRONG = "wrong"
    """It is a control, or a weakness that is documented: it has to go wrong, or the experiment proves nothing."""
    RIGHT = "right"
    """The lock promises it: if it goes wrong, a promise is broken."""
    EITHER = "either"
    """Nothing is promised, and nothing has to be seen."""


class Seen(StrEnum):
    """What a case means; the text is the word for people."""

    SHOWN = "wrong, as expected"
    HELD = "right"
    BROKEN = "BROKE ITS PROMISE"
    MISSED = "NOT CAUGHT"
    WENT_WRONG = "wrong, not promised"
    WENT_RIGHT = "right, not promised"


_SEEN = {
    (Expected.WRONG, True): Seen.SHOWN,
    (Expected.WRONG, False): Seen.MISSED,
    (Expected.RIGHT, True): Seen.BROKEN,
    (Expected.RIGHT, False): Seen.HELD,
    (Expected.EITHER, True): Seen.WENT_WRONG,
    (Expected.EITHER, False): Seen.WENT_RIGHT,
}
_EXITS = {Seen.BROKEN: Exit.PROMISE_BROKEN, Seen.MISSED: Exit.CONTROL_NOT_CAUGHT}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a case. The key says the unit: `_ms` milliseconds, `_share` a share; others are counts or texts."""

    key: str
    """As JSON has it."""
    label: str
    value: float | str | None
    """None: n/a."""


@dataclass(frozen=True, slots=True)
class ClientRow:
    """One client of a case, a row of the log. Without a stock, `stock_before` and `stock_after` are None."""

    process_id: int
    lock_acquired: bool
    success: bool
    duration_ms: float
    stock_before: int | None = None
    stock_after: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One lock, or one way to use it, and what was seen of it."""

    label: str
    """Short: it is the heading of a column."""
    expected: Expected
    went_wrong: bool
    sentence: str
    """What was seen, with its figures; without the label and the full stop."""
    figures: tuple[Figure, ...] = ()
    clients: tuple[ClientRow, ...] = ()
    strategy: str | None = None
    """The lock as a matrix writes it; None where the case is about none of the catalogue."""

    @property
    def seen(self) -> Seen:
        """What it means."""
        return _SEEN[self.expected, self.went_wrong]


TRIES = 3


def insisted(once: Callable[[], Case]) -> Case:
    """What `once` returns; where a lock would be blamed, the last of three tries.

    For experiments with short leases: a machine that stalls ends a lease that nobody had time to renew. A lock that is
    broken goes wrong each time.
    """
    for _ in range(TRIES):
        case = once()
        if case.seen is not Seen.BROKEN:
            break
    return case


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A lock that took no part."""

    strategy: str
    reason: str
    """A clause."""


@dataclass(frozen=True, slots=True)
class NotRun:
    """An experiment of several that has no findings."""

    name: str
    how: str
    """`skipped`: a tool is missing. `failed`: a server did."""
    reason: str


@dataclass(frozen=True, slots=True)
class Findings:
    """All that an experiment saw."""

    name: str
    summary: str
    steps: tuple[str, ...]
    learn: str
    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...]
    seconds: float
    settings: dict[str, str] = field(default_factory=dict)
    """The values of its parameters, as a user writes them."""
    servers: tuple[str, ...] = ()
    """The servers that took part, without credentials."""

    @property
    def exit(self) -> Exit:
        """0 when everything was as expected."""
        return first({_EXITS.get(case.seen, Exit.OK) for case in self.cases})

    @property
    def is_void(self) -> bool:
        """Whether something known to be wrong was not seen: then what was seen right proves nothing."""
        return any(case.seen is Seen.MISSED for case in self.cases)
