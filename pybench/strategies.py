"""Every strategy: what it does on the wire, what it promises, when it is the right one.

To add a strategy, add its entry to `CATALOGUE`. Parsing, the plan, the matrix's schema and `pybench strategies` read it
from there; the lock itself is in the core under the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from pybench.notation import (
    BadValue,
    format_number,
    parse_call,
    parse_choice,
    parse_count,
    parse_number,
    shown,
    suggestion,
)

Scalar = int | float | str | bool
Arguments = tuple[tuple[str, Scalar], ...]
"""Arguments off their defaults, sorted by name."""


class Exclusion(StrEnum):
    """How far a strategy promises that a lock has one holder at a time; records keep the text."""

    NOTHING = "nothing"
    WHILE_NOBODY_OUTLIVES = "while-nobody-outlives"
    """While no client crashes between its commands and none works past its lease."""
    ALWAYS = "always"
    """Of belief always, and of work as long as it ends inside the lease."""


class Lease(Enum):
    """What becomes of the matrix's `ttl`."""

    NONE = auto()
    MILLISECONDS = auto()
    WHOLE_SECONDS = auto()
    """Rounded up: the command that sets it takes seconds."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words."""

    words: tuple[str, ...]

    def parse(self, value: object) -> Scalar:
        """Raises BadValue naming the nearest."""
        return parse_choice(value, self.words)

    @property
    def text(self) -> str:
        """As the catalogue shows it."""
        return " / ".join(self.words)


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number in a range."""

    lowest: int
    highest: int

    def parse(self, value: object) -> Scalar:
        """Raises BadValue naming the nearest."""
        return parse_count(value, lowest=self.lowest, highest=self.highest)

    @property
    def text(self) -> str:
        """As the catalogue shows it."""
        return f"{self.lowest} to {self.highest}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a range."""

    lowest: float
    highest: float

    def parse(self, value: object) -> Scalar:
        """Raises BadValue naming the nearest."""
        return parse_number(value, lowest=self.lowest, highest=self.highest)

    @property
    def text(self) -> str:
        """As the catalogue shows it."""
        return f"{format_number(self.lowest)} to {format_number(self.highest)}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that a strategy takes."""

    name: str
    allowed: Choice | Count | Number
    default: Scalar
    meaning: str


