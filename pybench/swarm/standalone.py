"""A native swarm in one process: conductor and load together, without messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gevent

from pybench.errors import PybenchError
from pybench.swarm.load import Load, origin
from pybench.swarm.starting import Starting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locust.env import Environment

HERE = "local"
"""The id of the one site."""
REPORT_S = 0.5


class Standalone(Starting):
    """The listeners of Locust's events in a process that is neither master nor worker."""

    def __init__(self, environment: Environment, command: Sequence[str]) -> None:
        super().__init__(environment, command, binds=True)
        self.load = Load(environment, self._ended)

    def processes(self) -> int:
        """See `Starting`."""
        return 1

    def starts(self, **_: object) -> None:
        """A test starts."""
        test = self.begin()
        try:
            assignment = self.conductor.admit(HERE, origin())
        except PybenchError as error:
            raise self.given_up(error) from None
        assert assignment is not None, "a new test has no site yet"
        self.load.start(assignment)
        gevent.spawn(self._report, test.number)

    def stops(self, **_: object) -> None:
        """The test has stopped, or the process ends: judge it, once."""
        with self.finishing:
            self.load.stop(leaves=False)
            self.finish()

    def _ended(self, message: dict[str, Any]) -> None:
        self.conductor.ended(HERE, message)
        if message["part"] is None:
            self.stop_soon()

    def _report(self, number: int) -> None:
        """Hand what was drained to the conductor, until the trial ends."""
        while (report := self.load.report()) is not None and report["number"] == number:
            self.conductor.report(HERE, report)
            gevent.sleep(REPORT_S)
