"""Runs a plan: first controls, baselines and probes, then all trials, block by block.

Promises: each trial is saved when it ends, and its keys and table are removed. An interrupt keeps the trials so far. A
failing server ends the run with a ServerError, and earlier trials are kept.
Does not do: making the plan, gathering the folder, printing; see `job` and `watch`.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any

from pybench import _core
from pybench.analysis.histograms import merged
from pybench.analysis.stats import quantile
from pybench.errors import ServerError
from pybench.planning import control
from pybench.planning.ending import ending_s
from pybench.planning.needs import CallConditions, call_conditions_of, parts_of, servers_in
from pybench.planning.plan import before_trials_ns
from pybench.planning.searches import usual_probes_of
from pybench.quota import throttled, throttled_since
from pybench.records import trial_record
from pybench.records.tables import judged_row
from pybench.records.telemetry import Watched
from pybench.running.controls import Measure, run_controls, run_plants, run_probes
from pybench.running.observer import Baseline, Measured, NewTrial, Observer, RunTrial, run_trial
from pybench.running.pace import overhead_of
from pybench.running.preflight import use_locks
from pybench.running.searching import Search, limit_text, run_search, search_of
from pybench.running.trial_servers import clear_killed_runs, clear_run, spent_calls, spent_cpu_us
from pybench.running.watch import Around, Finished, Slot
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from datetime import datetime

    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell
    from pybench.planning.placement import Placement
    from pybench.planning.plan import Plan
    from pybench.records import RunFolder, TrialRecord
    from pybench.running.interrupts import Interrupts
    from pybench.running.watch import Watch
    from pybench.servers import AnyServer, ServerPool

END_NOTICED_S = 0.2
"""How long it may take until the end of a server process is noticed."""


class Ending(Enum):
    """How a run ended."""

    COMPLETE = auto()
    INTERRUPTED = auto()


def slots_of(plan: Plan) -> list[Slot]:
    """Every trial of `plan`, in order. A block has each cell once, so the block's number is the trial number."""
    ordered = [(block, plan.cells[index]) for block, indices in enumerate(plan.order, start=1) for index in indices]
    return [
        Slot(number, cell, block, planned_s(cell, plan.matrix)) for number, (block, cell) in enumerate(ordered, start=1)
    ]


def planned_s(cell: Cell, matrix: Matrix) -> float:
    """The usual seconds of warm-up and window of a trial of `cell`; of a search, of all its probes together."""
    return usual_probes_of(cell, matrix) * (matrix.warmup.usual_ns + cell.window_ns(matrix.duration_ns)) / 1e9


