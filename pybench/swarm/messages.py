"""The names of the messages between Locust's master and its workers."""

from __future__ import annotations

HELLO = "pybench-hello"
"""Worker: where it runs. It can be assigned a trial from now on. Master: asks for that once more."""
ASSIGN = "pybench-assign"
"""Master: the trial that the worker drives, from now on."""
STOP = "pybench-stop"
"""Master: the trial is to end."""
END = "pybench-end"
"""Worker: its trial has ended; everything that it counted, or the error."""
PING = "pybench-ping"
PONG = "pybench-pong"
"""The clocks of both; see `clocks`."""
REPORT = "pybench"
"""The key of our part in the reports that Locust's workers send."""
