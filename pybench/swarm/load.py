"""The load of this process, with Locust's statistics: the driver, drained once a second by a greenlet.

Promises: what is drained is in Locust's statistics and in a report to the conductor, each exactly once.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent
from gevent.lock import RLock

from pybench import _core
from pybench.swarm import statistics
from pybench.swarm.driver import Assignment, Driver, Ended
from pybench.swarm.site import Origin
from pybench.swarm.tally import Tally

if TYPE_CHECKING:
    from locust.env import Environment

logger = logging.getLogger(__name__)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def apart(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    """Call `call` on a thread of gevent's pool, while the greenlets of this thread go on."""
    return gevent.get_hub().threadpool.apply(call)


def origin() -> Origin:
    """Where this process runs."""
    try:
        boot = BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        boot = socket.gethostname()
    return Origin(socket.gethostname(), os.getpid(), boot)


class Load:
    """The native clients of this process."""

    def __init__(self, environment: Environment, on_end: Callable[[dict[str, Any]], None]) -> None:
        """`on_end` is called with the message about the end of each trial."""
        self._environment = environment
        self._on_end = on_end
        self._driver = Driver(apart)
        self._users: set[int] = set()
        self._pending = Tally()
        self._missed: list[str] = []
        self._drains = RLock()
        """Held while a trial starts, is drained, or ends."""
        self._trials = 0

    @property
    def is_running(self) -> bool:
        """Whether a trial runs that has not been stopped."""
        return self._driver.is_running

    def join(self, user: int) -> None:
        """A user has started."""
        self._users.add(user)
        self._driver.follow(len(self._users))

    def part(self, user: int) -> None:
        """A user has stopped."""
        self._users.discard(user)
        self._driver.follow(len(self._users))

    def start(self, assignment: Assignment) -> None:
        """Start the trial of `assignment`, and drain it once a second. A trial that cannot start ends at once."""
        with self._drains:
            self.stop(leaves=False)
            self._pending, self._missed = Tally(), []
            try:
                planted = self._driver.start(assignment)
            except (ValueError, RuntimeError) as error:
                self._on_end(_end(assignment.number, Ended(Tally(), None, error), leaves=False))
                return
            self._missed = [kind for kind, caught in planted if not caught]
            self._trials += 1
            gevent.spawn(self._drain_each_second, self._trials)

    def report(self) -> dict[str, Any] | None:
        """What was counted since the last report; None where no trial runs."""
        driver, assignment = self._driver, self._driver.assignment
        if not driver.is_running or assignment is None:
            return None
        pending, self._pending = self._pending, Tally()
        return {
            "number": assignment.number,
            "tally": pending.message(),
            "users": len(self._users),
            "clients": driver.clients,
            "wanted": driver.wanted,
            "most_clients": driver.most_clients,
            "began_ns": driver.began_ns,
            "missed_plants": self._missed,
        }

    def stop(self, *, leaves: bool) -> None:
        """End the trial, if one runs, and tell its end. `leaves` says that this process ends before the test."""
        # Never in the middle of a drain, whose counts would be lost.
        with self._drains:
            if not self._driver.is_running:
                return
            ended = self._driver.stop()
            statistics.merge(self._environment.stats, ended.rest)
            assert self._driver.assignment is not None, "a trial was assigned"
            number = self._driver.assignment.number
        self._on_end(_end(number, ended, leaves=leaves))

    def _drain_each_second(self, trial: int) -> None:
        while True:
            # Just after a full second, so that each of Locust's seconds gets one drain.
            gevent.sleep(1.0 - time.time() % 1.0 + 0.005)
            with self._drains:
                if trial != self._trials or not self._driver.is_running:
                    return
                tally = self._driver.drain()
                if tally is not None:
                    statistics.merge(self._environment.stats, tally)
                    self._pending.add(tally)
            if tally is None:
                self.stop(leaves=False)
                return


def _end(number: int, ended: Ended, *, leaves: bool) -> dict[str, Any]:
    """The message about the end of a trial."""
    error = ended.error
    return {
        "number": number,
        "part": None if ended.part is None else ended.part.encode(),
        "error": None if error is None else str(error),
        "refusal": list(error.refusal) if isinstance(error, _core.ConnectError) and error.refusal else None,
        "leaves": leaves,
    }
