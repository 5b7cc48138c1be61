"""One process that makes load in a test, as the conductor sees it: a worker of Locust, or the standalone process."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pybench.swarm.clocks import ClockOffset
from pybench.swarm.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybench.matrix.cells import Cell
    from pybench.records.parts import TrialPart
    from pybench.running.trial_servers import Side
    from pybench.swarm.driver import Assignment


class State(StrEnum):
    """The state of a site; records keep the text."""

    RUNNING = "running"
    FINISHED = "finished"
    """Its trial ended with the test."""
    LEFT = "left"
    """Its process ended before the test, and sent all that it had counted."""
    LOST = "lost"
    """It went silent: only what it had reported before is known."""
    FAILED = "failed"
    """Its trial could not run."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The process of a site."""

    host: str
    pid: int
    boot: str
    """The boot id of its kernel: processes with the same one run on the same machine."""

    def message(self) -> dict[str, Any]:
        """The origin in the types that Locust's messages carry."""
        return {"host": self.host, "pid": self.pid, "boot": self.boot}

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> Origin:
        """The origin of a `message`."""
        return cls(str(message["host"]), int(message["pid"]), str(message["boot"]))


@dataclass(slots=True)
class Site:
    """One process in one test."""

    name: str
    """Short, for people: `worker 2`."""
    id: str
    """Locust's id of the worker."""
    origin: Origin
    assignment: Assignment
    cell: Cell
    sides: Sequence[Side]
    joined_ns: int
    """When it was assigned, by our wall clock."""
    clock: ClockOffset = field(default_factory=ClockOffset)
    tally: Tally = field(default_factory=Tally)
    recent: Tally = field(default_factory=Tally)
    """What its latest report with counts brought."""
    state: State = State.RUNNING
    left_ns: int | None = None
    """When it left or was lost, by our wall clock."""
    reported_ns: int | None = None
    """When its latest report came."""
    began_ns: int | None = None
    """When its trial began, by its own wall clock."""
    users: int = 0
    clients: int = 0
    wanted: int = 0
    most_clients: int = 0
    part: TrialPart | None = None
    """The whole of its trial, once that has ended."""
    missed_plants: Sequence[str] = ()
    """Kinds of planted faults that its checker missed."""
    error: str | None = None
    """Why its trial could not run, or what else is wrong with it."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more is expected of it."""
        return self.state is not State.RUNNING

    def take(self, report: Mapping[str, Any], now_ns: int) -> None:
        """A report of a trial that runs."""
        tally = Tally.read(report["tally"])
        if tally.elapsed_ns:
            self.recent = tally
            self.tally.add(tally)
        self.users, self.clients, self.wanted = report["users"], report["clients"], report["wanted"]
        self.most_clients = max(self.most_clients, report["most_clients"])
        self.began_ns = report["began_ns"]
        self.missed_plants = tuple(report["missed_plants"])
        self.reported_ns = now_ns

    def end(self, state: State, now_ns: int) -> None:
        """Nothing more is expected of it; a state that was noted before stays."""
        if not self.is_over:
            self.state, self.left_ns = state, now_ns
            self.users = self.clients = self.wanted = 0

    def counts(self) -> TrialPart | None:
        """What is known of its trial: all of it, or what was reported; None where nothing was."""
        if self.part is not None:
            return self.part
        return self.tally.part() if self.tally.elapsed_ns else None

    def shift_ns(self, first_ns: int) -> int:
        """How long after `first_ns`, a reading of our wall clock, its trial began."""
        if self.began_ns is None:
            return max(self.joined_ns - first_ns, 0)
        return max(self.began_ns - (self.clock.offset_ns or 0) - first_ns, 0)
