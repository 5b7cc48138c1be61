"""A worker of a native swarm: it drives the trial that the master assigns, and reports what it counts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from locust.runners import WorkerRunner

from pybench.swarm import messages
from pybench.swarm.driver import Assignment
from pybench.swarm.load import Load, origin

if TYPE_CHECKING:
    from locust.env import Environment
    from locust.rpc import Message


class Worker:
    """The listeners of Locust's events in a worker."""

    def __init__(self, environment: Environment) -> None:
        assert isinstance(environment.runner, WorkerRunner), "a worker has a runner of its own"
        self.runner = environment.runner
        self.load = Load(environment, self._ended)
        for name, listener, concurrent in (
            # In greenlets of their own, so that the worker goes on to hear the master.
            (messages.ASSIGN, self._on_assign, True),
            (messages.HELLO, self._hello, False),
            (messages.STOP, self._on_stop, True),
            # At once: a delay would look like a slow network.
            (messages.PING, self._on_ping, False),
        ):
            self.runner.register_message(name, listener, concurrent=concurrent)
        environment.events.report_to_master.add_listener(self._on_report)
        self._hello()

    def starts(self, **_: object) -> None:
        """A test starts: the master has assigned its trial before, or assigns it soon."""

    def stops(self, **_: object) -> None:
        """The test has stopped."""
        self._stop(leaves=False)

    def quits(self, **_: object) -> None:
        """The process ends, perhaps in the middle of a test."""
        self._stop(leaves=True)

    def _stop(self, *, leaves: bool) -> None:
        """End the trial, and report at once: Locust's next report would come seconds later, or never."""
        if not self.load.is_running:
            return
        self.load.stop(leaves=leaves)
        data: dict[str, Any] = {}
        self.runner.environment.events.report_to_master.fire(client_id=self.runner.client_id, data=data)
        self.runner.send_message("stats", data)

    def _hello(self, **_: object) -> None:
        self.runner.send_message(messages.HELLO, origin().message())

    def _ended(self, message: dict[str, Any]) -> None:
        self.runner.send_message(messages.END, message)

    def _on_assign(self, msg: Message, **_: object) -> None:
        self.load.start(Assignment.read(msg.data))

    def _on_stop(self, **_: object) -> None:
        self._stop(leaves=False)

    def _on_ping(self, msg: Message, **_: object) -> None:
        self.runner.send_message(messages.PONG, {**msg.data, "theirs_ns": time.time_ns()})

    def _on_report(self, data: dict[str, Any], **_: object) -> None:
        report = self.load.report()
        if report is not None:
            data[messages.REPORT] = report
