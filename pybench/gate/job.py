"""A gate: base and head measured in turn on their servers, into a run folder for each side, and judged.

Promises: when an interrupt or a failing server ends the job early, the trials so far are gathered in every folder, and
started servers are stopped. No regression by speed is answered without its confirming round.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pybench import exits
from pybench.analysis.between_runs.changes import BASE
from pybench.analysis.between_runs.gate_answer import GateAnswer, Outcome, answer_of
from pybench.analysis.gating import ENOUGH_BLOCKS, blocks_by_default
from pybench.errors import InputError, PybenchError, RecordError
from pybench.exits import Exit
from pybench.gate.order import AGAIN, HEAD, SIDES, turns
from pybench.gate.other_python import Environment, OtherTrial
from pybench.gate.servers import start_for_both
from pybench.gate.sides import Pairs, Sides, pair_cells
from pybench.planning.ending import gathering_s
from pybench.planning.plan import TRIAL_OVERHEAD_NS, before_trials_ns, block_order
from pybench.running.interrupts import Interrupts
from pybench.running.job import LeftAtOnce, new_folder, open_files, plan_with_servers, require_core
from pybench.running.watch import Around, Silent, Slot

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell
    from pybench.planning.placement import Placement
    from pybench.planning.plan import Plan
    from pybench.records import Run, RunFolder
    from pybench.running.job import Consent
    from pybench.running.observer import NewTrial
    from pybench.running.runner import Runner
    from pybench.running.watch import Watch
    from pybench.servers import AnyServer, ServerPool

CHECKED = ("control", "probes", "baseline")
"""The entries of a manifest that the checks before the first trial make."""
ROUNDS = 2


@dataclass(frozen=True, slots=True)
class GateJob:
    """What a gate has to do."""

    sides: Sides
    command: Sequence[str]
    out: Path | None = None
    """The folder for the run folders of the sides."""
    band: float | None = None


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The result of a gate. `error` ended it early; None also when the user ended it."""

    folder: Path
    runs: dict[str, Run]
    """By side."""
    answer: GateAnswer | None
    """None where nothing was measured that could be judged."""
    exit: Exit
    error: PybenchError | None
    is_whole: bool
    """Whether all rounds were measured."""


@dataclass(slots=True)
class _Side:
    """One side while it is measured."""

    plan: Plan
    """Its cells are in the order of the pairs."""
    runner: Runner
    folder: RunFolder


@dataclass(slots=True)
class _State:
    folders: list[RunFolder] = field(default_factory=list)
    sides: dict[str, _Side] = field(default_factory=dict)


def carry_out(job: GateJob, *, watch: Watch | None = None, consent: Consent | None = None) -> GateOutcome:
    """Measure and judge, until an error or the user ends it.

    Raises PybenchError when the job cannot begin, KeyboardInterrupt when the user interrupts before it began, and
    LeftAtOnce when the user insists later.
    """
    require_core()
    _require_free(job.out)
    state = _State()
    try:
        with open_files(), Interrupts() as interrupts:
            return _Gate(job, watch or Silent(), interrupts, state).run(consent)
    except KeyboardInterrupt as insisted:
        if state.folders:
            raise LeftAtOnce(state.folders[0].path.parent) from insisted
        raise
    finally:
        for folder in state.folders:
            folder.release()


