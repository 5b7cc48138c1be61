"""The verdict on histories: those of a run, trial by trial, and those of other programs, merged into one.

Promises: the history of a trial gets the counts, violations and sentences of the trial's record. With the folder of
its run it gets the verdict of the record, too: under the faults of its cell, and with the values of the guarded work.
Another program's history is SAFE only if grants were contended.
Does not do: knowing whether a program has written all that it did.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench import _core, exits
from pybench.analysis import fault_promises, verdicts
from pybench.analysis.disturbances import DISTURBED, Trouble, counted, proven
from pybench.analysis.evidence import LEAST_CONTENDED
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import Judgement, Verdict
from pybench.columns import EFFECT_COLUMNS
from pybench.errors import InputError, ServerError
from pybench.exits import Exit
from pybench.matrix.guards import recorded_guard
from pybench.numbers import plural
from pybench.records import histories
from pybench.records.manifest import MANIFEST, read_manifest
from pybench.records.tables import OF_CELL, gather, judged_row
from pybench.records.trial import violation_rows
from pybench.strategies import Exclusion, Judge, Promise

if TYPE_CHECKING:
    from pybench.core_results import JudgedHistory

FAULTS = "faults"
"""The axis of planned faults, as the id of a cell names it."""
CAUGHT: Sequence[Mapping[str, Any]] = ({"caught": True},)
"""A history has no control: the same checker has caught those of every run."""


@dataclass(frozen=True, slots=True)
class HistoryVerdict:
    """The verdict on the history of one trial, or on the merged histories of another program."""

    name: str
    """The id of the cell, or the name of the lock."""
    trial: int | None
    """None for another program."""
    files: list[str]
    terms: Terms
    judgement: Judgement
    counts: dict[str, int | None]
    violation_count: int
    violations: list[dict[str, Any]]
    """With their sentences, as in `violations.jsonl`: the first 100."""
    events: int
    clients: int
    keys: int
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """What `pybench judge --json` prints of it."""
        return {
            "name": self.name,
            "trial": self.trial,
            "verdict": self.judgement.verdict.value,
            "reason": self.judgement.reason,
            "promise_broken": self.judgement.promise_broken,
            "bound_per_million": self.judgement.bound_per_million,
            "promises": self.terms.columns(),
            "files": self.files,
            "events": self.events,
            "clients": self.clients,
            "keys": self.keys,
            "counts": self.counts,
            "violation_count": self.violation_count,
            "violations": self.violations,
            "notes": self.notes,
        }


@dataclass(frozen=True, slots=True)
class RunOfHistory:
    """What the manifest and the trials of a run add to its histories."""

    controls: Sequence[Mapping[str, Any]]
    probes: Sequence[Mapping[str, Any]]
    rows: Mapping[tuple[str, int], Mapping[str, Any]]
    cells: Mapping[str, Mapping[str, Any]]
    """The cells of the manifest, by id: also those of a trial without a record."""


def judge_paths(paths: Iterable[Path]) -> list[HistoryVerdict]:
    """Judge files and run folders. Raises InputError for a file that breaks the format, RecordError for one unread."""
    found: list[HistoryVerdict] = []
    files = []
    for path in paths:
        if path.is_dir():
            found += _of_folder(path)
        else:
            files.append((str(path), histories.pieces(path)))
    return found + _judged(files, None)


def exit_code(found: Iterable[HistoryVerdict]) -> Exit:
    """The exit code by these verdicts, as for a run."""
    codes = set()
    for one in found:
        if one.judgement.promise_broken:
            codes.add(Exit.PROMISE_BROKEN)
        if one.judgement.verdict is Verdict.VOID:
            codes.add(Exit.CONTROL_NOT_CAUGHT)
        if one.judgement.verdict is Verdict.UNDECIDED and one.terms.leave_something_to_decide:
            codes.add(Exit.UNDECIDED)
    return exits.first(codes)


def _of_folder(folder: Path) -> list[HistoryVerdict]:
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
    sources = list(histories.sources_of(folder))
    if not sources or manifest is None:
        raise InputError(
            f"{folder} has no history",
            hint="pybench run --history writes one; for other programs, name the files themselves",
        )
    rows = gather(folder, manifest).trials.to_pylist()
    run = RunOfHistory(
        manifest["control"],
        manifest.get("probes", ()),
        {(row["cell"], row["trial"]): row for row in rows},
        {cell["id"]: cell for cell in manifest.get("cells", ())},
    )
    return _judged(sources, run)


def _judged(sources: Iterable[tuple[str, Iterator[bytes]]], run: RunOfHistory | None) -> list[HistoryVerdict]:
    reader = _core.HistoryReader()
    try:
        for name, pieces in sources:
            reader.begin(name)
            for piece in pieces:
                reader.feed(piece)
            reader.end()
    except _core.FormatError as error:
        file, line, what = error.args
        raise InputError(f"{file}:{line}: {what}", hint="docs/judge.md describes the format of a history") from None
    latest: dict[object, JudgedHistory] = {}
    for number, history in enumerate(reader.judge()):
        key = histories.section_key(json.loads(history["header"]))
        # A trial that was run again replaces the earlier one, as in the record.
        latest[number if key is None else key] = history
    return [_verdict(history, run) for history in latest.values()]


def _verdict(history: JudgedHistory, run: RunOfHistory | None) -> HistoryVerdict:
    header = json.loads(history["header"])
    key, terms = histories.section_key(header), terms_of(header["promises"])
    row = run.rows.get(key) if run is not None and key is not None else None
    if run is not None and key is not None:
        terms = _in_run(terms, row, run.cells.get(key[0], {}))
    extra = dict(history["counts"])
    # Dictionaries as of a trial, but clients of other programs are texts.
    violations: list[Any] = [_with_numbers(one) if key else one for one in history["violations"]]
    totals: dict[str, Any] = dict(history["totals"]) | {name: 0 for name in verdicts.CIRCUMSTANCES if name in extra}
    trouble = None
    if extra.pop("disturbed", 0):
        trouble = Trouble(ServerError("the servers were disturbed"), extra.pop("intact_ns", float("inf")))
    totals, kept = counted(totals, violations, trouble)
    effects = {name: row[name] for name in EFFECT_COLUMNS} if row is not None and terms.guard else {}
    counts = dict.fromkeys(verdicts.EFFECTS) | effects | totals | extra
    rows = list(violation_rows(kept, terms, _zeros() | counts))
    judgement = proven(_judgement(counts, terms, key, row, run), DISTURBED if trouble else "complete")
    return HistoryVerdict(
        name=key[0] if key else header.get("lock") or "histories",
        trial=key[1] if key else None,
        files=list(history["files"]),
        terms=terms,
        judgement=judgement,
        counts={name: counts.get(name) for name in (*verdicts.COUNTS, *verdicts.CIRCUMSTANCES) if name in counts},
        violation_count=verdicts.violations(counts, terms),
        violations=rows,
        events=history["events"],
        clients=history["clients"],
        keys=history["keys"],
        notes=list(_notes(history, key, row, run, broken=judgement.promise_broken)),
    )


def _in_run(terms: Terms, row: Mapping[str, Any] | None, cell: Mapping[str, Any]) -> Terms:
    """`terms` under the faults of the trial's cell, and with its guard where the record has the values."""
    if row is None:
        return replace(terms, under=fault_promises.recorded(cell))
    return replace(terms, under=fault_promises.recorded(row), guard=recorded_guard(row["guard"]))


