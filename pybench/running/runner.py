"""Carries out a plan: the control and the baseline first, then block by block one trial after another.

Promises: each trial is saved when it ends, under keys and in a table of its own that are removed then; an interrupt
keeps what was measured; a server that fails ends the run with a ServerError and leaves all earlier trials.
Does not do: making the plan, gathering the folder, saying anything; see `job` and `watch`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from pybench import _core
from pybench.analysis.histograms import merged
from pybench.analysis.stats import quantile
from pybench.errors import ServerError
from pybench.planning import control
from pybench.planning.needs import CallConditions, call_conditions_of, on_backend, parts_of, servers_in
from pybench.quota import throttled, throttled_since
from pybench.records import trial_record
from pybench.records.tables import judged_row
from pybench.running.controls import run_controls, run_plants, run_probes
from pybench.running.observer import Baseline, Measured, Observer
from pybench.running.preflight import use_locks
from pybench.running.stage import clear_killed_runs, clear_run, spent_calls, spent_cpu_us
from pybench.running.watch import Finished, Slot
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell
    from pybench.planning.placement import Placement
    from pybench.planning.plan import Plan
    from pybench.records import RunFolder
    from pybench.running.interrupts import Interrupts
    from pybench.running.watch import Watch
    from pybench.servers import AnyServer, ServerPool

NEWS_S = 0.2
"""How long the end of a server may take to be known."""


class Ending(Enum):
    """How a run came to its end."""

    COMPLETE = auto()
    INTERRUPTED = auto()


def slots_of(plan: Plan) -> list[Slot]:
    """Every trial of `plan`, in its order. A block holds each cell once, so a block's number is that of its trials."""
    seconds = (plan.matrix.warmup_ns + plan.matrix.duration_ns) / 1e9
    ordered = [(block, index) for block, indices in enumerate(plan.order, start=1) for index in indices]
    return [Slot(number, plan.cells[index], block, seconds) for number, (block, index) in enumerate(ordered, start=1)]


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
    ) -> None:
        self.plan = plan
        self.pool = pool
        self.folder = folder
        self.watch = watch
        self.interrupts = interrupts
        self.observer = Observer(plan.matrix, plan.cells, pool, placement, watch, interrupts)

    def run(self) -> Ending:
        """Run every trial that the folder does not hold yet.

        Raises ServerError when a server fails, RecordError when a trial cannot be saved. KeyboardInterrupt comes out
        only when it is asked for a second time.
        """
        self._take_over()
        slots, done = slots_of(self.plan), self.folder.done()
        left = [slot for slot in slots if (slot.cell.id, slot.block) not in done]
        if not left:
            return Ending.COMPLETE
        self.watch.run_begins(self.plan.matrix.name, self.folder.path, left, len(slots))
        try:
            for _, error in use_locks(self.observer, (slot.cell for slot in left)):
                if error is not None:
                    raise error
            backends = {part.group.backend for slot in left for part in parts_of(slot.cell)}
            run_controls(self.folder, self.watch, backends, self._control)
            waiting = {slot.cell.id for slot in left}
            self._run_baselines(cell for cell in self.plan.cells if cell.id in waiting)
            unmeasured = [cell for cell in self.plan.cells if cell.id in waiting]
            run_plants(self.folder, self.watch, unmeasured, self.observer.planted)
            run_probes(self.folder, self.watch, unmeasured, self._probed)
            for slot in left:
                self._run_slot(slot)
                if self.interrupts.asked:
                    return Ending.INTERRUPTED
        except KeyboardInterrupt:
            if self.interrupts.insisted:
                raise
            return Ending.INTERRUPTED
        except ServerError:
            # One that we started and that ended says why in its log, once its end has come through.
            time.sleep(NEWS_S)
            self.pool.check()
            raise
        finally:
            self.watch.run_ends()
        return Ending.COMPLETE

    def _take_over(self) -> None:
        """Remove what an earlier part of the run left when it was killed, and say what the keys of now begin with.

        Of a database that was given also what other runs left that were killed.
        """
        earlier = self.folder.manifest.get("key_prefix")
        for group, demand in self.observer.demands.items():
            for server in servers_in(self.pool, self.plan.matrix, group, demand):
                if earlier is not None:
                    clear_run(server, earlier)
                for left in clear_killed_runs(server):
                    self.watch.note(left)
        self.folder.update_manifest(key_prefix=f"pybench:{self.observer.run_id}:")

    def _control(self, backend: str) -> tuple[Slot, _core.TrialResult]:
        """The control trial on `backend`."""
        own = next(one for one in self.plan.cells if on_backend(one, backend))
        server = next(self.observer.on(part)[0] for part in parts_of(own) if part.group.backend == backend)
        cell = control.control_cell(self.plan.cells, backend, self.plan.matrix.backends[backend].kind)
        slot = Slot(0, cell, 0, control.CONTROL_NS / 1e9)
        return slot, self.observer.measure(slot, [server], warmup_ns=0, duration_ns=control.CONTROL_NS).result

    def _probed(self, cell: Cell, duration_ns: int) -> Measured:
        slot = Slot(0, cell, 0, duration_ns / 1e9)
        return self.observer.observe(slot, self.observer.servers(cell), warmup_ns=0, duration_ns=duration_ns)

    def _run_baselines(self, cells: Iterable[Cell]) -> None:
        """What an idle call and the client cost, once for each setting in which cells run."""
        alike: dict[CallConditions, list[Cell]] = {}
        for cell in cells:
            for setting in call_conditions_of(cell):
                alike.setdefault(setting, []).append(cell)
        for setting, members in alike.items():
            backend, kind = setting[0], self.plan.matrix.backends[setting[0]].kind
            parts = (part for cell in members for part in parts_of(cell) if part.group.backend == backend)
            servers = max((self.observer.on(part) for part in parts), key=len)
            asked = servers[:1] if servers[0].started_by_us else servers
            trips = [self._round_trip_us(control.round_trip_cell(members, backend, kind), server) for server in asked]
            alone = self._measure_briefly(control.client_cost_cell(members[0], backend, kind), servers[0])
            grants = alone.totals["grants"]
            self.observer.baselines[setting] = Baseline(
                round_trips_us=trips,
                client_cpu_us=alone.totals["client_cpu_ns"] / 1e3 / grants if grants else None,
            )
            entry = {
                **dict(zip(("backend", "appendfsync", "poll"), setting, strict=True)),
                "round_trip_us": trips[0],
                **({"round_trips_us": trips} if len(trips) > 1 else {}),
                "client_cpu_us_per_grant": self.observer.baselines[setting].client_cpu_us,
            }
            # Those of an earlier part of the run stand for settings that have no trial left.
            earlier = [other for other in self.folder.manifest.get("baseline", []) if _setting_of(other) != setting]
            self.folder.update_manifest(baseline=[*earlier, entry])

    def _round_trip_us(self, cell: Cell, server: AnyServer) -> float | None:
        """What one idle call to `server` takes, at the median of `cell`, which makes such calls."""
        # A busy machine makes too few calls in the usual time.
        for duration_ns in (control.BASELINE_NS, control.LONGER_BASELINE_NS):
            call = self._measure_briefly(cell, server, duration_ns)
            service = [row.hdr for row in call.histograms if (row.phase, row.outcome) == ("service", "granted")]
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

    def _run_slot(self, slot: Slot) -> None:
        """One trial of the plan, saved."""
        cell, matrix = slot.cell, self.plan.matrix
        servers = self.observer.servers(cell)
        before = throttled()
        measured = self.observer.observe(slot, servers, warmup_ns=matrix.warmup_ns, duration_ns=matrix.duration_ns)
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
            final_values=None if database is None else database.final_values,
            left_over_keys=measured.left_over_keys,
            shares_core=measured.shares_core,
            strategy=CATALOGUE[cell.strategy].with_arguments(cell.args),
            wall_s=measured.wall_s,
            round_trip_us=self.observer.idle_calls_us(cell),
            trouble=measured.trouble,
            throttled=since,
        )
        self.folder.add_trial(record)
        self.watch.trial_ends(slot, self._finished(record.row))
        if measured.trouble is not None:
            # Only now: the evidence is kept.
            raise measured.trouble.error

    def _finished(self, row: Mapping[str, Any]) -> Finished:
        manifest = self.folder.manifest
        judged = judged_row(row, manifest["control"], manifest.get("probes", ()))
        figures = (row["grants_per_s"], row["acquire_p99_us"], row["violations"])
        return Finished(*figures, judged.judgement.verdict, by_probe=bool(judged.by_probe))


def _setting_of(entry: Mapping[str, Any]) -> CallConditions:
    return entry["backend"], entry["appendfsync"], entry["poll"]