@dataclass(frozen=True, slots=True)
class Strategy:
    """One entry of the catalogue; its texts are whole sentences for people."""

    name: str
    summary: str
    commands: tuple[str, ...]
    """What one uncontended grant sends, in order."""
    promise: str
    holds_under: str
    """The faults under which the promise holds, and those under which it does not."""
    when_to_use: str
    when_not: str
    exclusion: Exclusion
    lease: Lease
    extends_lease: bool = False
    """Whether a watchdog renews the lease while the lock is held."""
    parameters: tuple[Parameter, ...] = ()

    @property
    def commands_per_grant(self) -> int:
        """Commands that one uncontended grant sends, with default arguments."""
        return len(self.commands)

    def lease_ms(self, ttl_ms: int) -> int | None:
        """The lease that the server really gets for a `ttl` of the matrix; None when there is none."""
        match self.lease:
            case Lease.NONE:
                return None
            case Lease.MILLISECONDS:
                return ttl_ms
            case Lease.WHOLE_SECONDS:
                return -(-ttl_ms // 1_000) * 1_000


_ENTRIES = (
    Strategy(
        name="none",
        summary="No lock at all: everybody is granted at once.",
        commands=(),
        promise="Nothing. It is the control: a run whose checker does not catch it proves nothing.",
        holds_under="There is nothing to hold.",
        when_to_use="To see what the work costs without a lock, and that the checker sees what a lock prevents.",
        when_not="Wherever two holders at once do harm.",
        exclusion=Exclusion.NOTHING,
        lease=Lease.NONE,
    ),
    Strategy(
        name="naive",
        summary="SETNX, then EXPIRE; released by DEL without asking whose lock it is.",
        commands=("SETNX key 1", "EXPIRE key seconds", "DEL key"),
        promise="One holder at a time, but only while nobody crashes halfway and nobody outlives the lease.",
        holds_under=(
            "Honest clients and a server that keeps its data. A crash between SETNX and EXPIRE leaks the lock "
            "for ever; a holder who outlives its lease deletes the lock of the next one. The lease is rounded up to "
            "whole seconds."
        ),
        when_to_use="Never in new code; measure it to learn what replacing it costs and gains.",
        when_not="Wherever a process may be killed or paused: that is everywhere.",
        exclusion=Exclusion.WHILE_NOBODY_OUTLIVES,
        lease=Lease.WHOLE_SECONDS,
    ),
    Strategy(
        name="mutex",
        summary="SET NX PX with a random token; released by compare-and-delete.",
        commands=("SET key token NX PX ttl", "compare-and-delete key token"),
        promise="One holder at a time, and a dead holder's lock is free again within one ttl.",
        holds_under=(
            "Crashes and pauses of clients, lost connections and late answers. Not a server that loses its data (a "
            "restart without persistence, a failover), not clock jumps, not work that goes on past the lease."
        ),
        when_to_use="The default on one server: work that is shorter than the ttl, or that may be repeated.",
        when_not="Where work past the lease does harm: then the resource itself must refuse it (a fence).",
        exclusion=Exclusion.ALWAYS,
        lease=Lease.MILLISECONDS,
    ),
)

CATALOGUE: dict[str, Strategy] = {strategy.name: strategy for strategy in _ENTRIES}


def parse_strategy(value: object, catalogue: Mapping[str, Strategy] = CATALOGUE) -> tuple[str, Arguments]:
    """Read `mutex`, `redlock(nodes=5)` or `{redlock: {nodes: 5}}`: the name, and the arguments off their defaults.

    Raises BadValue for an unknown name or argument, naming the nearest known one, and for an argument out of range.
    """
    name, given = _taken_apart(value)
    if name not in catalogue:
        raise BadValue(f"there is no strategy {shown(name)}", hint=suggestion(name, catalogue))
    parameters = {parameter.name: parameter for parameter in catalogue[name].parameters}
    arguments: list[tuple[str, Scalar]] = []
    for key, raw in given.items():
        if key not in parameters:
            hint = suggestion(key, parameters) if parameters else "it takes none"
            raise BadValue(f"the strategy {name} has no argument {shown(key)}", hint=hint)
        try:
            argument = parameters[key].allowed.parse(raw)
        except BadValue as problem:
            raise BadValue(f"{name}'s {key}: {problem.message}", hint=problem.hint) from None
        if argument != parameters[key].default:
            arguments.append((key, argument))
    return name, tuple(sorted(arguments))


def arguments_text(arguments: Arguments) -> str:
    """The canonical text, `fanout=sequential, nodes=5`; empty for defaults."""
    return ", ".join(f"{name}={_scalar_text(value)}" for name, value in arguments)


def strategy_text(name: str, arguments: Arguments) -> str:
    """The canonical text of a strategy, `mutex` or `redlock(nodes=5)`."""
    return f"{name}({arguments_text(arguments)})" if arguments else name


def _taken_apart(value: object) -> tuple[str, dict[str, object]]:
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise BadValue("a strategy as a mapping has one key, its name", hint="say {mutex: {}} or mutex")
        ((name, given),) = value.items()
        if given is not None and not isinstance(given, Mapping):
            raise BadValue(f"the arguments of {name} are {shown(given)}", hint="say a mapping of names to values")
        return str(name), {str(key): raw for key, raw in (given or {}).items()}
    if not isinstance(value, str):
        raise BadValue(f"{shown(value)} is not a strategy", hint="say a name such as mutex")
    call = parse_call(value)
    if call.positional:
        raise BadValue(f"{shown(call.positional[0])} has no name in {shown(value)}", hint="say name=value")
    return call.name, dict(call.named)


def _scalar_text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return format_number(value) if isinstance(value, float) else str(value)
