"""The end of a test as a run folder: one cell, one trial that is the merge of all sites, and a row for each site.

What is honestly judged:

- Without shared keys each checker saw every rival of its own keys. The merged trial is judged by the sum of all counts.
- With shared keys a lock that is judged by its writes (`layered`, `pg-optimistic`, `pg-serializable`) is judged by the
  writes of all sites together and the final values, which the conductor reads once. Any other lock stays UNDECIDED
  unless a checker saw a violation among the grants of its own site: nobody saw the grants of all. Fences order grants,
  but here no resource checks them, so they decide nothing either.
- Of a lost site the counts that it had reported are judged. Where writes are the judge, its writes are unknown.

Clocks of different hosts only place the time lines of sites beside each other; no verdict depends on them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench import exits
from pybench.analysis.disturbances import Trouble, first_of
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import Verdict, controls_caught, judge_cell, violations
from pybench.exits import Exit
from pybench.numbers import plural
from pybench.records import trial_record, workers
from pybench.records.manifest import cell_entry
from pybench.records.parts import Placed, TrialPart, merge
from pybench.records.tables import judged_row
from pybench.report import write_report
from pybench.running.aftermath import all_is_released, cleared, ended, refusals
from pybench.running.trial_servers import DatabaseSpent, Spent, spent_calls, spent_cpu_us
from pybench.strategies import CATALOGUE, Judge, arguments_text
from pybench.swarm.site import Site, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.errors import PybenchError
    from pybench.matrix.cells import Cell
    from pybench.records import Run, TrialRecord
    from pybench.strategies import Strategy
    from pybench.swarm.conductor import Test

Apart = Callable[[Callable[[], Any]], Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test came to."""

    folder: Path
    verdict: Verdict | None
    """None where nothing was measured."""
    reason: str
    exit: Exit
    run: Run | None
    row: dict[str, Any]
    """The row of the merged trial; empty where nothing was measured."""

    @classmethod
    def failed(cls, error: PybenchError, folder: Path) -> Outcome:
        """The outcome of a test that `error` ended before anything was recorded."""
        return cls(folder, None, error.message, error.exit, None, {})


@dataclass(frozen=True, slots=True)
class _Measured:
    """The counts of one site, and what its servers say of them."""

    site: Site
    part: TrialPart
    values: NDArray[np.uint64] | None
    left_over_keys: int | None


def record(test: Test, problem: PybenchError | None, apart: Apart) -> Outcome:
    """Judge the sites of `test`, and write its run folder and its reports. Raises RecordError.

    `problem` is an error of a site, for the exit code.
    """
    wall_s = (time.time_ns() - test.started_ns) / 1e9
    measured, spent, trouble = _measured(test)
    if trouble is not None:
        test.watch.note(f"its servers were disturbed: {trouble.error.message}")
    _note_missed_plants(test)
    rows = _rows(test, measured, trouble)
    errors = {problem.exit} if problem is not None else set()
    if measured:
        shared = test.prepared.settings.shared_keys
        cell = _cell(test, sum(one.site.most_clients for one in measured))
        test.folder.update_manifest(**_described(test, cell, wall_s))
        merged = _merged(test, measured, cell, spent, trouble, wall_s, shared=shared)
        test.folder.add_trial(merged, trouble=trouble)
    workers.write(test.folder.path, rows)
    test.folder.update_manifest(swarm=_swarm(test))
    run: Run = apart(lambda: test.folder.finish("complete"))
    apart(lambda: write_report(run))
    if not measured:
        reason = problem.message if problem is not None else "no process measured anything"
        return Outcome(run.path, None, reason, exits.first(errors or {Exit.OK}), run, {})
    row = {str(name): value for name, value in run.trials.iloc[0].items()}
    if trouble is not None:
        errors.add(trouble.error.exit)
    caught = controls_caught(test.folder.manifest["control"])
    judgement = judge_cell(run.trials, control_caught=caught)
    disturbed = None if trouble is None else f"its servers were disturbed: {trouble.error.message}"
    reason = judgement.reason if disturbed is None or judgement.verdict is Verdict.UNSAFE else disturbed
    return Outcome(
        run.path,
        Verdict(run.summary["verdict"].iloc[0]),
        reason,
        exits.first({run.exit_code, *errors}),
        run,
        row,
    )