class _Gate:
    """One gate under way."""

    def __init__(self, job: GateJob, watch: Watch, interrupts: Interrupts, state: _State) -> None:
        self.job, self.watch, self.interrupts, self.state = job, watch, interrupts, state
        self.blocks = 0
        self.process_s = 0.0
        """What the start of a process takes for each trial; 0 where trials run in this process."""

    def run(self, consent: Consent | None) -> GateOutcome:
        """See `carry_out`."""
        from pybench.servers import ServerPool, clear_leftovers

        error: PybenchError | None = None
        is_whole = False
        with ExitStack() as stack:
            pools = {BASE: ServerPool()}
            pools[HEAD] = pools[BASE] if self.job.sides.shares_servers else ServerPool()
            # Stopping servers in good order takes some milliseconds, which a user who insists must wait, too.
            stack.callback(self._close, pools)
            with self.interrupts.stoppable():
                for leftover in clear_leftovers():
                    self.watch.note(f"left by a killed run: {leftover}")
                versions = self._versions()
                prepared, pairs = self._prepare(pools, consent)
            self._make_sides(prepared, pairs, pools, versions)
            try:
                is_whole = self._measure()
            except PybenchError as caught:
                error = caught
        with self.watch.working("gathering the trials", self._gathering_s()):
            return self._outcome(error, is_whole=is_whole)

    def _close(self, pools: Mapping[str, ServerPool]) -> None:
        with self.watch.working("stopping the servers"), self.interrupts.shielded():
            for pool in pools.values():
                pool.close()

    def _versions(self) -> dict[str, Any] | None:
        """The versions of the base's environment. Raises InputError for one that cannot take part."""
        environment = self.job.sides.environment
        if environment is None:
            return None
        versions = environment.hello()
        # Measured once more, for the first start reads the whole environment from the disk.
        own = Environment.of_this(environment.secrets)
        self.process_s = (environment.start_s() + own.start_s()) / 2
        # The commit of the working folder is that of the head.
        return {**versions, "commit": None}

    def _prepare(
        self, pools: dict[str, ServerPool], consent: Consent | None
    ) -> tuple[dict[str, tuple[Plan, Placement, list[AnyServer]]], Pairs]:
        sides = self.job.sides
        matrices = {BASE: sides.base, HEAD: sides.head}
        if sides.shares_servers:
            start_for_both(pools[HEAD], [sides.head, sides.base])
        prepared = {name: plan_with_servers(matrix, pools[name]) for name, matrix in matrices.items()}
        pairs = pair_cells(prepared[BASE][0].cells, prepared[HEAD][0].cells, (sides.base, sides.head))
        self.blocks = blocks_of(sides, len(pairs.cells))
        noted: dict[str, None] = {}
        if self.blocks < ENOUGH_BLOCKS:
            noted[f"fewer than {ENOUGH_BLOCKS} blocks: verdicts are compared, but no speed"] = None
        for name, cells in ((BASE, [base for base, _ in pairs.cells]), (HEAD, [head for _, head in pairs.cells])):
            plan, placement, servers = prepared[name]
            plan = self._planned(plan, cells, [head for _, head in pairs.cells])
            prepared[name] = plan, placement, servers
            noted |= dict.fromkeys([*plan.warnings, *plan.notes, *placement.notes()])
            if consent is not None:
                consent(self._announced(plan, name), servers)
        for note in noted:
            self.watch.note(note)
        for side, alone in ((BASE, pairs.only_base), (HEAD, pairs.only_head)):
            for cell in alone:
                self.watch.note(f"only the {side} has the cell {cell.id}: it is not measured")
        return prepared, pairs

    def _planned(self, plan: Plan, cells: list[Cell], heads: list[Cell]) -> Plan:
        """`plan` with these `cells` only, in the order of the pairs; the order of a block is drawn for their heads."""
        matrix = plan.matrix.model_copy(update={"trials": self.blocks})
        order = [block_order(matrix.seed, block, heads) for block in range(1, self.blocks + 1)]
        return replace(plan, matrix=matrix, cells=cells, order=order)

    def _announced(self, plan: Plan, name: str) -> Plan:
        """`plan` with all trials that both rounds can send to the servers of base or head."""
        trials = self.blocks * ROUNDS * (1 if name == BASE else 2)
        matrix = plan.matrix.model_copy(update={"trials": trials})
        return replace(plan, matrix=matrix, seconds=plan.seconds_per_trial * trials * len(plan.cells))

    def _make_sides(
        self,
        prepared: dict[str, tuple[Plan, Placement, list[AnyServer]]],
        pairs: Pairs,
        pools: dict[str, ServerPool],
        versions: dict[str, Any] | None,
    ) -> None:
        from pybench.running.runner import Runner

        job_id = secrets.token_hex(8)
        out = self.job.out or new_folder(f"{self.job.sides.head.name}-gate")
        for name in SIDES:
            source = BASE if name == BASE else HEAD
            plan, placement, servers = prepared[source]
            gate = {"job": job_id, "side": name, "blocks": self.blocks, "pairs": pairs.ids}
            folder = self._folder(out / name, plan, placement, servers, gate, versions if name == BASE else None)
            made_by = self._new_trial(name)
            runner = Runner(plan, placement, pools[source], folder, self.watch, self.interrupts, new_trial=made_by)
            self.state.sides[name] = _Side(plan, runner, folder)

    def _new_trial(self, side: str) -> NewTrial:
        """How trials of `side` are made: in processes on both sides, or in this process on both."""
        from pybench import _core

        environment = self.job.sides.environment
        if environment is None:
            return _core.Trial
        chosen = environment if side == BASE else Environment.of_this(environment.secrets)
        return cast("NewTrial", lambda spec: OtherTrial(chosen, spec))

    def _folder(
        self,
        path: Path,
        plan: Plan,
        placement: Placement,
        servers: Sequence[AnyServer],
        gate: dict[str, Any],
        versions: dict[str, Any] | None,
    ) -> RunFolder:
        from pybench.records import RunFolder, build_manifest

        matrix, sides = plan.matrix, self.job.sides
        manifest = build_manifest(
            name=matrix.name,
            seed=matrix.seed,
            matrix_given=sides.given[0 if gate["side"] == BASE else 1],
            matrix_expanded=matrix.to_dict(),
            cells=plan.cells,
            order=plan.order,
            servers=[server.manifest() for server in servers],
            placement=placement.manifest(),
            local_servers=[server.manifest() for server in placement.given],
            command=self.job.command,
            secrets=sides.base.secrets | sides.head.secrets,
        )
        manifest["gate"] = gate
        if versions is not None:
            manifest["versions"] = versions
        folder = RunFolder.create(path, manifest)
        self.state.folders.append(folder)
        folder.claim()
        return folder

    def _measure(self) -> bool:
        """Both rounds; whether they came to their end. Raises PybenchError, and KeyboardInterrupt of who insists."""
        head = self.state.sides[HEAD]
        try:
            if not self._round(range(1, self.blocks + 1), list(range(len(head.plan.cells))), checks=True):
                return False
            with self.watch.working("judging the first round", self._gathering_s()):
                suspects = self._answer(self._loaded()).suspects
            places = [place for place, cell in enumerate(head.plan.cells) if cell.id in suspects]
            if not places:
                return True
            names = ", ".join(suspects[:3]) + (f" and {len(suspects) - 3} more" if len(suspects) > 3 else "")
            self.watch.note(f"slower in the first round, measured once more: {names}")
            return self._round(range(self.blocks + 1, 2 * self.blocks + 1), places, checks=False)
        except KeyboardInterrupt:
            if self.interrupts.insisted:
                raise
            return False

    def _round(self, blocks: range, places: Sequence[int], *, checks: bool) -> bool:
        """Measure the pairs `places` in these blocks; False where the user asked to end."""
        slots = list(self._slots(blocks, places))
        head = self.state.sides[HEAD]
        around = self._around(checks=checks)
        self.watch.run_begins(head.plan.matrix.name, head.folder.path.parent, slots, len(slots), around)
        try:
            if checks:
                self._check()
            for slot in slots:
                self.state.sides[slot.side].runner.run_slot(slot)
                if self.interrupts.asked:
                    return False
        except PybenchError:
            for side in (self.state.sides[BASE], head):
                side.runner.check_servers()
            raise
        finally:
            self.watch.run_ends()
        return True

    def _around(self, *, checks: bool) -> Around:
        """What a round takes besides its trials: before it the checks of base and head, and the end of all sides."""
        sides = self.state.sides
        overhead_ns = TRIAL_OVERHEAD_NS + round(self.process_s * 1e9)
        checked = [sides[name].plan.cells for name in (BASE, HEAD)] if checks else []
        return Around(
            before_s=sum(before_trials_ns(cells, overhead_ns=overhead_ns) for cells in checked) / 1e9,
            overhead_s=overhead_ns / 1e9 if self.process_s else None,
            ending_s=self._gathering_s(),
        )

    def _slots(self, blocks: range, places: Sequence[int]) -> Iterator[Slot]:
        from pybench.running.runner import planned_s

        sides = self.state.sides
        plan = sides[HEAD].plan
        chosen = [plan.cells[place] for place in places]
        number = 0
        for block in blocks:
            for index, side in turns(plan.matrix.seed, block, chosen):
                cell = sides[side].plan.cells[places[index]]
                number += 1
                yield Slot(number, cell, block, planned_s(cell, plan.matrix), side)

    def _check(self) -> None:
        """Check servers, checker and locks of base and head. The head's checks are those of its second trials."""
        sides = self.state.sides
        for name in (BASE, HEAD):
            sides[name].runner.clear_leftovers()
            sides[name].runner.check(sides[name].plan.cells)
        head, again = sides[HEAD], sides[AGAIN]
        again.runner.clear_leftovers()
        again.folder.update_manifest(**{name: head.folder.manifest.get(name, []) for name in CHECKED})
        again.runner.observer.baselines = head.runner.observer.baselines

    def _gathering_s(self) -> float:
        cells = len(self.state.sides[HEAD].plan.cells)
        return len(SIDES) * gathering_s(cells, cells * self.blocks)

    def _loaded(self) -> dict[str, Run]:
        from pybench.records import load

        return {name: load(side.folder.path) for name, side in self.state.sides.items()}

    def _answer(self, runs: dict[str, Run], *, is_whole: bool = True) -> GateAnswer:
        return answer_of(runs[BASE], runs[HEAD], runs[AGAIN], self.job.band, is_whole=is_whole)

    def _outcome(self, error: PybenchError | None, *, is_whole: bool) -> GateOutcome:
        """Gather every folder, judge, and compute the exit code."""
        status: Literal["complete", "interrupted"] = "complete" if is_whole else "interrupted"
        runs: dict[str, Run] = {}
        for name, side in self.state.sides.items():
            try:
                runs[name] = side.folder.finish(status)
            except RecordError as unfinished:
                error = error or unfinished
        folder = self.state.folders[0].path.parent
        answer = None
        if len(runs) == len(SIDES) and all(len(run.trials) for run in runs.values()):
            answer = self._answer(runs, is_whole=is_whole)
        return GateOutcome(folder, runs, answer, exit_code(answer, runs, error, is_whole=is_whole), error, is_whole)


