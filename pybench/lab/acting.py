"""The side of a process that plays a role in an experiment: `actors` starts it.

    def hold(line: Line, client: dict, name: str) -> None:
        line.say({"held": True})
        line.hear()

Promises: a role ends with the process that started it, whatever it is doing.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

FAILED = 1
PR_SET_PDEATHSIG = 1


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
    from pybench.errors import PybenchError

    # Also while this process is stopped: then it does not read the end of its input.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
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