def _notes(
    history: JudgedHistory,
    key: tuple[str, int] | None,
    row: Mapping[str, Any] | None,
    run: RunOfHistory | None,
    *,
    broken: bool,
) -> Iterator[str]:
    for file, line in history["torn"]:
        yield f"{file}: line {line} was torn off and is left out"
    if history["finding"]:
        file, line = history["finding"]
        yield f"{file}:{line}: the event is impossible in the state of its client: {history['first_finding']}"
    if key and run and row is None:
        yield "the run has no record of this trial: it was killed in it, or the trial was run again"
    if key and not run and f" {FAULTS}=" in key[0] and broken:
        yield (
            f"{key[0]}, trial {key[1]}: a history alone does not say what its lock promises under faults; name the "
            "folder of the run instead"
        )


def _judgement(
    counts: Mapping[str, Any],
    terms: Terms,
    key: tuple[str, int] | None,
    row: Mapping[str, Any] | None,
    run: RunOfHistory | None,
) -> Judgement:
    """The judgement; `row` is the record of the trial."""
    if run is not None and row is not None:
        known = {name: row[name] for name in OF_CELL}
        return judged_row({**known, **counts, **terms.columns()}, run.controls, run.probes).judgement
    controls = CAUGHT if run is None else run.controls
    judgement = verdicts.judge(counts, terms, control_caught=verdicts.controls_caught(controls))
    contended = counts["contended_grants"] or 0
    if key is None and judgement.verdict is Verdict.SAFE and contended < LEAST_CONTENDED:
        few = f"no violation, but only {plural(contended, 'contended grant')}, and SAFE needs {LEAST_CONTENDED}"
        return replace(judgement, verdict=Verdict.UNDECIDED, reason=few, bound_per_million=None)
    return judgement


def terms_of(promises: Mapping[str, Any]) -> Terms:
    """The terms of a verdict by the promises in the header of a history."""
    made = {
        Promise.FENCE: promises["fences"],
        Promise.FIFO: promises["order"] == "promised",
        Promise.WAKE_UP: promises["wake_ups"],
    }
    return Terms(
        Exclusion(promises["exclusion"]),
        frozenset(promise for promise, is_made in made.items() if is_made),
        Judge(promises["judged_by"]),
    )


def _with_numbers(violation: Any) -> Any:  # noqa: ANN401 - the dictionary of the core
    """A violation of a run, whose clients are numbers."""
    clients = {name: violation[name] for name in ("first_client", "second_client")}
    return violation | {name: None if client is None else int(client) for name, client in clients.items()}


def _zeros() -> dict[str, int | None]:
    return {kind.column: 0 for kind in verdicts.KINDS.values()}
