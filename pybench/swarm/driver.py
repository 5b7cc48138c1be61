"""The native load of one Locust process: one live trial, whose clients follow the number of users.

The core's threads make the load. Whatever waits for them runs through `apart`, so that an event loop goes on meanwhile.

Promises: the number of clients is never above what the trial has room for. Every count is handed out exactly once, by
`drain`; the last ones come with `stop`.
Does not do: choosing the trial, judging it, or talking to servers; see `conductor`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from pybench import _core
from pybench.records.parts import TrialPart, with_tuples
from pybench.swarm.tally import Tally

if TYPE_CHECKING:
    from pybench.core_specs import TrialSpec

T = TypeVar("T")
P = ParamSpec("P")

Apart = Callable[[Callable[[], Any]], Any]
"""Calls a function on another thread and returns its result, while the event loop goes on."""

FAILURES = (_core.ConnectError, OSError, RuntimeError)
"""What ends a trial before its time."""

STOPPED_WITHIN_S = 20.0
"""How long a stopped trial may take: its clients release what they hold, or wait for replies."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a process is to drive: the trial's specification for the core, and clients a user."""

    number: int
    """The number of the test, so that late messages of an earlier test are recognised."""
    spec: Mapping[str, Any]
    clients_per_user: int

    @property
    def most_clients(self) -> int:
        """How many clients the trial has room for."""
        return int(self.spec["concurrency"])

    def message(self) -> dict[str, Any]:
        """The assignment in the types that Locust's messages carry."""
        return {"number": self.number, "spec": dict(self.spec), "clients_per_user": self.clients_per_user}

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> Assignment:
        """The assignment of a `message`."""
        return cls(message["number"], message["spec"], message["clients_per_user"])


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a trial: the rest of its counts, and the whole; None where it failed, with the `error`."""

    rest: Tally
    part: TrialPart | None
    error: BaseException | None


class Driver:
    """The live trial of one process."""

    def __init__(self, apart: Apart) -> None:
        self._apart = apart
        self.assignment: Assignment | None = None
        self._trial: _core.Trial | None = None
        self._error: BaseException | None = None
        self._users = 0
        self._drained_ns = 0
        self.began_ns = 0
        """When the trial was started, by the wall clock."""
        self.clients = 0
        """How many clients work now."""
        self.wanted = 0
        """How many clients the users stand for; more than `clients` where the trial has no room for them."""
        self.most_clients = 0
        """The most clients that worked at a time."""

    @property
    def is_running(self) -> bool:
        """Whether a trial runs that has not been stopped."""
        return self._trial is not None

    def follow(self, users: int) -> None:
        """Let the clients of so many users work from now on."""
        self._users = users
        if self.assignment is None:
            return
        self.wanted = users * self.assignment.clients_per_user
        self.clients = min(self.wanted, self.assignment.most_clients)
        self.most_clients = max(self.most_clients, self.clients)
        if self._trial is not None:
            self._trial.set(concurrency=self.clients)

    def start(self, assignment: Assignment) -> list[tuple[str, bool]]:
        """Start the trial of `assignment` with the clients of the present users.

        Returns the faults planted in its checker, each with whether the checker found it. Raises RuntimeError after a
        fork, and ValueError for a specification that the core refuses.
        """
        trial = _core.Trial(cast("TrialSpec", with_tuples(assignment.spec)))
        planted = self._apart(trial.planted)
        self.assignment, self.most_clients = assignment, 0
        self.follow(self._users)
        trial.set(concurrency=self.clients)
        trial.start()
        self._trial, self._drained_ns, self.began_ns = trial, time.monotonic_ns(), time.time_ns()
        return list(planted)

    def drain(self) -> Tally | None:
        """What was counted since the last drain; None where the trial has ended by itself: then `stop` says why."""
        assert self._trial is not None, "a trial runs"
        trial = self._trial
        try:
            has_ended = self._apart(lambda: trial.wait(0))
        except FAILURES as error:
            self._error = error
            return None
        return None if has_ended else self._drained(trial)

    def stop(self) -> Ended:
        """End the trial, and take the rest of its counts."""
        assert self._trial is not None, "a trial runs"
        trial, self._trial = self._trial, None
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
            trial.stop()
            self._apart(lambda: trial.wait(STOPPED_WITHIN_S))
            rest, result = self._drained(trial), trial.result
        except FAILURES as failure:
            return Ended(Tally(), None, failure)
        if result is None:
            return Ended(rest, None, TimeoutError(f"the trial did not end within {STOPPED_WITHIN_S:.0f} s"))
        return Ended(rest, TrialPart.of(result, clients=max(self.most_clients, 1)), None)

    def _drained(self, trial: _core.Trial) -> Tally:
        drained = self._apart(trial.drain)
        now_ns = time.monotonic_ns()
        elapsed_ns, self._drained_ns = now_ns - self._drained_ns, now_ns
        return Tally.drained(drained, elapsed_ns)