def exit_code(answer: GateAnswer | None, runs: dict[str, Run], error: PybenchError | None, *, is_whole: bool) -> Exit:
    """The exit code of a gate: a regression even where the user or an error ended the job after it was found."""
    codes = set() if error is None else {error.exit}
    if not is_whole and error is None:
        codes.add(Exit.INTERRUPTED)
    if answer is not None:
        codes |= {Exit.REGRESSION} if answer.outcome is Outcome.REGRESSION else set()
        codes |= {Exit.UNDECIDED} if answer.outcome is Outcome.UNKNOWN else set()
    for name, run in runs.items():
        measured = run.measured_exit
        if measured in (Exit.CONTROL_NOT_CAUGHT, Exit.GENERATOR_LATE):
            codes.add(measured)
        if name == HEAD and not all(result.passed for result in run.thresholds):
            codes.add(Exit.THRESHOLD_MISSED)
    return exits.first(codes)


def _require_free(out: Path | None) -> None:
    """Raise InputError where `out` is in use: better before the first trial than after it."""
    if out is not None and out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out} is not empty", hint="choose a new or an empty folder with --out")


def blocks_of(sides: Sides, cells: int) -> int:
    """Blocks of each round: as many as the user says, or as the default and the matrix say."""
    return sides.trials or max(blocks_by_default(cells), sides.head.trials)