class Runner:
    """One run of a plan, into a folder."""

    def __init__(
        self,
        plan: Plan,
        placement: Placement,
        pool: ServerPool,
        folder: RunFolder,
        watch: Watch,
        interrupts: Interrupts,
        run: RunTrial = run_trial,
        new_trial: NewTrial = _core.Trial,
    ) -> None:
        self.plan = plan
        self.pool = pool
        self.folder = folder
        self.watch = watch
        self.interrupts = interrupts
        self.earlier_probes: Mapping[tuple[str, int], Sequence[Mapping[str, Any]]] = {}
        """The probes of searches that an earlier part of the run has saved, by cell and trial."""
        self.observer = Observer(plan.matrix, plan.cells, pool, placement, watch, interrupts, run, new_trial)

    def run(self) -> Ending:
        """Run every trial that the folder does not have yet.

        Raises ServerError when a server fails, RecordError when a trial cannot be saved, and KeyboardInterrupt when the
        user asks a second time.
        """
        self.clear_leftovers()
        slots, starts = slots_of(self.plan), self.folder.starts()
        done = starts.keys()
        if any(cell.mode.is_search for cell in self.plan.cells):
            self.earlier_probes = self.folder.probes()
        left = [slot for slot in slots if (slot.cell.id, slot.block) not in done or self._goes_on(slot, done)]
        if not left:
            return Ending.COMPLETE
        self.watch.run_begins(
            self.plan.matrix.name, self.folder.path, left, len(slots), self._around(slots, starts, left)
        )
        try:
            waiting = {slot.cell.id for slot in left}
            self.check([cell for cell in self.plan.cells if cell.id in waiting])
            for slot in left:
                if slot.cell.mode.is_search:
                    self._run_search(slot, done)
                else:
                    self.run_slot(slot)
                if self.interrupts.asked:
                    return Ending.INTERRUPTED
        except KeyboardInterrupt:
            if self.interrupts.insisted:
                raise
            return Ending.INTERRUPTED
        except ServerError:
            self.check_servers()
            raise
        finally:
            self.watch.run_ends()
        return Ending.COMPLETE

    def _around(
        self, slots: Sequence[Slot], starts: Mapping[tuple[str, int], datetime], left: Sequence[Slot]
    ) -> Around:
        before_ns = before_trials_ns([slot.cell for slot in left], is_resumed=len(left) < len(slots))
        return Around(
            before_s=before_ns / 1e9,
            overhead_s=overhead_of(slots, starts) if starts else None,
            ending_s=ending_s(len(self.plan.cells), len(slots)),
        )

    def check_servers(self) -> None:
        """Raise ServerError, with the reason in its log, if a started server has ended by itself."""
        time.sleep(END_NOTICED_S)
        self.pool.check()

    def check(self, cells: Sequence[Cell]) -> None:
        """Check the servers, the checker and the locks of `cells`, before any of them is measured.

        First uses, controls, baselines, planted faults and probes; the folder keeps the results. Raises ServerError
        when a server fails, and KeyboardInterrupt when one of these trials was stopped.
        """
        for _, error in use_locks(self.observer, cells):
            if error is not None:
                raise error
        run_controls(self.folder, self.watch, control.control_cells(self.plan.cells), self._control)
        self._run_baselines(cells)
        run_plants(self.folder, self.watch, cells, self.observer.planted)
        run_probes(self.folder, self.watch, cells, self._probed, self._late_ways)

    def clear_leftovers(self) -> None:
        """Remove keys and tables of killed runs, and record the key prefix of this run.

        On each server, those of an earlier part of this run; in a given database, also those of other killed runs.
        """
        earlier = self.folder.manifest.get("key_prefix")
        for group, demand in self.observer.demands.items():
            for server in servers_in(self.pool, self.plan.matrix, group, demand):
                if earlier is not None:
                    clear_run(server, earlier)
                for left in clear_killed_runs(server):
                    self.watch.note(left)
        self.folder.update_manifest(key_prefix=f"pybench:{self.observer.run_id}:")

    def _control(self, cell: Cell) -> tuple[Slot, _core.TrialResult]:
        """The trial of the control `cell`."""
        slot, servers = Slot(0, cell, 0, control.CONTROL_NS / 1e9), self.observer.servers(cell)
        return slot, self.observer.measure(slot, servers, warmup_ns=0, duration_ns=control.CONTROL_NS).result

    def _probed(self, cell: Cell, duration_ns: int, *, by_script: bool = False) -> Measured:
        slot, servers = Slot(0, cell, 0, duration_ns / 1e9), self.observer.servers(cell)
        if by_script:
            servers = [server.by_script() for server in servers]
        return self.observer.observe(slot, servers, warmup_ns=0, duration_ns=duration_ns)

    def _late_ways(self, cell: Cell) -> Sequence[Measure]:
        """How `cell` is probed: also by the Lua script, where a server has a command of its own for the release."""
        servers = self.observer.servers(cell)
        has_command = any(server.by_script() != server for server in servers)
        return [self._probed, partial(self._probed, by_script=True)] if has_command else [self._probed]

    def _run_baselines(self, cells: Iterable[Cell]) -> None:
        """Measure the baselines, once for each kind of idle call of `cells`."""
        alike: dict[CallConditions, list[Cell]] = {}
        for cell in cells:
            for call in call_conditions_of(cell):
                alike.setdefault(call, []).append(cell)
        for call, members in alike.items():
            backend, kind = call[0], self.plan.matrix.backends[call[0]].kind
            parts = (part for cell in members for part in parts_of(cell) if part.group.backend == backend)
            servers = max((self.observer.on(part) for part in parts), key=len)
            distinct = servers[:1] if servers[0].started_by_us else servers
            trips = [
                self._round_trip_us(control.round_trip_cell(members, backend, kind), server) for server in distinct
            ]
            alone = self._measure_briefly(control.client_cost_cell(members[0], backend), servers[0])
            grants = alone.totals["grants"]
            self.observer.baselines[call] = Baseline(
                round_trips_us=trips,
                client_cpu_us=alone.totals["client_cpu_ns"] / 1e3 / grants if grants else None,
            )
            entry = {
                **dict(zip(("backend", "appendfsync", "poll"), call, strict=True)),
                "round_trip_us": trips[0],
                **({"round_trips_us": trips} if len(trips) > 1 else {}),
                "client_cpu_us_per_grant": self.observer.baselines[call].client_cpu_us,
            }
            # Baselines of an earlier part of the run stay for calls that no remaining trial makes.
            earlier = [other for other in self.folder.manifest.get("baseline", []) if _call_conditions(other) != call]
            self.folder.update_manifest(baseline=[*earlier, entry])

    def _round_trip_us(self, cell: Cell, server: AnyServer) -> float | None:
        """The median time of one idle call to `server` in microseconds, measured by `cell`."""
        # On a busy machine the usual time may give too few calls.
        for duration_ns in (control.BASELINE_NS, control.LONGER_BASELINE_NS):
            result = self._measure_briefly(cell, server, duration_ns)
            service = [row.hdr for row in result.histograms if (row.phase, row.outcome) == ("service", "granted")]
            round_trip_ns = quantile(*merged(service), 0.5)
            if round_trip_ns is not None:
                return round_trip_ns / 1e3 / control.CALLS.get(cell.strategy, 1)
        return None

    def _measure_briefly(
        self, cell: Cell, server: AnyServer, duration_ns: int = control.BASELINE_NS
    ) -> _core.TrialResult:
        slot = Slot(0, cell, 0, (control.BASELINE_WARMUP_NS + duration_ns) / 1e9)
        times = {"warmup_ns": control.BASELINE_WARMUP_NS, "duration_ns": duration_ns}
        measured = self.observer.measure(slot, [server], **times)
        if measured.result.stopped:
            raise KeyboardInterrupt
        return measured.result

    def run_slot(self, slot: Slot) -> None:
        """Run and save one trial of the plan."""
        record, measured = self._measured(slot)
        recorded = measured.result.recorded if self._keeps_history else None
        self.folder.add_trial(record, recorded=recorded, trouble=measured.trouble)
        self.watch.trial_ends(slot, self._finished(record.row))
        if measured.trouble is not None:
            # Raised last, so that the trial is saved.
            raise measured.trouble.error

    @property
    def _keeps_history(self) -> bool:
        return bool(self.folder.manifest.get("history"))

    def _run_search(self, slot: Slot, done: Collection[tuple[str, int]]) -> None:
        """Run the search of one trial of the plan, from where an earlier part of the run left it."""
        search, is_saved = self._search(slot, done), (slot.cell.id, slot.block) in done
        matrix, folder = self.plan.matrix, self.folder
        tell = partial(self.watch.phase_ends, slot)
        record = run_search(search, matrix, folder, self.interrupts, self._measured, tell, is_saved=is_saved)
        if record is not None:
            self.watch.trial_ends(slot, replace(self._finished(record.row), limit=limit_text(record.row)))

    def _goes_on(self, slot: Slot, done: Collection[tuple[str, int]]) -> bool:
        """Whether the limit of `slot` is found, and the latency at shares of it is not measured yet."""
        return bool(slot.cell.mode.shares) and self._search(slot, done).next is not None

    def _search(self, slot: Slot, done: Collection[tuple[str, int]]) -> Search:
        is_saved = (slot.cell.id, slot.block) in done
        return search_of(slot, self.plan.matrix, self.earlier_probes, is_saved=is_saved)

    def _measured(self, slot: Slot) -> tuple[TrialRecord, Measured]:
        """One trial of the plan, or one probe of a search, with its record."""
        cell, matrix = slot.cell, self.plan.matrix
        servers = self.observer.servers(cell)
        before = throttled()
        measured = self.observer.observe(
            slot,
            servers,
            warmup_ns=matrix.warmup_ns,
            duration_ns=cell.window_ns(matrix.duration_ns),
            until_steady=matrix.warmup.until_steady,
            stem=self.folder.recording(cell.id, slot.block) if self._keeps_history else None,
        )
        since = throttled_since(before)
        database = measured.database
        record = trial_record(
            cell,
            trial=slot.block,
            block=slot.block,
            started_at=measured.started_at,
            result=measured.result,
            servers=servers,
            server_cpu_us=spent_cpu_us(measured.spent),
            server_calls=spent_calls(measured.spent),
            database_figures=None if database is None else database.record(),
            final_values=measured.final_values,
            guard_server=self.observer.guard_server(cell),
            left_over_keys=measured.left_over_keys,
            shares_core=measured.shares_core,
            strategy=CATALOGUE[cell.strategy].with_arguments(cell.args),
            wall_s=measured.wall_s,
            round_trip_us=self.observer.idle_calls_us(cell),
            trouble=measured.trouble,
            watched=Watched([spent.series for spent in measured.spent], measured.machine),
            throttled=since,
            carried=measured.faults,
        )
        return record, measured

    def _finished(self, row: Mapping[str, Any]) -> Finished:
        manifest = self.folder.manifest
        judged = judged_row(row, manifest["control"], manifest.get("probes", ()))
        figures = (row["grants_per_s"], row["acquire_p99_us"], row["violations"])
        return Finished(*figures, judged.judgement.verdict, by_probe=bool(judged.by_probe))


def _call_conditions(entry: Mapping[str, Any]) -> CallConditions:
    return entry["backend"], entry["appendfsync"], entry["poll"]
