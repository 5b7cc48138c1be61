"""Searches of a run: probe by probe, each saved when it is over, until the limit of a cell is found.

A search is one trial of its cell. Its record is that of the last confirmation, of the probe in which the checker found
a violation, or, without a limit, of the last probe.

Promises: a search that was interrupted or killed goes on at the probe at which it ended. The trial is saved before the
probe that completes it, so a probe that is measured twice changes nothing.
Does not do: choosing rates, see `planning.limit_search`; judging probes, see `analysis.search_outcomes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.analysis.search_outcomes import of_a_probe, outcome_of
from pybench.formats import Format
from pybench.matrix.durations import format_rate
from pybench.numbers import plural
from pybench.planning.limit_search import Ask, Bounds, Ended, Phase, Shown, limit_of, next_step
from pybench.planning.searches import bounds_of
from pybench.records import search_probes

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.records import RunFolder, TrialRecord
    from pybench.running.interrupts import Interrupts
    from pybench.running.observer import Measured
    from pybench.running.watch import Slot

Measure = Callable[["Slot"], "tuple[TrialRecord, Measured]"]
"""Measures the cell of a slot, and makes the record of it."""
Tell = Callable[[str], None]
"""Is told of each phase that ends, in words."""


@dataclass
class Search:
    """The search of one trial of a cell."""

    slot: Slot
    bounds: Bounds
    rows: list[dict[str, Any]]
    """The probes so far, as in `probes.parquet`."""

    @property
    def shown(self) -> list[Shown]:
        """The outcomes of the probes so far."""
        return [Shown(row["shown"]) for row in self.rows]

    @property
    def next(self) -> Ask | None:
        """The next probe; None at the end."""
        step = next_step(self.bounds, self.shown)
        return step if isinstance(step, Ask) else None


def search_of(
    slot: Slot, matrix: Matrix, probes: Mapping[tuple[str, int], Sequence[Mapping[str, Any]]], *, is_saved: bool
) -> Search:
    """The search of `slot`, with the probes of an earlier part of the run.

    Without the trial that a found limit has (`is_saved`), the search begins anew.
    """
    bounds = bounds_of(slot.cell, matrix, slot.block)
    rows = [dict(row) for row in probes.get((slot.cell.id, slot.block), ())]
    search = Search(slot, bounds, rows)
    if not is_saved and limit_of(bounds, search.shown) is not None:
        search.rows = []
    return search


def run_search(
    search: Search,
    matrix: Matrix,
    folder: RunFolder,
    interrupts: Interrupts,
    measure: Measure,
    tell: Tell,
    *,
    is_saved: bool,
) -> TrialRecord | None:
    """Run `search` to its end; returns the record of its trial, None where an earlier part of the run saved it.

    An interrupted search returns the record of its last probe, which is not complete. Raises the ServerError that ended
    a probe, after it was saved.
    """
    thresholds = [threshold for threshold in matrix.thresholds if of_a_probe(threshold)]
    saved: TrialRecord | None = None
    if not search.rows:
        folder.forget_probes(search.slot.cell.id, search.slot.block)
    while (ask := search.next) is not None:
        number = len(search.rows) + 1
        record, measured = measure(_slot_of(search.slot, ask, number))
        # The columns of the axes are those of the cell, whose rate the search sets.
        record = replace(record, row=record.row | search.slot.cell.columns())
        trouble = measured.trouble
        if record.row["status"] != "complete":
            # A violation counts whatever else befell the probe. A saved trial is not replaced by one without a limit.
            if record.row["violations"] or not (is_saved or saved):
                folder.add_trial(record, recorded=measured.result.recorded, trouble=trouble)
            if trouble is not None:
                raise trouble.error
            return saved or record
        outcome = outcome_of(record.row, measured.result, thresholds)
        row = search_probes.row_of(record, number, ask, outcome, measured.result)
        found = _newly_found(search, outcome.shown)
        if found is not None:
            saved = _with_limit(record, found, [*search.rows, row])
            folder.add_trial(saved, recorded=measured.result.recorded)
        else:
            _forget_recording(measured)
        folder.add_probe(row)
        search.rows.append(row)
        if search.next is None or search.next.phase is not ask.phase:
            tell(phase_text(search.rows))
        if interrupts.asked:
            break
    return saved


def phase_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The latest phase of the search with the probes `rows`: `up, 6 probes: 80/s held, 160/s failed (throughput)`."""
    phase = rows[-1]["phase"]
    own = list(reversed(list(takewhile(lambda row: row["phase"] == phase, reversed(rows)))))
    by = {shown: [row for row in own if row["shown"] == shown] for shown in Shown}
    if phase == Phase.CURVE:
        return f"{phase}: latency measured at {plural(len({row['rate_per_s'] for row in own}), 'load')}"
    held = max((row["rate_per_s"] for row in by[Shown.HELD]), default=0.0)
    # A rate that failed and then held has held.
    failed = min((row for row in by[Shown.FAILED] if row["rate_per_s"] > held), key=_rate_of, default=None)
    found = [
        *([f"{_per_s(held)} held"] if held else []),
        *([f"{_per_s(failed['rate_per_s'])} failed ({failed['limited_by']})"] if failed else []),
        *([f"{plural(len(by[Shown.LATE]), 'probe')} with a late load generator"] if by[Shown.LATE] else []),
        *(f"{_per_s(row['rate_per_s'])} unsafe" for row in by[Shown.UNSAFE]),
    ]
    return f"{phase}, {plural(len(own), 'probe')}: {', '.join(found)}"


