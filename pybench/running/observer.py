"""Running one trial on the servers of a pool, and removing its keys and tables. Saving the trial is not done here.

Promises: a trial has its own keys and table, which are removed whatever happens. A disturbance of the servers is
returned together with the figures.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from pybench import _core
from pybench.analysis import error_replies
from pybench.analysis.disturbances import DISTURBANCES, Trouble, disturbances, first_of
from pybench.errors import RecordError, ServerError
from pybench.planning import control
from pybench.planning.fault_rules import servers_that_end
from pybench.planning.needs import (
    CallConditions,
    Part,
    call_conditions_of,
    group_for,
    guard_part_of,
    largest,
    parts_of,
    servers_in,
)
from pybench.planning.network import added_ns
from pybench.planning.trial_spec import recording_files, recording_spec, trial_seed, trial_spec
from pybench.records.fault_rows import Carried, of_core
from pybench.running.aftermath import (
    all_is_released,
    cleared,
    ended,
    not_connected,
    refusal_of,
    refusals,
    step_of_clock,
    values_of,
)
from pybench.running.faults import FaultThreads
from pybench.running.guard_side import GuardSide, guard_side
from pybench.running.machine_sampler import watched
from pybench.running.processes import ProcessTrial
from pybench.running.trial_servers import DatabaseSpent, Side, Spent, sides_of
from pybench.running.watch import Slot

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from pybench.core_specs import TrialSpec
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell
    from pybench.planning.placement import Placement
    from pybench.running.interrupts import Interrupts
    from pybench.running.watch import Watch
    from pybench.servers import AnyServer, ServerPool
    from pybench.servers.sampling import Sample


@dataclass(frozen=True, slots=True)
class Baseline:
    """The fixed overhead of a grant: one idle call, and the client's own CPU time. None with too few samples."""

    round_trips_us: Sequence[float | None]
    """The time of one call to each given server, or to the first of the started ones, which are alike."""
    client_cpu_us: float | None

    def round_trip_us(self, servers: int) -> float | None:
        """The least time until a majority of the first `servers` has replied, in microseconds, without any `rtt`."""
        known = self.round_trips_us[:servers]
        if len(known) == 1:
            return known[0]
        nearest = sorted(trip for trip in known if trip is not None)
        return nearest[len(known) // 2] if len(nearest) > len(known) // 2 else None


RUN_ID_BYTES = 4
"""The length of the random id that keeps the keys of different runs apart."""

PARTING_S = 1.0
"""The time limit for removing keys from a server that has just failed."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one trial, with its times and the usage of its servers."""

    result: _core.TrialResult
    started_at: datetime
    wall_s: float
    spent: Sequence[Spent]
    """The usage of each server."""
    trouble: Trouble | None
    """A disturbance of the servers, which ends the run and makes the figures of the trial invalid."""
    left_over_keys: int | None
    """Locks that were left on a server although all were released; None where unknown."""
    machine: Sequence[Sample]
    """What this machine and process did while the trial ran; empty for a control, a baseline or a probe."""
    shares_core: bool | None
    """Whether a given server ran on the core of a load thread at the end; None where unknown."""
    faults: Sequence[Carried] = ()
    """What became of the faults of the plan."""
    guarded: NDArray[np.int64] | None = None
    """The final values of the guarded resources; None without a guard, and where they could not be read."""

    @property
    def database(self) -> DatabaseSpent | None:
        """The usage of the database, if the trial had one."""
        return next((one for one in self.spent if isinstance(one, DatabaseSpent)), None)

    @property
    def final_values(self) -> NDArray[Any] | None:
        """The final value of each key: of the guarded resource, or of the row that the lock itself has written."""
        if self.guarded is not None:
            return self.guarded
        return None if self.database is None else self.database.final_values


NewTrial = Callable[["TrialSpec"], _core.Trial]
"""Makes a trial of its specification, as `Trial` does. A gate makes trials that run in a process of their own."""

RunTrial = Callable[[_core.Trial], _core.TrialResult]
"""Runs a trial to its end, as `Trial.run` does. A program with an event loop runs it on another thread."""


def run_trial(trial: _core.Trial) -> _core.TrialResult:
    """Run `trial`, wherever its clients are, to its end."""
    return trial.run()


class Observer:
    """Runs trials of the cells of a matrix, one after another."""

    def __init__(
        self,
        matrix: Matrix,
        cells: Iterable[Cell],
        pool: ServerPool,
        placement: Placement,
        watch: Watch,
        interrupts: Interrupts,
        run: RunTrial = run_trial,
        new_trial: NewTrial = _core.Trial,
    ) -> None:
        self.matrix = matrix
        self.pool = pool
        self.placement = placement
        self.watch = watch
        self.interrupts = interrupts
        self._run, self._new_trial = run, new_trial
        self.run_id = secrets.token_hex(RUN_ID_BYTES)
        self.trials_begun = 0
        self.demands = largest(cells)
        self.baselines: dict[CallConditions, Baseline] = {}
        """The baseline of each kind of idle call that has been measured."""

    def measure(self, slot: Slot, servers: Sequence[AnyServer], *, warmup_ns: int, duration_ns: int) -> Measured:
        """`observe`, and raise the ServerError of a disturbance in the trial."""
        measured = self.observe(slot, servers, warmup_ns=warmup_ns, duration_ns=duration_ns)
        if measured.trouble is not None:
            raise measured.trouble.error
        return measured

    def use(self, cell: Cell, duration_ns: int) -> ServerError | None:
        """Run `cell` for a short time; returns the refusal of a server, or None.

        Raises KeyboardInterrupt when the trial was stopped, ServerError where a server failed in another way.
        """
        slot = Slot(0, cell, 0, duration_ns / 1e9)
        result = self.measure(slot, self.servers(cell), warmup_ns=0, duration_ns=duration_ns).result
        if result.stopped:
            raise KeyboardInterrupt
        return refusal_of(result.errors, self._sides(cell), cell.strategy)

    def planted(self, cell: Cell) -> list[tuple[str, bool]]:
        """Each kind of planted fault, and whether the checker of a trial of `cell` finds it. Sends nothing."""
        steady = control.undisturbed(cell)  # Stages, for one, would have to fill the window of 1 ns.
        return self._trial(Slot(0, steady, 0, 0.0), self._sides(cell), warmup_ns=0, duration_ns=1).planted()

    def observe(
        self,
        slot: Slot,
        servers: Sequence[AnyServer],
        *,
        warmup_ns: int,
        duration_ns: int,
        until_steady: bool = False,
        stem: Path | None = None,
    ) -> Measured:
        """Run one trial with its own keys, and remove them. An interrupted trial returns its figures so far.

        `until_steady` opens the window as soon as the figures are steady, at the latest after `warmup_ns`.
        With a `stem`, the path of files without a suffix, the core records the events of the trial there.

        Raises ServerError where the trial could not begin.
        """
        sides = self.new_sides(slot.cell, servers)
        guard = self._guard(slot.cell)
        reached: list[Side | GuardSide] = [*sides, *([] if guard is None else [guard])]
        faults = FaultThreads(slot.cell, self.matrix, reached, self.pool)
        times = {"warmup_ns": warmup_ns, "duration_ns": duration_ns}
        trial = self._trial(slot, sides, guard, **times, until_steady=until_steady, stem=stem)
        try:
            for one in reached:
                one.prepare()
            for side in sides:
                side.begin()
            started_at, started = datetime.now(UTC), time.monotonic()
            self.watch.trial_begins(slot, trial)
            with watched([] if slot.is_control else sides, trial) as machine, self._healed(faults, trial) as carried:
                result = self._run_trial(trial, reached, slot.cell.strategy)
            error_replies.mask(result.errors, self.matrix.secrets)
            shares_core = self.placement.shares_core()
            wall_s = time.monotonic() - started
            jumped_s = (datetime.now(UTC) - started_at).total_seconds() - wall_s
            spent, troubles = ended(sides, result)
            guarded, unread = (None, None) if guard is None else values_of(guard, result)
        except BaseException:
            self._clear_if_possible(reached)
            raise
        step = step_of_clock(jumped_s, slot.cell.ttl_ms)
        troubles += [one for one in (unread, step) if one is not None]
        trouble = first_of([*troubles, *refusals(result, sides, slot.cell)])
        left_over = None
        if trouble is None:
            left, trouble = cleared(sides, guard)
            left_over = left if trouble is None and all_is_released(slot.cell, result) else None
            self._note_disturbances(slot, result, sides)
        else:
            self._clear_if_possible(reached)
        return Measured(
            result,
            started_at,
            wall_s,
            spent,
            trouble,
            left_over,
            machine.series,
            shares_core,
            [*carried, *of_core(slot.cell.faults, result)],
            guarded,
        )

    @contextmanager
    def _healed(self, faults: FaultThreads, trial: _core.Trial) -> Iterator[list[Carried]]:
        """Carry the faults of `trial` out; afterwards all servers are healthy. Raises ServerError where one is not.

        What was done is in the list when the block has ended.
        """
        carried: list[Carried] = []
        faults.start(trial)
        try:
            yield carried
        finally:
            with self.interrupts.shielded():
                carried += faults.stop()

    def new_sides(self, cell: Cell, servers: Sequence[AnyServer]) -> list[Side]:
        """The servers of a new trial of `cell`. Its keys begin with `key_prefix` from now on."""
        self.trials_begun += 1
        ending = servers_that_end(cell, self.matrix)
        return sides_of(cell, servers, self.matrix.backends, run_id=self.run_id, trial=self.trials_begun, ending=ending)

    @property
    def key_prefix(self) -> str:
        """The prefix of the keys of the latest trial."""
        return f"pybench:{self.run_id}:{self.trials_begun}:"

    def _guard(self, cell: Cell) -> GuardSide | None:
        """The guarded resources of the latest trial, which is one of `cell`; None without a guard."""
        server = self.guard_server(cell)
        if server is None:
            return None
        backend = self.matrix.backends[cell.guard_on]
        names = {"prefix": self.key_prefix, "run_id": self.run_id}
        return guard_side(cell, server, backend, **names, trial=self.trials_begun)

    def guard_server(self, cell: Cell) -> AnyServer | None:
        """The server of the guarded resource of `cell`; None without a guard."""
        part = guard_part_of(cell)
        return None if part is None else self.on(part)[0]

    def _sides(self, cell: Cell) -> list[Side]:
        """The servers of `cell`, for calls outside a trial."""
        return sides_of(cell, self.servers(cell), self.matrix.backends, run_id=self.run_id, trial=0)

    def _trial(
        self,
        slot: Slot,
        sides: Sequence[Side],
        guard: GuardSide | None = None,
        *,
        warmup_ns: int,
        duration_ns: int,
        until_steady: bool = False,
        stem: Path | None = None,
    ) -> _core.Trial:
        cell, recording = slot.cell, None
        if stem is not None or cell.processes:
            files = [] if stem is None else recording_files(cell, stem)
            recording = recording_spec(cell, trial=slot.block, files=files)
        spec = trial_spec(
            cell,
            [side.spec() for side in sides],
            cores=self.placement.drivers,
            key_prefix=self.key_prefix,
            client_name=f"pybench-{self.run_id}",
            seed=trial_seed(self.matrix.seed, slot.block, slot.probe),
            warmup_ns=warmup_ns,
            duration_ns=duration_ns,
            until_steady=until_steady,
            least_belief_ns=self.least_belief_ns(cell),
            recording=recording,
            guard=None if guard is None else guard.spec(),
        )
        if cell.processes:
            # It has what a run uses of a trial of the core.
            return cast("_core.Trial", ProcessTrial(spec, cell.processes, self.matrix.secrets))
        return self._new_trial(spec)

    def _clear_if_possible(self, sides: Sequence[Side | GuardSide]) -> None:
        """Remove the keys after a failure or a forced end; on a dead server the keys end with their leases."""
        with self.interrupts.shielded():
            for side in sides:
                with suppress(ServerError):
                    side.clear(seconds=PARTING_S)

    def _note_disturbances(self, slot: Slot, result: _core.TrialResult, sides: Sequence[Side]) -> None:
        """Note the disturbances that a lock must survive, since they affect its figures."""
        totals = result.totals
        counted = disturbances(**{name: totals[name] for name in DISTURBANCES})
        for text in filter(None, [counted, *(side.disturbance for side in sides)]):
            self.watch.note(f"{slot.cell.id}: {text}; the figures include this")

    def _run_trial(self, trial: _core.Trial, sides: Sequence[Side | GuardSide], strategy: str) -> _core.TrialResult:
        try:
            with self.interrupts.stoppable():
                return self._run(trial)
        except KeyboardInterrupt:
            result = trial.result
            if result is None or self.interrupts.insisted:
                raise
            return result
        except OSError as error:
            raise RecordError(
                f"the history of the trial cannot be written: {os.strerror(error.errno) if error.errno else error}",
                hint="free some space; the trials saved so far are intact",
            ) from error
        except _core.ConnectError as error:
            raise not_connected(error, sides, strategy, secrets=self.matrix.secrets) from error

    def servers(self, cell: Cell) -> list[AnyServer]:
        """The servers of `cell`, in the order in which its lock numbers them."""
        return [server for part in parts_of(cell) for server in self.on(part)]

    def on(self, part: Part) -> list[AnyServer]:
        """The first servers of the group of `part`, as many as `part` needs."""
        group = group_for(part, self.demands)
        return servers_in(self.pool, self.matrix, group, self.demands[group])[: part.servers]

    def idle_calls_us(self, cell: Cell) -> float | None:
        """The least time of the calls of a grant in microseconds: one to each of its backends, in sequence.

        What the axis `rtt` adds to these calls is a part of them.
        """
        trips = [
            self.baselines[call].round_trip_us(part.servers)
            for call, part in zip(call_conditions_of(cell), parts_of(cell), strict=True)
        ]
        known = [trip for trip in trips if trip is not None]
        return sum(known) + added_ns(cell) / 1e3 if len(known) == len(trips) else None

    def least_belief_ns(self, cell: Cell) -> int:
        """The shortest belief of a grant of `cell` that counts as contended: the time of an idle call, if known."""
        known = all(call in self.baselines for call in call_conditions_of(cell))
        idle_us = self.idle_calls_us(cell) if known else None
        return 0 if idle_us is None else round(idle_us * 1e3)
