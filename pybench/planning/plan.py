"""The plan of a run: the cells and their order, the refused cells with reasons, the time and the servers needed.

Promises: a function of the matrix and of the given limits alone; planning contacts no server. The same matrix gives the
same order, and adding a cell leaves the order of the others unchanged.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pybench.errors import InputError
from pybench.machine import cores_allowed
from pybench.matrix import Matrix, expand, idle_excludes
from pybench.matrix.cells import Cell
from pybench.matrix.durations import MS, S
from pybench.matrix.places import parts_of_place
from pybench.matrix.shortening import end_of_faults_ns, with_shorter_stages
from pybench.numbers import plural
from pybench.planning import control
from pybench.planning import probes as probing
from pybench.planning.ceilings import most_per_s
from pybench.planning.ending import ending_s
from pybench.planning.forecast import hold_tails, p99_forecast
from pybench.planning.impossible import why_impossible
from pybench.planning.limits import NO_LIMITS, Limits
from pybench.planning.needs import Demand, Group, call_conditions_of, largest
from pybench.planning.network import network_warnings, rate_warnings
from pybench.planning.process_rules import process_warnings, starting_ns
from pybench.planning.searches import most_probes_of, usual_probes_of
from pybench.planning.trial_spec import slowest_ns
from pybench.planning.unlike_servers import ServerAccess, mixed, transport_of
from pybench.quota import cpu_quota, quota_sentence
from pybench.strategies import CATALOGUE, ServerKind

QUICK_TRIALS, QUICK_WARMUP_NS, QUICK_DURATION_NS = 4, 100 * MS, 300 * MS
QUICK_STEADY_NS = 3 * S
QUICK_STAGES_NS = 2 * S
"""Twenty steps of the time line: enough to see how figures follow the load."""

TRIAL_OVERHEAD_NS = 70 * MS
"""Connecting, draining, reading the server's figures, removing keys and saving, as measured on two busy cores."""

SCHEMA_NS = 50 * MS
"""Creating and dropping the schema and table of one trial on a database, without the rows."""
ROW_NS = 7_000
"""Creating and dropping one row of that table."""

ROUND_TRIPS = 4
"""How many round trips of the axis `rtt` the clients of a trial need to finish. Connecting is not delayed."""

SERVER_START_NS = 300 * MS
DATABASE_START_NS = 2 * S
"""Until a new Postgres has created its data folder and accepts connections."""
REPLICAS_COUNTED_NS = 1 * S
"""Until a primary counts its replicas."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A cell that cannot be measured; `reason` ends with what to change."""

    cell: Cell
    reason: str


