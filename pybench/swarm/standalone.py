"""A native swarm in one process: conductor and load together, without messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gevent
from gevent.lock import RLock

from pybench.errors import PybenchError
from pybench.swarm.announcing import announce, refuse
from pybench.swarm.conductor import Conductor
from pybench.swarm.load import Load, apart, origin
from pybench.swarm.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locust.env import Environment

from pybench.swarm.preparation import Preparation

HERE = "local"
"""The id of the one site."""


class Standalone:
    """The listeners of Locust's events in a process that is neither master nor worker."""

    def __init__(self, environment: Environment, command: Sequence[str]) -> None:
        self.environment = environment
        preparation = Preparation(lambda trial: apart(trial.run), binds=True, command=command)
        self.conductor = Conductor(preparation, origin(), apart)
        self.load = Load(environment, self._ended)
        self._finishing = RLock()

    def processes(self) -> int:
        """How many processes make load."""
        return 1

    def starts(self, **_: object) -> None:
        """A test starts."""
        assert self.environment.runner is not None, "a test starts in a runner"
        users = self.environment.runner.target_user_count
        try:
            settings = Settings.of(vars(self.environment.parsed_options))
            self.conductor.begin(settings, users=users, processes=1)
            assignment = self.conductor.admit(HERE, origin())
        except PybenchError as error:
            refuse(self.environment, error)
            self._give_up()
        assert assignment is not None, "a new test has no site yet"
        self.load.start(assignment)
        gevent.spawn(self._report_each_second, assignment.number)

    def stops(self, **_: object) -> None:
        """The test has stopped, or the process ends: judge it, once."""
        with self._finishing:
            self.load.stop(leaves=False)
            before = self.conductor.test is not None and self.conductor.test.outcome is not None
            outcome = None if before else self.conductor.finish()
        if outcome is not None:
            announce(self.environment, outcome)

    def quits(self, **_: object) -> None:
        """The process ends."""
        self.stops()
        self.conductor.close()

    def _ended(self, message: dict[str, Any]) -> None:
        self.conductor.ended(HERE, message)
        if message["part"] is None:
            self._stop_soon()

    def _report_each_second(self, number: int) -> None:
        test = self.conductor.test
        while test is not None and test is self.conductor.test and not test.ends:
            gevent.sleep(0.5)
            report = self.load.report()
            if report is not None and report["number"] == number:
                self.conductor.report(HERE, report)

    def _give_up(self) -> None:
        """End the start of a test that cannot be: without a traceback, as the reason was told."""
        self._stop_soon()
        raise gevent.GreenletExit

    def _stop_soon(self) -> None:
        runner, options = self.environment.runner, self.environment.parsed_options
        assert runner is not None, "a test has a runner"
        gevent.spawn(runner.quit if options is not None and options.headless else runner.stop)
