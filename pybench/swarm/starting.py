"""The start of a test in the process that conducts it: standalone, or Locust's master.

In a headless run the checks are made before Locust counts the run time, and an error ends the process with its exit
code. From the web page, the form says what is wrong before anything starts.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gevent
from gevent.lock import RLock
from locust.runners import STATE_SPAWNING, STATE_STOPPED, STATE_STOPPING

from pybench.errors import PybenchError
from pybench.swarm.announcing import announce, refuse
from pybench.swarm.conductor import Conductor
from pybench.swarm.load import apart, origin
from pybench.swarm.preparation import Preparation
from pybench.swarm.settings import Settings

if TYPE_CHECKING:
    from locust.env import Environment

    from pybench.swarm.conductor import Test
    from pybench.swarm.recording import Outcome


class Starting(ABC):
    """What standalone and master have in common; `processes` says over how many processes users are spread."""

    def __init__(self, environment: Environment, command: Sequence[str], *, binds: bool) -> None:
        self.environment = environment
        preparation = Preparation(lambda trial: apart(trial.run), binds=binds, command=command)
        self.conductor = Conductor(preparation, origin(), apart)
        self.is_checking = False
        """Whether a test is about to begin: its servers, its checker and its lock are checked."""
        self.finishing = RLock()
        """Held while a test is judged."""
        if environment.web_ui is not None:
            from pybench.swarm.web import extend

            extend(environment.web_ui, self)
        if self.is_headless:
            self._make_ready()

    @property
    def is_headless(self) -> bool:
        """Whether the process has no web page."""
        return bool(self.options.get("headless"))

    @property
    def options(self) -> dict[str, Any]:
        """The options of Locust by name."""
        return vars(self.environment.parsed_options) if self.environment.parsed_options is not None else {}

    @abstractmethod
    def processes(self) -> int:
        """How many processes make load."""

    @abstractmethod
    def stops(self, **_: object) -> None:
        """The test has stopped, or the process ends: judge the test, once."""

    def quits(self, **_: object) -> None:
        """The process ends."""
        try:
            self.stops()
        finally:
            self.conductor.close()

    def refusal(self, form: dict[str, str]) -> PybenchError | None:
        """Why a test with the fields of this `form` cannot start; None where it can."""
        users = form.get("user_count", "")
        try:
            settings = Settings.of({**self.options, **form, "shared_keys": _is_ticked(form, self.options)})
            # The servers of a test that is being judged are needed until its end.
            with self.finishing:
                self.conductor.preparation.prepare(
                    settings, users=int(users) if users.isdecimal() else 1, processes=self.processes()
                )
        except PybenchError as error:
            return error
        return None

    def begin(self) -> Test:
        """Begin a test; where that cannot be, the reason is told, and the greenlet ends."""
        runner = self.environment.runner
        assert runner is not None, "a test starts in a runner"
        # The page goes back to its form when it sees a runner that is ready, and the checks take some seconds.
        runner.update_state(STATE_SPAWNING)
        self.is_checking = True
        try:
            settings = Settings.of(self.options)
            test = self.conductor.begin(settings, users=runner.target_user_count, processes=self.processes())
        except PybenchError as error:
            raise self.given_up(error) from None
        finally:
            self.is_checking = False
        # The checks took some seconds, in which nothing was measured.
        self.environment.stats.clear_all()
        return test

    def given_up(self, error: PybenchError) -> gevent.GreenletExit:
        """Tell why a test cannot go on, and stop it soon; returns what ends the greenlet that starts it, silently."""
        refuse(self.environment, error)
        self.stop_soon()
        return gevent.GreenletExit()

    def finish(self) -> Outcome | None:
        """Judge the test, and tell its outcome once; None where that was done before."""
        test = self.conductor.test
        if test is None or test.outcome is not None:
            return None
        outcome = self.conductor.finish()
        if outcome is not None:
            announce(self.environment, outcome)
        return outcome

    def await_outcome(self) -> None:
        """Wait while a test that has stopped is judged, so that the page's last look shows the verdict."""
        runner = self.environment.runner
        if runner is not None and runner.state in (STATE_STOPPED, STATE_STOPPING):
            with self.finishing:
                return

    def stop_soon(self) -> None:
        """Stop the test, or the process where it is headless, from another greenlet."""
        runner = self.environment.runner
        assert runner is not None, "a test has a runner"
        gevent.spawn(runner.quit if self.is_headless else runner.stop)

    def _make_ready(self) -> None:
        try:
            settings = Settings.of(self.options)
            self.conductor.make_ready(
                settings, users=int(self.options.get("num_users") or 1), processes=self.processes()
            )
        except PybenchError as error:
            refuse(self.environment, error)
            self.conductor.close()
            sys.exit(int(error.exit))


def _is_ticked(form: dict[str, str], options: dict[str, Any]) -> bool:
    text = form.get("shared_keys")
    return bool(options.get("shared_keys")) if text is None else text == "true"
