"""The checks of a run before it measures: controls and planted faults test the checker, and probes test each lock.

A missed planted fault makes the run VOID, like a missed control; both have entries under `control` in the manifest. The
results of probes are under `probes`; `analysis.probe_verdicts` applies them.

Promises: a resumed run keeps the caught plants and the probes of its earlier part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pybench.analysis.evidence import LEAST_CONTENDED
from pybench.analysis.probe_verdicts import broken_when_late, probe_entry
from pybench.analysis.verdicts import Verdict
from pybench.planning import probes
from pybench.records import control_entry, trial_record
from pybench.running.watch import Finished
from pybench.strategies import CATALOGUE

if TYPE_CHECKING:
    from pybench._core import TrialResult
    from pybench.matrix.cells import Cell
    from pybench.records import RunFolder, TrialRecord
    from pybench.running.observer import Measured
    from pybench.running.watch import Slot, Watch

Measure = Callable[["Cell", int], "Measured"]
"""Measures a cell once, for so many nanoseconds."""


def run_controls(
    folder: RunFolder, watch: Watch, controls: Iterable[Cell], measure: Callable[[Cell], tuple[Slot, TrialResult]]
) -> None:
    """Run `controls`, except those that an earlier part of the run caught.

    Raises KeyboardInterrupt when a control was stopped.
    """
    entries = [entry for entry in folder.manifest["control"] if entry["caught"]]
    known = {_tested_by(entry) for entry in entries if "kind" not in entry}
    for cell in controls:
        if _tested_by(cell.columns()) in known:
            continue
        slot, result = measure(cell)
        if result.stopped:
            raise KeyboardInterrupt
        entry = control_entry(slot.cell, result.totals, result.violations)
        entries.append(entry)
        folder.update_manifest(control=entries)
        verdict = Verdict.UNSAFE if entry["caught"] else Verdict.VOID
        watch.trial_ends(slot, Finished(None, None, entry["violations"], verdict))
        if not entry["caught"]:
            watch.note(f"the checker missed the overlaps of the {slot.cell.id}: this run proves nothing (VOID)")


def _tested_by(control: Mapping[str, Any]) -> tuple[str, bool]:
    """What `control`, a row or an entry of the manifest, tests: the backend, and whether it has worker processes."""
    return control["backend"], bool(control.get("processes"))


def run_plants(
    folder: RunFolder, watch: Watch, cells: Iterable[Cell], planted: Callable[[Cell], Sequence[tuple[str, bool]]]
) -> None:
    """Plant faults in the checker of each lock of `cells`, for each number of threads and of keys per grant."""
    # A missed plant is planted again. The control of a backend stays, caught or not.
    entries = [entry for entry in folder.manifest["control"] if entry["caught"] or "kind" not in entry]
    known = {probes.lock_of(entry) for entry in entries if "kind" in entry}
    for lock, members in probes.locks_of(cells).items():
        if lock in known:
            continue
        caught: dict[str, bool] = {}
        for cell in _unlike(members):
            for kind, is_caught in planted(cell):
                caught[kind] = caught.get(kind, True) and is_caught
        for kind, is_caught in caught.items():
            strategy, arguments, backend = lock
            entry = {"backend": backend, "strategy": strategy, "args": arguments, "kind": kind, "caught": is_caught}
            entries.append(entry)
            if not is_caught:
                watch.note(
                    f"the checker missed a fault planted for {strategy} ({kind}): this run proves nothing (VOID)"
                )
        folder.update_manifest(control=entries)


def _unlike(cells: Sequence[Cell]) -> list[Cell]:
    """One of `cells` for each number of threads and of keys per grant, on which the checker's work depends."""
    return list({(cell.threads, cell.keys_per_grant): cell for cell in cells}.values())


def run_probes(
    folder: RunFolder,
    watch: Watch,
    cells: Iterable[Cell],
    measure: Measure,
    late_ways: Callable[[Cell], Sequence[Measure]],
) -> None:
    """Probe each lock of `cells`. Raises KeyboardInterrupt when a probe was stopped.

    `late_ways` are the ways to measure the second part of a probe, which share its time.
    """
    entries = list(folder.manifest.get("probes", ()))
    known = {probes.lock_of(entry) for entry in entries}
    for cell in probes.probe_cells(cells):
        if probes.lock_of(cell.columns()) in known:
            continue
        measured = measure(cell, probes.PROBE_NS)
        record = _record(cell, measured)
        if (
            measured.trouble is None
            and not record.row["violations"]
            and record.row["contended_grants"] < LEAST_CONTENDED
        ):
            measured = measure(cell, probes.LONGER_NS)
            record = _record(cell, measured)
        late = None if _is_over(measured, record) else probes.late_cell(cell)
        parts = [measured]
        if late is not None:
            for again in _measured_late(late, late_ways(late)):
                parts.append(again)
                late_record = _record(late, again)
                if broken_when_late(late_record.row):
                    cell, record = late, late_record
                if _is_over(again, late_record):
                    break
        entry = probe_entry(cell, record.row, record.violations)
        if entry["promise_broken"] or not any(part.result.stopped or part.trouble for part in parts):
            entries.append(entry)
            folder.update_manifest(probes=entries)
        if entry["promise_broken"]:
            watch.note(f"{cell.id}: {entry['reason']}")
        for part in parts:
            if part.trouble is not None:
                # Raised last, so that the result of the probe is saved.
                raise part.trouble.error
            if part.result.stopped:
                raise KeyboardInterrupt


def _is_over(measured: Measured, record: TrialRecord) -> bool:
    """Whether a probe needs no second part, or cannot have one."""
    return record.row["promise_broken"] or measured.result.stopped or measured.trouble is not None


def _measured_late(late: Cell, ways: Sequence[Measure]) -> Iterator[Measured]:
    """The second part of a probe in all `ways`; none for a lock whose timeouts do not allow so short a lease."""
    for measure in ways:
        try:
            measured = measure(late, probes.LATE_NS // len(ways))
        except ValueError:
            return
        yield measured


def _record(cell: Cell, measured: Measured) -> TrialRecord:
    database = measured.database
    return trial_record(
        cell,
        trial=0,
        block=0,
        started_at=measured.started_at,
        result=measured.result,
        servers=(),
        server_cpu_us=None,
        final_values=None if database is None else database.final_values,
        left_over_keys=measured.left_over_keys,
        strategy=CATALOGUE[cell.strategy].with_arguments(cell.args),
    )
