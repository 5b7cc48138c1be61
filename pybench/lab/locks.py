"""The locks of an experiment: which were chosen, which take part, and which are left out for what reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybench.errors import InputError, ServerError
from pybench.lab.findings import Expected, LeftOut
from pybench.notation import BadValue
from pybench.strategies import CATALOGUE, Arguments, Exclusion, Strategy, parse_strategy, strategy_text

if TYPE_CHECKING:
    from pybench.lab.experiment import Experiment
    from pybench.lab.stage import Stage


_REPEATS = "it keeps nobody out: it lets the work go on, and repeats it after a conflict"


@dataclass(frozen=True, slots=True)
class ChosenLock:
    """A lock of the catalogue with its arguments, or one of the names that an experiment adds."""

    name: str
    arguments: Arguments = ()
    is_control: bool = False
    is_beside: bool = False
    """Whether the experiment adds it: then it has no `entry`, whatever the catalogue has under its name."""

    @property
    def text(self) -> str:
        """As a matrix writes it."""
        return strategy_text(self.name, self.arguments)

    @property
    def entry(self) -> Strategy | None:
        """Of the catalogue."""
        return None if self.is_beside else CATALOGUE[self.name]

    @property
    def keeps_out(self) -> bool:
        """Whether it asks any server for a lock: `none` does not."""
        return self.entry is not None and bool(self.entry.server_kinds)

    def lease_ms(self, ttl_ns: int) -> int | None:
        """The lease that a server keeps for this ttl, which `naive` rounds up to seconds; None: it keeps none."""
        return None if self.entry is None else self.entry.lease_ms(ttl_ns // 1_000_000)

    @property
    def is_of_programs(self) -> bool:
        """Whether a lock client can take it."""
        from pybench.lock_client.servers import MEASURED

        return self.name in MEASURED

    @property
    def excludes(self) -> Expected:
        """What is expected of the lock as long as no client dies and none works past its lease."""
        entry = self.entry
        if entry is None:
            return Expected.RIGHT
        if not self.keeps_out:
            return Expected.WRONG
        exclusion = entry.with_arguments(self.arguments).exclusion
        is_promised = exclusion is not Exclusion.NOTHING and entry.permits(self.arguments) == 1
        return Expected.RIGHT if is_promised else Expected.EITHER


def parsed(text: str, experiment: Experiment) -> ChosenLock:
    """The lock of a text such as `redlock(nodes=3)`. Raises InputError."""
    if text in experiment.beside_locks:
        return ChosenLock(text, is_beside=True)
    try:
        name, arguments = parse_strategy(text)
    except BadValue as problem:
        raise InputError(f"--strategy: {problem.message}", hint=problem.hint) from None
    return ChosenLock(name, arguments)


def chosen(experiment: Experiment, asked: Sequence[str], *, every: bool) -> list[ChosenLock]:
    """The locks that a user asked for, behind the controls. Raises InputError."""
    if (asked or every) and not experiment.takes_locks:
        raise InputError(f"the locks of {experiment.name} are fixed", hint="leave out --strategy and --all")
    if asked and every:
        raise InputError("--all takes every lock, and --strategy names some", hint="leave out one of them")
    # A name that is in both is that of the experiment.
    names = list(dict.fromkeys([*experiment.beside_locks, *CATALOGUE]))
    others = names if every else list(asked or experiment.strategies)
    controls = [parsed(text, experiment) for text in experiment.controls]
    found = {lock.text: ChosenLock(lock.name, lock.arguments, is_control=True) for lock in controls}
    for text in others:
        lock = parsed(text, experiment)
        found.setdefault(lock.text, lock)
    return list(found.values())


def taking_part(
    experiment: Experiment, locks: Iterable[ChosenLock], stage: Stage, *, named: bool
) -> tuple[list[ChosenLock], list[LeftOut]]:
    """Those that take part, and those that are left out.

    Raises InputError, ServerError for a control that cannot take part, and for any lock that the user `named`.
    """
    part: list[ChosenLock] = []
    out: list[LeftOut] = []
    for lock in locks:
        is_wanted = named or lock.is_control
        try:
            reason = next(_reasons(experiment, lock, stage), "")
        except ServerError as error:
            # Such as a Postgres that is not installed: the other locks need none.
            if is_wanted:
                raise
            reason = error.message
        if reason and is_wanted:
            raise InputError(f"{lock.text} has no part in {experiment.name}: {reason}", hint="name another --strategy")
        if reason:
            out.append(LeftOut(lock.text, reason))
        else:
            part.append(lock)
    return part, out


def _reasons(experiment: Experiment, lock: ChosenLock, stage: Stage) -> Iterator[str]:
    if lock.entry is None:
        return
    if reason := experiment.unfit(lock):
        yield reason
    if experiment.harms_servers:
        return
    if reason := stage.shortage(lock):
        yield reason
    if lock.is_of_programs and (reason := stage.refusal(lock)):
        yield reason


def needs_client(lock: ChosenLock) -> str:
    """For `Experiment.unfit`, where locks are taken by a lock client."""
    if lock.is_of_programs:
        return ""
    return _REPEATS if lock.keeps_out else "it takes no lock"
