"""What this machine and this process do while a trial runs: CPU time of the process, and time that a host took away."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pybench.running.processes import ProcessTrial
from pybench.servers import sampling
from pybench.servers.sampling import Sample

if TYPE_CHECKING:
    from pybench.running.trial_servers import Side

PROC_STAT: Final = Path("/proc/stat")

_STEAL = 8
"""The field of a line of CPU times with the time in which the host ran something else; the first is the name."""


class MachineSampler(sampling.Sampler):
    """Samples of this machine. `stat` is an argument so that tests do not depend on the machine.

    `others_ns` is the CPU time of the worker processes of the trial.
    """

    def __init__(self, stat: Path = PROC_STAT, others_ns: Callable[[], int] = lambda: 0) -> None:
        super().__init__()
        self._stat, self._others_ns = stat, others_ns

    def sample(self) -> Sample:
        """Take one."""
        stolen_us = steal_us(self._stat)
        cpu_ns = time.process_time_ns() + self._others_ns()
        counters = {"cpu_us": cpu_ns / 1e3} | ({} if stolen_us is None else {"steal_us": stolen_us})
        return Sample(time.monotonic_ns(), counters)


def steal_us(stat: Path = PROC_STAT) -> float | None:
    """The time so far, all cores together, in which the host ran something else; None where it is unknown."""
    try:
        with stat.open(encoding="ascii") as lines:
            words = lines.readline().split()
        return int(words[_STEAL]) * 1e6 / os.sysconf("SC_CLK_TCK") if words[0] == "cpu" else None
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def watched(sides: Sequence[Side], trial: object) -> Iterator[MachineSampler]:
    """Take samples of the servers of `trial`, and of this machine until the end of the block; none without a side."""
    sampler = MachineSampler(others_ns=trial.cpu_ns) if isinstance(trial, ProcessTrial) else MachineSampler()
    if not sides:
        yield sampler
        return
    for side in sides:
        side.watch()
    with sampler:
        yield sampler
