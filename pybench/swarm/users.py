"""The user class of native swarms, and what it needs of Locust: options, and listeners for its events."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from locust import User, constant, events, task
from locust.runners import MasterRunner, WorkerRunner

from pybench.swarm.options import add_options

if TYPE_CHECKING:
    from locust.env import Environment

A_LONG_TIME_S = 1e6

_of_process: list[Any] = []
"""What drives the swarm of this process: a `Standalone`, `Master` or `Worker`. Never made before a fork."""


class NativeLocks(User):
    """A user that stands for some native clients of a lock.

    The clients are the core's: each acquires, holds, releases and begins again. The user itself only sleeps.
    """

    abstract = True
    host = "native locks"
    """What the page shows as the host; the servers are options of their own."""
    wait_time = constant(A_LONG_TIME_S)

    def on_start(self) -> None:
        """The clients of this user begin."""
        for role in _of_process:
            role.load.join(id(self))

    def on_stop(self) -> None:
        """The clients of this user finish what they do."""
        for role in _of_process:
            role.load.part(id(self))

    @task
    def rest(self) -> None:
        """Nothing: a user that waits between two tasks can be stopped at once."""


def _on_init(environment: Environment, **_: object) -> None:
    if not any(issubclass(user, NativeLocks) for user in environment.user_classes):
        return
    role = _role(environment)
    _of_process[:] = [role]
    environment.events.test_start.add_listener(role.starts)
    environment.events.test_stop.add_listener(role.stops)
    environment.events.quitting.add_listener(role.quits)


def _role(environment: Environment) -> Any:  # noqa: ANN401
    """What drives the swarm of this process. Imported here, after the fork of `--processes`."""
    command = ["locust", *sys.argv[1:]]
    if isinstance(environment.runner, WorkerRunner):
        from pybench.swarm.worker import Worker

        return Worker(environment)
    if isinstance(environment.runner, MasterRunner):
        from pybench.swarm.master import Master

        return Master(environment, command)
    from pybench.swarm.standalone import Standalone

    return Standalone(environment, command)


events.init_command_line_parser.add_listener(add_options)
events.init.add_listener(_on_init)
