"""Carries out a plan: the control and the baseline first, then block by block one trial after another.

Promises: each trial is saved when it ends, under keys and in a table of its own that are removed then; an interrupt
keeps what was measured; a server that fails ends the run with a ServerError and leaves all earlier trials.
Does not do: making the plan, gathering the folder, saying anything; see `job` and `watch`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from pybench import _core, control, preflight
from pybench.aftermath import all_is_released, cleared, ended, refusal_of, refusals, step_of_clock
from pybench.baseline import Baseline
from pybench.disturbances import DISTURBANCES, disturbances
from pybench.disturbed import Trouble, first_of
from pybench.errors import ServerError
from pybench.histograms import merged
from pybench.needs import Part, Setting, largest, on_backend, parts_of, servers_in, settings_of
from pybench.proving import run_controls, run_plants, run_probes
from pybench.quota import throttled, throttled_since
from pybench.records import trial_record
from pybench.records.tables import judged_row
from pybench.stage import (
    DatabaseSpent,
    Side,
    Spent,
    clear_killed_runs,
    clear_run,
    sides_of,
    spent_calls,
    spent_cpu_us,
)
from pybench.stats import quantile
from pybench.strategies import CATALOGUE
from pybench.trials import trial_seed, trial_spec
from pybench.watch import Finished, Slot

if TYPE_CHECKING:
    from pybench.cells import Cell
    from pybench.interrupts import Interrupts
    from pybench.needs import AnyServer
    from pybench.placement import Placement
    from pybench.plan import Plan
    from pybench.records import RunFolder
    from pybench.servers import ServerPool
    from pybench.watch import Watch

NEWS_S = 0.2
"""How long the end of a server may take to be known."""

RUN_ID_BYTES = 4
"""Of what tells the keys of one run from those of another."""

PARTING_S = 1.0
"""For the removal of keys from a server that has just failed."""


class Ending(Enum):
    """How a run came to its end."""

    COMPLETE = auto()
    INTERRUPTED = auto()


@dataclass(frozen=True, slots=True)
class Measured:
    """One trial, with what surrounded it."""

    result: _core.TrialResult
    started_at: datetime
    wall_s: float
    spent: Sequence[Spent]
    """Of each server."""
    trouble: Trouble | None
    """What befell the servers: it ends the run, and what the trial shows is no figure."""
    left_over_keys: int | None
    """Locks that were on a server although all were released; None where nobody can tell."""
    shares_core: bool | None
    """Whether a given server was seen on the core of a driving thread at the end; None where nobody can tell."""

    @property
    def database(self) -> DatabaseSpent | None:
        """What the database came to, where there is one."""
        return next((one for one in self.spent if isinstance(one, DatabaseSpent)), None)


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
        self.placement = placement
        self.pool = pool
        self.folder = folder
        self.watch = watch
        self.interrupts = interrupts
        self.run_id = secrets.token_hex(RUN_ID_BYTES)
        self.trials_begun = 0
        self.demands = largest(plan.cells)
        self.baselines: dict[Setting, Baseline] = {}

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
            self._use_locks(slot.cell for slot in left)
            backends = {part.group.backend for slot in left for part in parts_of(slot.cell)}
            run_controls(self.folder, self.watch, backends, self._control)
            waiting = {slot.cell.id for slot in left}
            self._run_baselines(cell for cell in self.plan.cells if cell.id in waiting)
            unmeasured = [cell for cell in self.plan.cells if cell.id in waiting]
            run_plants(self.folder, self.watch, unmeasured, self._planted)
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
        for group, demand in self.demands.items():
            for server in servers_in(self.pool, self.plan.matrix, group, demand):
                if earlier is not None:
                    clear_run(server, earlier)
                for left in clear_killed_runs(server):
                    self.watch.note(left)
        self.folder.update_manifest(key_prefix=f"pybench:{self.run_id}:")

    def _use_locks(self, cells: Iterable[Cell]) -> None:
        """Use each lock of `cells` once. Raises ServerError where its servers refuse what it needs."""
        for cell, duration_ns in preflight.first_uses(cells):
            servers = self._servers(cell)
            measured = self._measure(Slot(0, cell, 0, duration_ns / 1e9), servers, warmup_ns=0, duration_ns=duration_ns)
            if measured.result.stopped:
                raise KeyboardInterrupt
            sides = sides_of(cell, servers, self.plan.matrix.backends, run_id=self.run_id, trial=0)
            error = refusal_of(measured.result.errors, sides, cell.strategy)
            if error is not None:
                raise error

    def _control(self, backend: str) -> tuple[Slot, _core.TrialResult]:
        """The control trial on `backend`."""
        own = next(one for one in self.plan.cells if on_backend(one, backend))
        server = next(self._on(part)[0] for part in parts_of(own) if part.group.backend == backend)
        cell = control.control_cell(self.plan.cells, backend, self.plan.matrix.backends[backend].kind)
        slot = Slot(0, cell, 0, control.CONTROL_NS / 1e9)
        return slot, self._measure(slot, [server], warmup_ns=0, duration_ns=control.CONTROL_NS).result

    def _probed(self, cell: Cell, duration_ns: int) -> Measured:
        slot = Slot(0, cell, 0, duration_ns / 1e9)
        return self._observe(slot, self._servers(cell), warmup_ns=0, duration_ns=duration_ns)

    def _planted(self, cell: Cell) -> list[tuple[str, bool]]:
        """What the checker of a trial of `cell` finds of faults that are planted in it. Nothing is sent."""
        sides = sides_of(cell, self._servers(cell), self.plan.matrix.backends, run_id=self.run_id, trial=0)
        return self._trial(Slot(0, cell, 0, 0.0), sides, warmup_ns=0, duration_ns=1).planted()

    def _run_baselines(self, cells: Iterable[Cell]) -> None:
        """What an idle call and the client cost, once for each setting in which cells run."""
        alike: dict[Setting, list[Cell]] = {}
        for cell in cells:
            for setting in settings_of(cell):
                alike.setdefault(setting, []).append(cell)
        for setting, members in alike.items():
            backend, kind = setting[0], self.plan.matrix.backends[setting[0]].kind
            parts = (part for cell in members for part in parts_of(cell) if part.group.backend == backend)
            servers = max((self._on(part) for part in parts), key=len)
            asked = servers[:1] if servers[0].started_by_us else servers
            trips = [self._round_trip_us(control.round_trip_cell(members, backend, kind), server) for server in asked]
            alone = self._measure_briefly(control.client_cost_cell(members[0], backend, kind), servers[0])
            grants = alone.totals["grants"]
            self.baselines[setting] = Baseline(
                round_trips_us=trips,
                client_cpu_us=alone.totals["client_cpu_ns"] / 1e3 / grants if grants else None,
            )
            entry = {
                **dict(zip(("backend", "appendfsync", "poll"), setting, strict=True)),
                "round_trip_us": trips[0],
                **({"round_trips_us": trips} if len(trips) > 1 else {}),
                "client_cpu_us_per_grant": self.baselines[setting].client_cpu_us,
            }
            # Those of an earlier part of the run stand for settings that have no trial left.
            earlier = [other for other in self.folder.manifest.get("baseline", []) if _setting_of(other) != setting]
            self.folder.update_manifest(baseline=[*earlier, entry])

    def _round_trip_us(self, cell: Cell, server: AnyServer) -> float | None:
        """What one idle call to `server` takes, at the median of `cell`, which makes such calls."""
        call = self._measure_briefly(cell, server)
        service = [row.hdr for row in call.histograms if (row.phase, row.outcome) == ("service", "granted")]
        round_trip_ns = quantile(*merged(service), 0.5)
        return None if round_trip_ns is None else round_trip_ns / 1e3 / control.CALLS.get(cell.strategy, 1)

    def _measure_briefly(self, cell: Cell, server: AnyServer) -> _core.TrialResult:
        slot = Slot(0, cell, 0, (control.BASELINE_WARMUP_NS + control.BASELINE_NS) / 1e9)
        times = {"warmup_ns": control.BASELINE_WARMUP_NS, "duration_ns": control.BASELINE_NS}
        measured = self._measure(slot, [server], **times)
        if measured.result.stopped:
            raise KeyboardInterrupt
        return measured.result

    def _run_slot(self, slot: Slot) -> None:
        """One trial of the plan, saved."""
        cell, matrix = slot.cell, self.plan.matrix
        servers = self._servers(cell)
        before = throttled()
        measured = self._observe(slot, servers, warmup_ns=matrix.warmup_ns, duration_ns=matrix.duration_ns)
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
            round_trip_us=self._idle_calls_us(cell),
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

    def _idle_calls_us(self, cell: Cell) -> float | None:
        """What the calls of a grant take at least: one to each of its backends, one after another."""
        trips = [
            self.baselines[setting].round_trip_us(part.servers)
            for setting, part in zip(settings_of(cell), parts_of(cell), strict=True)
        ]
        known = [trip for trip in trips if trip is not None]
        return sum(known) if len(known) == len(trips) else None

    def _measure(self, slot: Slot, servers: Sequence[AnyServer], *, warmup_ns: int, duration_ns: int) -> Measured:
        """`_observe`. Raises ServerError also for what befell the servers in the trial."""
        measured = self._observe(slot, servers, warmup_ns=warmup_ns, duration_ns=duration_ns)
        if measured.trouble is not None:
            raise measured.trouble.error
        return measured

    def _observe(self, slot: Slot, servers: Sequence[AnyServer], *, warmup_ns: int, duration_ns: int) -> Measured:
        """Run one trial under keys of its own, and remove them. An interrupted one returns what it measured.

        Raises ServerError where the trial could not begin, and nothing was seen.
        """
        self.trials_begun += 1
        backends = self.plan.matrix.backends
        sides = sides_of(slot.cell, servers, backends, run_id=self.run_id, trial=self.trials_begun)
        trial = self._trial(slot, sides, warmup_ns=warmup_ns, duration_ns=duration_ns)
        try:
            for side in sides:
                side.prepare()
            for side in sides:
                side.begin()
            started_at, started = datetime.now(UTC), time.monotonic()
            self.watch.trial_begins(slot, trial)
            result = self._run_trial(trial)
            shares_core = self.placement.shares_core()
            wall_s = time.monotonic() - started
            jumped_s = (datetime.now(UTC) - started_at).total_seconds() - wall_s
            spent, troubles = ended(sides, result)
        except BaseException:
            self._clear_if_possible(sides)
            raise
        step = step_of_clock(jumped_s, slot.cell.ttl_ms)
        trouble = first_of([*troubles, *([] if step is None else [step]), *refusals(result, sides, slot.cell.strategy)])
        left_over = None
        if trouble is None:
            left, trouble = cleared(sides)
            left_over = left if trouble is None and all_is_released(slot.cell, result) else None
            self._note_disturbances(slot, result, sides)
        else:
            self._clear_if_possible(sides)
        return Measured(result, started_at, wall_s, spent, trouble, left_over, shares_core)

    def _trial(self, slot: Slot, sides: Sequence[Side], *, warmup_ns: int, duration_ns: int) -> _core.Trial:
        return _core.Trial(
            trial_spec(
                slot.cell,
                [side.spec() for side in sides],
                cores=self.placement.drivers,
                key_prefix=f"pybench:{self.run_id}:{self.trials_begun}:",
                client_name=f"pybench-{self.run_id}",
                seed=trial_seed(self.plan.matrix.seed, slot.block),
                warmup_ns=warmup_ns,
                duration_ns=duration_ns,
                least_belief_ns=self._least_belief_ns(slot.cell),
            )
        )

    def _least_belief_ns(self, cell: Cell) -> int:
        """How long a grant of `cell` has to be believed in to prove anything: an idle call, where that is known."""
        known = all(setting in self.baselines for setting in settings_of(cell))
        idle_us = self._idle_calls_us(cell) if known else None
        return 0 if idle_us is None else round(idle_us * 1e3)

    def _clear_if_possible(self, sides: Sequence[Side]) -> None:
        """After a failure, or when the user insists on leaving: what is left on a dead server ends with its lease."""
        with self.interrupts.shielded():
            for side in sides:
                with suppress(ServerError):
                    side.clear(seconds=PARTING_S)

    def _note_disturbances(self, slot: Slot, result: _core.TrialResult, sides: Sequence[Side]) -> None:
        """Say what a lock has to survive, and whoever reads the figures has to know."""
        totals = result.totals
        told = [disturbances(**{name: totals[name] for name in DISTURBANCES}), *(side.befell for side in sides)]
        for words in filter(None, told):
            self.watch.note(f"{slot.cell.id}: {words}; its figures hold that, too")

    def _run_trial(self, trial: _core.Trial) -> _core.TrialResult:
        try:
            with self.interrupts.stoppable():
                return trial.run()
        except KeyboardInterrupt:
            result = trial.result
            if result is None or self.interrupts.insisted:
                raise
            return result
        except _core.ConnectError as error:
            raise ServerError(
                f"a server did not take the connections of a trial: {error}", hint="pybench doctor looks at it"
            ) from error

    def _servers(self, cell: Cell) -> list[AnyServer]:
        return [server for part in parts_of(cell) for server in self._on(part)]

    def _on(self, part: Part) -> list[AnyServer]:
        """Of the servers that the largest cell needs the first."""
        return servers_in(self.pool, self.plan.matrix, part.group, self.demands[part.group])[: part.servers]


def _setting_of(entry: Mapping[str, Any]) -> Setting:
    return entry["backend"], entry["appendfsync"], entry["poll"]
