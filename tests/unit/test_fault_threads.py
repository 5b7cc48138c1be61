"""The threads that carry out the faults of servers: whatever fails in them is told, and nothing is left ill unseen."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from pybench.errors import ServerError
from pybench.matrix import expand, matrix_from_options
from pybench.running import faults
from pybench.running.watch import Progress
from pybench.servers import harm


class Sick(harm.Harm):
    """Fails as a process does when the disk is full or the process is gone."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.ended = self.settled = False

    def begin(self) -> None:
        if self.at == "begin":
            raise ProcessLookupError(errno.ESRCH, "No such process")

    def end(self) -> None:
        self.ended = True
        if self.at == "end":
            raise OSError(errno.ENOSPC, "No space left on device")

    def settle(self) -> None:
        self.settled = self.ended


class Open:
    """A trial whose window has just opened."""

    def progress(self) -> Progress:
        return Progress(phase="measuring", elapsed_ns=0)


def threads_with(sick: Sick, monkeypatch: pytest.MonkeyPatch) -> faults.FaultThreads:
    def the_sick(*_: object) -> harm.Harm:
        return sick

    monkeypatch.setattr(faults, "_harm", the_sick)
    matrix = matrix_from_options(strategy="mutex", faults="pause redis[0] at 1ms for 1ms")
    (cell,) = expand(matrix)
    side: Any = None
    pool: Any = None
    found = faults.FaultThreads(cell, matrix, [side], pool)
    found.start(Open())
    # The fault begins before the trial is over, which ends faults that did not begin.
    found._tasks[0].thread.join(10)
    return found


def test_a_fault_that_does_not_begin_is_recorded_and_its_server_made_healthy(monkeypatch):
    sick = Sick("begin")
    (carried,) = threads_with(sick, monkeypatch).stop()
    assert carried.error is not None
    assert "No such process" in carried.error
    assert sick.ended
    assert sick.settled


def test_a_server_that_does_not_get_healthy_again_is_told(monkeypatch):
    threads = threads_with(Sick("end"), monkeypatch)
    with pytest.raises(ServerError, match="No space left on device"):
        threads.stop()
