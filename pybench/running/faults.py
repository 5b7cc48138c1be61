"""Carries out the faults of servers and processes of a trial at their times, and makes all servers healthy again.

Each fault has a thread of its own, which waits for its moment by the clock of the core: a fault that takes long delays
no other. The loop of the trial runs without the GIL, so these threads take nothing from it.

Promises: after `stop` every harmed server runs and replies, also where the trial ended early; otherwise a ServerError
is raised. What was done, and when, is recorded even where it failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pybench.errors import ServerError
from pybench.matrix.durations import S
from pybench.matrix.fault_kinds import Target
from pybench.planning.fault_rules import kinds_of_servers, place_of
from pybench.records.fault_rows import NEVER, Carried
from pybench.running.processes import KilledProcess, PausedProcess, ProcessTrial
from pybench.servers import Server, harm

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell
    from pybench.matrix.faults import Fault
    from pybench.running.guard_side import GuardSide
    from pybench.running.trial_servers import Side
    from pybench.running.watch import Running
    from pybench.servers import ServerPool

LOOK_S = 0.002
"""How often a trial is asked whether its window is open."""


@dataclass(slots=True)
class _Task:
    carried: Carried
    harm: harm.Harm
    trouble: ServerError | None = None
    """Why the server is not healthy again."""
    thread: threading.Thread = field(init=False)


class FaultThreads:
    """The faults of one trial of `cell` on `sides`, which are in the order in which its lock numbers its servers.

    The side of a guarded resource comes last.
    """

    def __init__(self, cell: Cell, matrix: Matrix, sides: Sequence[Side | GuardSide], pool: ServerPool) -> None:
        self._cell, self._matrix, self._sides, self._pool = cell, matrix, sides, pool
        self._over = threading.Event()
        self._looking = threading.Lock()
        self._opened_ns: int | None = None
        self._tasks: list[_Task] = []

    def start(self, trial: Running) -> None:
        """Begin to wait for the window of `trial`, which is about to run."""
        planned = [fault for fault in self._cell.faults.faults if not fault.kind.by_core]
        self._tasks = [_Task(Carried(fault), self._harm(fault, trial)) for fault in planned]
        for task in self._tasks:
            task.thread = threading.Thread(target=self._run, args=(task, trial), name="pybench-fault", daemon=True)
            task.thread.start()

    def stop(self) -> list[Carried]:
        """End all faults, wait for all servers and their replicas, and return what was done. Raises ServerError."""
        self._over.set()
        for task in self._tasks:
            task.thread.join()
        for task in self._tasks:
            if task.trouble is not None:
                raise task.trouble
        for task in self._tasks:
            task.harm.settle()
        return [task.carried for task in self._tasks]

    def _harm(self, fault: Fault, trial: Running) -> harm.Harm:
        if fault.on is Target.PROCESS:
            assert isinstance(trial, ProcessTrial), "the plan refuses faults of processes that a cell does not have"
            return KilledProcess(trial, fault.index) if fault.do == "kill" else PausedProcess(trial, fault.index)
        place = place_of(fault, kinds_of_servers(self._cell, self._matrix))
        assert place is not None, "the plan refuses faults of servers that a cell does not have"
        return _harm(fault, self._sides[place], self._pool)

    def _run(self, task: _Task, trial: Running) -> None:
        carried, fault = task.carried, task.carried.fault
        opened_ns = self._opening(trial)
        if opened_ns is None or self._waits(opened_ns + fault.at_ns):
            carried.error = NEVER
            return
        carried.from_ns = time.monotonic_ns()
        trouble = _trouble_of(task.harm.begin)
        carried.error = carried.error if trouble is None else trouble.message
        if fault.until_ns is None:
            self._over.wait()
        else:
            self._waits(opened_ns + fault.until_ns)
        task.trouble = _trouble_of(task.harm.end)
        carried.until_ns = time.monotonic_ns()

    def _opening(self, trial: Running) -> int | None:
        """When the window opened; None where the trial ended before. One thread looks, and the others wait for it."""
        with self._looking:
            while self._opened_ns is None and not self._over.is_set():
                progress = trial.progress()
                if progress.phase == "measuring":
                    self._opened_ns = time.monotonic_ns() - progress.elapsed_ns
                elif progress.phase in ("draining", "done"):
                    break
                else:
                    self._over.wait(LOOK_S)
            return self._opened_ns

    def _waits(self, until_ns: int) -> bool:
        """Wait until then; whether the trial was over before."""
        return self._over.wait(max(0.0, (until_ns - time.monotonic_ns()) / S))


def _trouble_of(act: Callable[[], None]) -> ServerError | None:
    """Why `act` failed. A thread that ended here would leave its server ill, and nobody would know."""
    try:
        act()
    except ServerError as error:
        return error
    except OSError as error:
        return ServerError(f"the fault of a server failed: {error}")
    return None


def _harm(fault: Fault, side: Side | GuardSide, pool: ServerPool) -> harm.Harm:
    server = side.server
    match fault.do:
        case "kill":
            return harm.Kill(pool, server)
        case "restart":
            return harm.Restart(pool, server, keeps_data=not fault.loses_data)
        case "failover" if isinstance(server, Server):
            return harm.Failover(pool, server, int(fault.argument("lag") or 0) / S)
        case "clock" if isinstance(server, Server):
            return harm.Clock(pool, server, int(fault.argument("by") or 0))
        case "pause" if isinstance(server, Server) and not server.started_by_us and fault.for_ns is not None:
            return harm.ClientPause(server, fault.for_ns / S)
        case "pause":
            return harm.Pause(pool, server)
        case "client-kill":
            return harm.ClientKill(server, side.client_names)
        case "slow" if isinstance(server, Server) and fault.for_ns is not None:
            return harm.Slow(server, fault.for_ns / S)
        case "script-flush" if isinstance(server, Server):
            return harm.ScriptFlush(server)
    raise AssertionError(f"the notation refuses {fault.text}")