@dataclass(frozen=True, slots=True)
class ServerNeed:
    """Interchangeable servers of the run. Cells that differ in `appendfsync` or in replicas need different servers."""

    backend: str
    kind: ServerKind
    appendfsync: str
    servers: int
    """The most independent servers that any cell needs."""
    replicas: int
    """How many replicas each server has."""
    given: list[str] | None
    """The addresses of given servers, with passwords masked; None where pybench starts the servers."""
    connections: int
    """The most connections that the clients of any cell open to one server."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The work that `run` will carry out."""

    matrix: Matrix
    cells: list[Cell]
    refused: list[Refused]
    order: list[list[int]]
    """One block for each trial: every index into `cells` once, in an order drawn from the seed."""
    servers: list[ServerNeed]
    seconds_per_trial: float
    """Seconds for one trial of the cell with the longest window: warm-up, window and overhead."""
    seconds: float
    """Seconds for the whole run, including controls, the start of servers and the report."""
    seconds_at_most: float
    """The same where every search needs as many probes as it may take, and every warm-up its longest time."""

    @property
    def notes(self) -> list[str]:
        """Remarks on the matrix, a sentence each: a quota of the CPU, and entries that match no cell."""
        rows = [cell.columns() for cell in self.cells]
        every = [*self.cells, *(refused.cell for refused in self.refused)]
        used = {name for cell in every for name in backends_of(cell)}
        return [
            *filter(None, [quota_sentence(cpu_quota(), cores_allowed())]),
            *(f"no cell uses the backend {name}" for name in self.matrix.backends if name not in used),
            *(f"exclude matches no cell: {entry}" for entry in idle_excludes(self.matrix)),
            *(
                f"this threshold matches no cell and will fail: {threshold.text}"
                for threshold in self.matrix.thresholds
                if not any(threshold.selects(row) for row in rows)
            ),
        ]

    @property
    def warnings(self) -> list[str]:
        """Limits of what the figures of this plan will show, a sentence each; `run` prints them, too."""
        unlike = mixed(
            [ServerAccess(need.backend, need.given is not None, transport_of(need.given)) for need in self.servers]
        )
        by_network = [*network_warnings(self.cells), *rate_warnings(self.cells, most_per_s)]
        by_cores = process_warnings(self.cells, cores_allowed())
        return [*([unlike] if unlike else []), *hold_tails(self.cells), *by_network, *by_cores]

    @property
    def tails(self) -> list[str]:
        """How long a p99 takes, where it is longer than a trial."""
        return p99_forecast(self.cells, self.matrix)

    @property
    def searches(self) -> list[str]:
        """How many probes the searches for a limit take, a sentence for each number; empty without a search."""
        cells = [cell for cell in self.cells if cell.mode.is_search]
        alike = Counter((usual_probes_of(cell, self.matrix), most_probes_of(cell, self.matrix)) for cell in cells)
        return [
            f"searches for the limit of {plural(count, 'cell')}: about {usual} probes a trial, at most {most}"
            for (usual, most), count in sorted(alike.items())
        ]

    def require_cells(self) -> None:
        """Raise InputError when every cell is refused."""
        if not self.cells:
            reason = self.refused[0]
            raise InputError("every cell of this matrix is refused", hint=f"{reason.cell.id}: {reason.reason}")

    def to_dict(self) -> dict[str, Any]:
        """The output of `pybench plan --json`: cells as their ids, times in seconds."""
        return {
            "name": self.matrix.name,
            "seed": self.matrix.seed,
            "trials": self.matrix.trials,
            "cells": [{"id": cell.id} for cell in self.cells],
            "notes": self.notes,
            "warnings": self.warnings,
            "tails": self.tails,
            "refused": [{"id": refused.cell.id, "reason": refused.reason} for refused in self.refused],
            "order": self.order,
            "servers": [
                {
                    "backend": need.backend,
                    "kind": need.kind.value,
                    "appendfsync": need.appendfsync,
                    "servers": need.servers,
                    "replicas": need.replicas,
                    "given": need.given,
                    "connections": need.connections,
                }
                for need in self.servers
            ],
            "seconds_per_trial": self.seconds_per_trial,
            "seconds": self.seconds,
            "seconds_at_most": self.seconds_at_most,
            "searches": self.searches,
        }


def make_plan(matrix: Matrix, limits: Limits = NO_LIMITS) -> Plan:
    """Plan `matrix`. Raises InputError when it excludes all of its own cells."""
    cells: list[Cell] = []
    refused: list[Refused] = []
    for cell in expand(matrix):
        reason = why_impossible(cell, matrix, limits)
        if reason is None:
            cells.append(cell)
        else:
            refused.append(Refused(cell, reason))
    return _plan(matrix, cells, refused)


def quickened(matrix: Matrix) -> Matrix:
    """The matrix with at most 4 trials of 100 ms warm-up and 300 ms window: too short for high quantiles.

    Stages keep their values, and take 2 s together. Faults keep their times, so a window with faults is longer.
    """
    return with_shorter_stages(matrix, QUICK_STAGES_NS).model_copy(
        update={
            "trials": min(matrix.trials, QUICK_TRIALS),
            "warmup": matrix.warmup.shortened_to(QUICK_WARMUP_NS, QUICK_STEADY_NS),
            "duration_ns": min(matrix.duration_ns, end_of_faults_ns(matrix) + QUICK_DURATION_NS),
        }
    )


def block_order(seed: int, block: int, cells: list[Cell]) -> list[int]:
    """The indices of `cells` in the order of block number `block`."""

    def drawn(index: int) -> bytes:
        return hashlib.sha256(f"{seed}:{block}:{cells[index].id}".encode()).digest()

    return sorted(range(len(cells)), key=drawn)


