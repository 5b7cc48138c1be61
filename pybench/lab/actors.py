"""Processes that play a role in an experiment, so that SIGKILL and SIGSTOP strike a real process.

    actor = stage.actor(hold_for_ever, {"client": spec, "name": name})
    actor.hear()          # what the role said, see `acting`
    actor.signal(signal.SIGKILL)

Promises: a message of a role that failed is raised here; nothing waits longer than the experiment has time.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from pybench.errors import ServerError
from pybench.running.child import Child, our_variables


class Actor(Child):
    """The side of the experiment."""

    def __init__(self, role: Callable[..., None], order: Mapping[str, Any], *, left_s: Callable[[], float]) -> None:
        """Start the process. `left_s` is asked how long a wait may take, in seconds; it raises when no time is left."""
        self._left_s = left_s
        self._is_killed = False
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        """What the role said, and None after the last line."""
        super().__init__(
            sys.executable,
            "pybench.lab.acting",
            arguments=[f"{role.__module__}:{role.__qualname__}"],
            variables=our_variables(),
            hear=self._lines.put,
            ended=lambda: self._lines.put(None),
            shows_errors=True,
        )
        self.tell(order)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message to the role; one that has ended hears nothing."""
        self.send(json.dumps(message))

    def hear(self) -> dict[str, Any]:
        """The next message of the role. Raises ServerError when it failed, ended, or said nothing in time."""
        line = self._next()
        if line is None:
            self._lines.put(None)
            raise ServerError(f"a process of the experiment ended with code {self.exit_code()}")
        said: dict[str, Any] = json.loads(line)
        if "failed" in said:
            raise ServerError(said["failed"], hint=said["hint"])
        return said

    def heard(self) -> dict[str, Any] | None:
        """The next message of the role, if there is one by now. Raises as `hear`; None for a role that was killed."""
        return None if self._is_killed or self._lines.empty() else self.hear()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; after SIGKILL, wait until the process is gone."""
        super().signal(number)
        if number is signal.SIGKILL:
            self._is_killed = True
            self.exit_code()

    def _next(self) -> str | None:
        while True:
            with suppress(Empty):
                return self._lines.get(timeout=self._left_s())