def _rate_of(row: Mapping[str, Any]) -> float:
    return float(row["rate_per_s"])


def _per_s(rate: float) -> str:
    return f"{Format.RATE.text(rate)}/s"


def limit_text(row: Mapping[str, Any]) -> str:
    """The result of a search in words, by the columns of its trial; empty for a trial without one."""
    limit, high = row["limit_per_s"], row["limit_high_per_s"]
    if limit is None:
        return "" if row["search_probes"] is None else "no limit found"
    above = f"{_per_s(high)} failed: {row['limited_by']}" if high is not None else "no rate failed"
    return f"limit {_per_s(limit)} ({above})"


def _slot_of(slot: Slot, ask: Ask, number: int) -> Slot:
    """The slot of one probe of the search of `slot`."""
    text = f"probe {number} ({ask.phase.value}) at {format_rate(float(f'{ask.rate_per_s:.4g}'))}"
    return replace(slot, cell=slot.cell.at_rate(ask.rate_per_s), probe=number, probe_text=text)


def _newly_found(search: Search, shown: Shown) -> Ended | None:
    """The end of the search for the limit, where this probe brings it about; also a violation at any later load."""
    if shown is Shown.UNSAFE:
        return Ended(None, None, unsafe=True)
    if limit_of(search.bounds, search.shown) is not None:
        return None
    return limit_of(search.bounds, [*search.shown, shown])


def _with_limit(record: TrialRecord, found: Ended, rows: Sequence[Mapping[str, Any]]) -> TrialRecord:
    """The record of the trial of a search: that of its last probe, with the limit."""
    columns = {
        "limit_per_s": found.limit_per_s,
        "limit_high_per_s": found.high_per_s if found.limit_per_s is not None else None,
        "limited_by": _limited_by(found, rows),
        "search_probes": sum(row["phase"] != Phase.CURVE for row in rows),
    }
    return replace(record, row=record.row | columns)


def _limited_by(found: Ended, rows: Iterable[Mapping[str, Any]]) -> str | None:
    """What the lowest rate that failed exceeded; without a limit, what the last probe that did not hold showed."""
    failed = [row for row in rows if row["limited_by"] is not None]
    if found.limit_per_s is not None:
        failed = [row for row in failed if row["rate_per_s"] == found.high_per_s]
    return str(failed[-1]["limited_by"]) if failed else None


def _forget_recording(measured: Measured) -> None:
    """Remove the events of a probe: the history of a trial is that of the probe that its record describes."""
    recorded = measured.result.recorded
    for file in recorded["files"] if recorded else ():
        Path(file).unlink(missing_ok=True)