def _measured(test: Test) -> tuple[list[_Measured], Sequence[Spent], Trouble | None]:
    """The sites that counted anything, with the usage of the servers, and what disturbed them."""
    measured: list[_Measured] = []
    troubles: list[Trouble] = []
    used: list[Spent] = []
    seen: list[int] = []
    for site in test.sites.values():
        part = site.counts()
        if part is None or id(site.sides) in seen:
            spent: list[Spent] = []
        else:
            seen.append(id(site.sides))
            spent, found = ended(site.sides, part)
            troubles += [*found, *refusals(replace(part, stopped=False), site.sides, site.cell)]
        used = used or spent
        if part is None:
            continue
        left, trouble = (0, None) if test.shared is not None else cleared(site.sides)
        troubles += [] if trouble is None else [trouble]
        is_released = site.part is not None and all_is_released(site.cell, replace(part, stopped=False))
        # A site of a shared set of keys cannot tell which of them it left.
        is_released = is_released and trouble is None and test.shared is None
        values = next((one.final_values for one in spent if isinstance(one, DatabaseSpent)), None)
        # The stop is the normal end of such a trial; what it cut off had no time to finish.
        complete = replace(part, stopped=False, totals={**part.totals, "abandoned": 0})
        measured.append(_Measured(site, complete, values, left if is_released else None))
    return measured, used, first_of(troubles)


def _note_missed_plants(test: Test) -> None:
    """Enter the planted faults that the checker of a site missed: the run proves nothing."""
    cell = test.prepared.cell
    missed = sorted({kind for site in test.sites.values() for kind in site.missed_plants})
    entries = [
        {
            "backend": cell.backend,
            "strategy": cell.strategy,
            "args": arguments_text(cell.args),
            "kind": kind,
            "caught": False,
        }
        for kind in missed
    ]
    if entries:
        test.folder.update_manifest(control=[*test.folder.manifest["control"], *entries])


def _cell(test: Test, clients: int) -> Cell:
    """The cell of the merged trial: the most clients that worked."""
    settings = test.prepared.settings
    return settings.cell(settings.matrix(clients))


def _described(test: Test, cell: Cell, wall_s: float) -> dict[str, Any]:
    """The entries of the manifest that name the cell, whose clients are known only at the end."""
    matrix = test.prepared.settings.matrix(cell.concurrency, window_s=wall_s)
    return {
        "cells": [cell_entry(cell)],
        "order": [[0]],
        "matrix": {"given": None, "expanded": matrix.to_dict()},
    }


def _swarm(test: Test) -> dict[str, Any]:
    from importlib.metadata import version

    settings = test.prepared.settings
    return {
        "locust": version("locust"),
        "workers": len(test.sites),
        "clients_per_user": settings.clients_per_user,
        "shared_keys": settings.shared_keys,
        "notes": list(test.watch.texts),
    }


def _strategy(test: Test, *, shared: bool) -> Strategy:
    """The strategy with its arguments; what judges it depends on who saw its grants."""
    cell = test.prepared.cell
    strategy = CATALOGUE[cell.strategy].with_arguments(cell.args)
    # What a lost site did is unknown.
    several = sum(site.tally["grants"] > 0 or site.state is State.LOST for site in test.sites.values()) > 1
    return (
        replace(strategy, judged_by=Judge.PART)
        if shared and several and strategy.judged_by is Judge.BELIEF
        else strategy
    )


def _merged(
    test: Test,
    measured: Sequence[_Measured],
    cell: Cell,
    spent: Sequence[Spent],
    trouble: Trouble | None,
    wall_s: float,
    *,
    shared: bool,
) -> TrialRecord:
    first_ns = min(one.site.shift_ns(0) for one in measured)
    strategy = _strategy(test, shared=shared)
    parts = worst_counts([one.part for one in measured], Terms.of(strategy))
    placed = [
        Placed(part, one.site.name, one.site.shift_ns(first_ns)) for one, part in zip(measured, parts, strict=True)
    ]
    whole = placed[0].part if len(placed) == 1 else merge(placed, shared_keys=shared)
    database = next((one for one in spent if isinstance(one, DatabaseSpent)), None)
    left = [one.left_over_keys for one in measured]
    made = trial_record(
        cell,
        trial=1,
        block=1,
        started_at=datetime.fromtimestamp(test.started_ns / 1e9, UTC),
        result=whole,
        servers=test.prepared.servers,
        server_cpu_us=spent_cpu_us(spent),
        server_calls=spent_calls(spent),
        database_figures=None if database is None else database.record(),
        final_values=_final_values(test, measured, shared=shared),
        left_over_keys=None if None in left else sum(filter(None, left)),
        strategy=strategy,
        wall_s=wall_s,
        round_trip_us=test.observer.idle_calls_us(test.prepared.cell),
        trouble=trouble,
    )
    # Users come and go, so a client without a grant need not have starved, and the mean number of clients is unknown.
    return replace(made, row={**made.row, "starved_clients": None, "clients_served": None})


