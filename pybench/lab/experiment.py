"""An experiment as data: what it shows, with which locks, and which parameters it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pybench.matrix.durations import HOUR, MINUTE, MS, parse_duration, parse_lease
from pybench.notation import BadValue
from pybench.numbers import plural
from pybench.strategies import Choice, Count

if TYPE_CHECKING:
    from pybench.lab.findings import Case
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage

Value = int | str | bool
Values = Mapping[str, Any]
"""The value of each parameter by its name; its type follows from what the parameter allows."""

LEAST_LEASE_MS: Final = 3
"""A shorter lease is within its clock-skew margin of 2 ms and 1 %: no client would ever hold the lock."""
LONGEST_LEASE_MS: Final = HOUR // MS


@dataclass(frozen=True, slots=True)
class Time:
    """A length of time; its value is in nanoseconds."""

    longest_ns: int = MINUTE

    def parse(self, value: object) -> int:
        """Nanoseconds. Raises BadValue."""
        return parse_duration(value, longest_ns=self.longest_ns)


@dataclass(frozen=True, slots=True)
class Lease:
    """A ttl, in whole milliseconds, which a lock can be held with; its value is in nanoseconds."""

    def parse(self, value: object) -> int:
        """Nanoseconds. Raises BadValue."""
        lease_ms = parse_lease(value)
        if lease_ms < LEAST_LEASE_MS:
            raise BadValue(f'"{value}" is within the clock-skew margin of a lease', hint=f"at least {LEAST_LEASE_MS}ms")
        if lease_ms > LONGEST_LEASE_MS:
            raise BadValue(f'"{value}" is too long', hint="at most 1h")
        return lease_ms * MS


@dataclass(frozen=True, slots=True)
class Parameter:
    """One option of an experiment. `default` is written as a user writes it; a flag is False."""

    name: str
    """As the option without dashes: `work`, `break-after`."""
    allowed: Count | Choice | Time | Lease | None
    """None: a flag."""
    default: str | bool
    meaning: str
    """One sentence for `--help`."""

    @property
    def metavar(self) -> str:
        """What `--help` shows in place of the value."""
        if isinstance(self.allowed, Choice):
            return "|".join(self.allowed.words)
        return "TIME" if isinstance(self.allowed, Time | Lease) else "N"


@dataclass(frozen=True, slots=True)
class About:
    """A step about some cases alone: it is told only if one of them took part, and in `--help`."""

    word: str
    """In the labels of these cases."""
    text: str


class _Told(str):
    """The value of a parameter in a step: `{rounds}` is the value, `{rounds:round}` the number with its noun."""

    __slots__ = ()

    def __format__(self, noun: str) -> str:
        return plural(int(self), noun) if noun else str(self)


def any_lock(_lock: ChosenLock) -> str:
    """For `Experiment.unfit`: every lock has a meaning."""
    return ""


def any_values(_values: Values) -> None:
    """For `Experiment.require`: whatever its parameters allow can show something."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment of the lab."""

    name: str
    summary: str
    """What it shows, in at most 55 characters, without a full stop."""
    steps: tuple[str | About, ...]
    """What it does: two or three sentences. `{stock}` is replaced by the value of the parameter `stock`, and
    `{stock:piece}` by that number of pieces."""
    learn: str
    """The one sentence to remember."""
    run: Callable[[Stage], Iterable[Case]]
    """Yields each case when it is over. Raises ServerError, InputError."""
    parameters: tuple[Parameter, ...] = ()
    controls: tuple[str, ...] = ()
    """Locks that always take part, first: what they are known to do wrong has to be seen."""
    strategies: tuple[str, ...] = ()
    """The locks that take part unless `--strategy` names others; none and no `controls`: the locks are fixed."""
    unfit: Callable[[ChosenLock], str] = any_lock
    """Why a lock has no meaning in this experiment, as a clause; empty where it has one."""
    require: Callable[[Values], None] = any_values
    """Raises InputError for values under which what is known to be wrong could not go wrong."""
    beside_locks: tuple[str, ...] = ()
    """Names that `--strategy` takes here beside the locks of the catalogue, such as `atomic`."""
    modules: tuple[str, ...] = ()
    """Packages of Python that it needs beyond those of pybench itself."""
    extra: str = ""
    """The extra of pybench that has `modules`."""
    harms_servers: bool = False
    """Whether it harms servers, and so starts its own, whatever servers were given."""

    @property
    def takes_locks(self) -> bool:
        """Whether `--strategy` and `--all` choose its locks."""
        return bool(self.strategies or self.controls)

    def told(self, texts: Mapping[str, str | bool], labels: Iterable[str] | None = None) -> tuple[str, ...]:
        """The steps with these values of the parameters, as a user writes them; for cases of these `labels`, or all."""
        known = None if labels is None else list(labels)
        values = {name: _Told(value) for name, value in texts.items()}
        return tuple(
            (step if isinstance(step, str) else step.text).format(**values)
            for step in self.steps
            if known is None or isinstance(step, str) or any(step.word in label for label in known)
        )

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name."""
        return next(one for one in self.parameters if one.name == name)