def before_trials_ns(cells: Iterable[Cell], *, is_resumed: bool = False, overhead_ns: int = TRIAL_OVERHEAD_NS) -> int:
    """The time before the trials of `cells`, in nanoseconds.

    It covers the controls, two baselines for each kind of idle call, and a probe for each lock. A resumed
    run measures only the baselines again. `overhead_ns` is that of each of these trials.
    """
    cells = list(cells)
    calls = {call for cell in cells for call in call_conditions_of(cell)}
    baseline = control.BASELINE_WARMUP_NS + control.BASELINE_NS + overhead_ns
    if is_resumed:
        return len(calls) * 2 * baseline
    probes = probing.probe_cells(cells)
    parts = [*probes, *filter(None, map(probing.late_cell, probes))]
    probed = sum(probing.PROBE_NS + overhead_ns + _around_ns(part) for part in parts)
    controls = sum(control.CONTROL_NS + overhead_ns + _around_ns(cell) for cell in control.control_cells(cells))
    return controls + len(calls) * 2 * baseline + probed


def backends_of(cell: Cell) -> list[str]:
    """The names of the backends of `cell`: those of its lock, and that of its guarded resource."""
    return [*parts_of_place(cell.backend), *([cell.guard_on] if cell.guard else [])]


def _around_ns(cell: Cell) -> int:
    """The time for the tables and the worker processes of one trial of `cell` in nanoseconds; 0 without any.

    Its lock may have a table, and its guarded resource.
    """
    tables = CATALOGUE[cell.strategy].uses_rows + (cell.guard_kind is ServerKind.POSTGRES)
    return tables * (SCHEMA_NS + cell.keys * ROW_NS) + starting_ns(cell)


def _plan(matrix: Matrix, cells: list[Cell], refused: list[Refused]) -> Plan:
    servers = _servers(matrix, cells)
    windows = [cell.window_ns(matrix.duration_ns) for cell in cells]
    usual_ns = matrix.warmup.usual_ns + TRIAL_OVERHEAD_NS
    usual = sum(usual_probes_of(cell, matrix) * _probe_ns(cell, matrix, usual_ns) for cell in cells)
    most_ns = matrix.warmup_ns + TRIAL_OVERHEAD_NS
    most = sum(most_probes_of(cell, matrix) * _probe_ns(cell, matrix, most_ns) for cell in cells)
    surroundings = _surroundings_ns(cells, servers, matrix.trials)
    return Plan(
        matrix=matrix,
        cells=cells,
        refused=refused,
        order=[block_order(matrix.seed, block, cells) for block in range(1, matrix.trials + 1)] if cells else [],
        servers=servers,
        seconds_per_trial=(usual_ns + max(windows, default=matrix.duration_ns)) / S,
        seconds=(usual * matrix.trials + surroundings) / S,
        seconds_at_most=(most * matrix.trials + surroundings) / S,
    )


def _probe_ns(cell: Cell, matrix: Matrix, around_ns: int) -> int:
    """The time of one trial of `cell`, or of one probe of its search."""
    return cell.window_ns(matrix.duration_ns) + around_ns + _around_ns(cell) + ROUND_TRIPS * slowest_ns(cell)


def _servers(matrix: Matrix, cells: list[Cell]) -> list[ServerNeed]:
    def need(group: Group, demand: Demand) -> ServerNeed:
        backend = matrix.backends[group.backend]
        return ServerNeed(
            backend=group.backend,
            kind=backend.kind,
            appendfsync=group.appendfsync,
            servers=demand.servers,
            replicas=group.replicas,
            given=list(backend.shown_urls[: demand.servers]) if backend.is_given else None,
            connections=demand.sessions,
        )

    return [need(group, demand) for group, demand in largest(cells).items()]


def _surroundings_ns(cells: list[Cell], servers: list[ServerNeed], trials: int) -> float:
    """The time of the run outside the trials of the matrix, in nanoseconds."""
    if not cells:
        return 0
    ours = [need for need in servers if need.given is None]
    start_ns = {ServerKind.REDIS: SERVER_START_NS, ServerKind.POSTGRES: DATABASE_START_NS}
    starts = sum(need.servers * (1 + need.replicas) * start_ns[need.kind] for need in ours)
    starts += sum(need.servers for need in ours if need.replicas) * REPLICAS_COUNTED_NS
    return starts + before_trials_ns(cells) + ending_s(len(cells), trials * len(cells)) * S
