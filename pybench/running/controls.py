"""What a run proves of its checker and its locks before it measures: controls, planted faults, a probe of each lock.

A planted fault that the checker misses makes the run VOID, as a control that was missed does: its entry stands beside
that in the manifest. What a probe saw stands under `probes`; `analysis.probe_verdicts` says what follows from it.

Promises: plants and probes that an earlier part of the run kept still stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

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


def run_controls(
    folder: RunFolder, watch: Watch, backends: Iterable[str], measure: Callable[[str], tuple[Slot, TrialResult]]
) -> None:
    """Run one control for each of `backends`; those that an earlier part of the run caught still stand.

    Raises KeyboardInterrupt when a control was stopped.
    """
    entries = [entry for entry in folder.manifest["control"] if entry["caught"]]
    for backend in sorted(set(backends) - {entry["backend"] for entry in entries if "kind" not in entry}):
        slot, result = measure(backend)
        if result.stopped:
            raise KeyboardInterrupt
        entry = control_entry(slot.cell, result.totals, result.violations)
        entries.append(entry)
        folder.update_manifest(control=entries)
        verdict = Verdict.UNSAFE if entry["caught"] else Verdict.VOID
        watch.trial_ends(slot, Finished(None, None, entry["violations"], verdict))
        if not entry["caught"]:
            watch.note(f"{slot.cell.id} was not caught: whatever this run measures, it proves nothing (VOID)")


def run_plants(
    folder: RunFolder, watch: Watch, cells: Iterable[Cell], planted: Callable[[Cell], Sequence[tuple[str, bool]]]
) -> None:
    """Plant faults in the checker of each lock of `cells`, for each number of threads and of keys that they have."""
    # A plant that was missed is planted again; the control without a lock stands, be it caught or not.
    entries = [entry for entry in folder.manifest["control"] if entry["caught"] or "kind" not in entry]
    known = {probes.lock_of(entry) for entry in entries if "kind" in entry}
    for lock, members in probes.locks_of(cells).items():
        if lock in known:
            continue
        caught: dict[str, bool] = {}
        for cell in _unlike(members):
            for kind, found in planted(cell):
                caught[kind] = caught.get(kind, True) and found
        for kind, found in caught.items():
            strategy, arguments, backend = lock
            named = {"backend": backend, "strategy": strategy, "args": arguments, "kind": kind, "caught": found}
            entries.append(named)
            if not found:
                watch.note(
                    f"the checker missed a fault planted for {strategy} ({kind}): this run proves nothing (VOID)"
                )
        folder.update_manifest(control=entries)


def _unlike(cells: Sequence[Cell]) -> list[Cell]:
    """One of `cells` for each number of threads and of keys a grant: the ways in which they tell the checker."""
    return list({(cell.threads, cell.keys_per_grant): cell for cell in cells}.values())


def run_probes(
    folder: RunFolder, watch: Watch, cells: Iterable[Cell], measure: Callable[[Cell, int], Measured]
) -> None:
    """Probe each lock of `cells`. Raises KeyboardInterrupt when a probe was stopped."""
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
        again = None if late is None else _measured_late(late, measure)
        parts = [measured] if again is None else [measured, again]
        if late is not None and again is not None:
            late_record = _record(late, again)
            if broken_when_late(late_record.row):
                cell, record = late, late_record
        entry = probe_entry(cell, record.row, record.violations)
        if entry["promise_broken"] or not any(part.result.stopped or part.trouble for part in parts):
            entries.append(entry)
            folder.update_manifest(probes=entries)
        if entry["promise_broken"]:
            watch.note(f"{cell.id}: {entry['reason']}")
        for part in parts:
            if part.trouble is not None:
                # Only now: what the probe saw is kept.
                raise part.trouble.error
            if part.result.stopped:
                raise KeyboardInterrupt


def _is_over(measured: Measured, record: TrialRecord) -> bool:
    """Whether a probe needs no second part, or cannot have one."""
    return record.row["promise_broken"] or measured.result.stopped or measured.trouble is not None


def _measured_late(late: Cell, measure: Callable[[Cell, int], Measured]) -> Measured | None:
    """The second part of a probe; None of a lock whose timeouts allow no lease as short."""
    try:
        return measure(late, probes.LATE_NS)
    except ValueError:
        return None


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
