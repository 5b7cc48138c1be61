"""The side of a process that plays a role in an experiment: `actors` starts it.

    def hold(line: Line, client: dict, name: str) -> None:
        line.say({"held": True})
        line.hear()

Promises: a role ends with the process that started it, whatever it is doing.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

from pybench.running.trial_worker import end_with_parent

FAILED = 1


class Line:
    """The two ways between a role and the experiment that started it."""

    def __init__(self) -> None:
        self._told: SimpleQueue[dict[str, Any]] = SimpleQueue()
        # Whatever else is printed must not stand among the messages.
        self._out = os.dup(1)
        os.dup2(2, 1)
        threading.Thread(target=self._listen, name="pybench-line", daemon=True).start()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a message to the experiment."""
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._out, data) :]

    def hear(self) -> dict[str, Any]:
        """The next message of the experiment."""
        return self._told.get()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._told.put(json.loads(line))
        # The experiment is over: a lock that is held is removed with its keys.
        os._exit(0)


def main() -> int:
    """Play the role that the command line names, with the order on stdin."""
    end_with_parent(os.getppid())
    # After the line above, because loading takes a while.
    from pybench.errors import PybenchError

    module, _, name = sys.argv[1].partition(":")
    role = getattr(importlib.import_module(module), name)
    line = Line()
    try:
        role(line, **line.hear())
    except PybenchError as error:
        line.say({"failed": error.message, "hint": error.hint})
        return FAILED
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # The thread that waits for stdin must not keep the process.
    os._exit(code)