def worst_counts(parts: Sequence[TrialPart], terms: Terms) -> list[TrialPart]:
    """`parts` such that the verdict on their sum is the worst of their own.

    A checker that saw an impossible order of events proves nothing, of its own part. What another checker found stands:
    then the findings are left out of the sum, and remain in the row of their worker.
    """
    has_proof = any(violations(part.totals, terms) for part in parts if not part.totals.get("findings"))
    if not has_proof:
        return list(parts)
    return [replace(part, totals={**part.totals, "findings": 0}) for part in parts]


def _final_values(test: Test, measured: Sequence[_Measured], *, shared: bool) -> NDArray[np.uint64] | None:
    """The final value of each key, in the order in which the merged trial lists its writes; None where one is unknown.

    The writes of a lost site are unknown, and those of shared keys with them.
    """
    if any(site.part is None and (site.state is State.LOST or site.tally.elapsed_ns) for site in test.sites.values()):
        return None
    values = [one.values for one in measured]
    if shared:
        return next((one for one in values if one is not None), None)
    known = [one for one in values if one is not None]
    return np.concatenate(known) if known and len(known) == len(values) else None


def _rows(test: Test, measured: Sequence[_Measured], trouble: Trouble | None) -> list[dict[str, Any]]:
    """A row of `workers.parquet` for each site, with its own verdict."""
    known = {one.site.id: one for one in measured}
    rows = []
    for site in test.sites.values():
        row: dict[str, Any] = {
            "worker": site.name,
            "host": site.origin.host,
            "state": site.state.value,
            "clients": site.most_clients,
            "joined_s": (site.joined_ns - test.started_ns) / 1e9,
            "left_s": None if site.left_ns is None else (site.left_ns - test.started_ns) / 1e9,
            "clock_offset_us": _us(site.clock.offset_ns),
            "clock_error_us": _us(site.clock.error_ns),
            "note": _note(test, site),
            "grants": 0,
            "violations": 0,
        }
        if site.id in known:
            row |= _figures(test, known[site.id], trouble)
        rows.append(row)
    return rows


def _figures(test: Test, one: _Measured, trouble: Trouble | None) -> dict[str, Any]:
    shared = test.prepared.settings.shared_keys
    strategy = _strategy(test, shared=shared)
    made = trial_record(
        replace(one.site.cell, concurrency=max(one.site.most_clients, 1)),
        trial=1,
        block=1,
        started_at=datetime.fromtimestamp(one.site.joined_ns / 1e9, UTC),
        result=one.part,
        servers=test.prepared.servers,
        server_cpu_us=None,
        # With shared keys only all writes together can be compared with the final values.
        final_values=None if shared or one.site.part is None else one.values,
        left_over_keys=one.left_over_keys,
        strategy=strategy,
        trouble=trouble,
    )
    manifest = test.folder.manifest
    judgement = judged_row(made.row, manifest["control"], manifest.get("probes", ())).judgement
    names = ("grants", "grants_per_s", "contended_grants", "acquire_p50_us", "acquire_p99_us", "send_delay_p99_us")
    is_part = shared and Terms.of(strategy).by_effects
    return {
        **{name: made.row[name] for name in names},
        "violations": made.row["violations"],
        "verdict": None if is_part else judgement.verdict.value,
        "reason": "judged by the writes of all workers together" if is_part else judgement.reason,
    }


def _note(test: Test, site: Site) -> str | None:
    """What a reader must know of the row of `site`; None where there is nothing."""
    if site.error is not None:
        return site.error
    if site.state is State.LOST:
        since = (
            "nothing was reported"
            if site.reported_ns is None
            else (f"its figures end with its last report at {(site.reported_ns - test.started_ns) / 1e9:.1f} s")
        )
        return f"lost: {since}; what it did afterwards is unknown, and it has no time line"
    if site.missed_plants:
        return f"its checker missed {plural(len(site.missed_plants), 'planted fault')}"
    return None


def _us(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e3
