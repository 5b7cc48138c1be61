"""The plan of a run: its cells, those that cannot be measured and why, their order, the time and the servers needed.

Promises: a function of the matrix (and of the limits that it is given) alone; it starts and asks nothing. The same
matrix gives the same order, and a cell that is added leaves the order of the others as it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pybench import control
from pybench.cells import Cell
from pybench.durations import MS, S
from pybench.errors import InputError
from pybench.impossible import NO_LIMITS, Limits, why_impossible
from pybench.matrix import Matrix, expand, idle_excludes
from pybench.needs import Group, group_of, largest, own_connections, shared_connections, subscribing_connections

QUICK_TRIALS, QUICK_WARMUP_NS, QUICK_DURATION_NS = 3, 100 * MS, 300 * MS

TRIAL_OVERHEAD_NS = 70 * MS
"""Connecting, coming to rest, reading the server's figures, removing keys and saving: as measured on two busy cores."""

SERVER_START_NS = 300 * MS
REPLICAS_COUNTED_NS = 1 * S
"""Until a primary counts on the replicas that follow it."""
REPORT_NS = 5 * S


@dataclass(frozen=True, slots=True)
class Refused:
    """A cell that will not be measured; `reason` ends with what to change."""

    cell: Cell
    reason: str


@dataclass(frozen=True, slots=True)
class ServerNeed:
    """Servers of the run that are alike. Cells that differ in `appendfsync` or in replicas need others."""

    backend: str
    appendfsync: str
    servers: int
    """As many as the cell that needs most; each on its own."""
    replicas: int
    """Of each of them."""
    given: list[str] | None
    """The addresses of servers that are there already, passwords masked; None: pybench starts them."""
    connections: int
    """The most that any cell opens to one of them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `run` will carry out."""

    matrix: Matrix
    cells: list[Cell]
    refused: list[Refused]
    order: list[list[int]]
    """One block a trial: every index into `cells` once, in an order of its own drawn from the seed."""
    servers: list[ServerNeed]
    seconds_per_trial: float
    """Of any cell: warm-up, window, and what surrounds them."""
    seconds: float
    """The whole run, with its controls, the start of servers and the report."""

    @property
    def notes(self) -> list[str]:
        """What of the matrix says nothing about any cell of this plan, a sentence each."""
        rows = [cell.columns() for cell in self.cells]
        return [
            *(f"exclude matches no cell: {entry}" for entry in idle_excludes(self.matrix)),
            *(
                f"a threshold speaks of no cell, and will be missed: {threshold.text}"
                for threshold in self.matrix.thresholds
                if not any(threshold.selects(row) for row in rows)
            ),
        ]

    def require_cells(self) -> None:
        """Raise InputError when every cell is refused."""
        if not self.cells:
            reason = self.refused[0]
            raise InputError("every cell of this matrix is refused", hint=f"{reason.cell.id}: {reason.reason}")

    def to_dict(self) -> dict[str, Any]:
        """What `pybench plan --json` prints: cells as their ids, times in seconds."""
        return {
            "name": self.matrix.name,
            "seed": self.matrix.seed,
            "trials": self.matrix.trials,
            "cells": [{"id": cell.id} for cell in self.cells],
            "notes": self.notes,
            "refused": [{"id": refused.cell.id, "reason": refused.reason} for refused in self.refused],
            "order": self.order,
            "servers": [
                {
                    "backend": need.backend,
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
    """For a first look: at most 3 trials of at most 100 ms and 300 ms. Too short for tails and narrow intervals."""
    return matrix.model_copy(
        update={
            "trials": min(matrix.trials, QUICK_TRIALS),
            "warmup_ns": min(matrix.warmup_ns, QUICK_WARMUP_NS),
            "duration_ns": min(matrix.duration_ns, QUICK_DURATION_NS),
        }
    )


def block_order(seed: int, block: int, cells: list[Cell]) -> list[int]:
    """The indices of `cells` in the order of block number `block`."""

    def drawn(index: int) -> bytes:
        return hashlib.sha256(f"{seed}:{block}:{cells[index].id}".encode()).digest()

    return sorted(range(len(cells)), key=drawn)


def before_trials_ns(cells: Iterable[Cell]) -> int:
    """What is measured before the trials of `cells`: a control for each backend, and baselines for each setting."""
    settings = {(cell.backend, cell.appendfsync, cell.poll) for cell in cells}
    controls = len({backend for backend, _, _ in settings}) * (control.CONTROL_NS + TRIAL_OVERHEAD_NS)
    baseline = control.BASELINE_WARMUP_NS + control.BASELINE_NS + TRIAL_OVERHEAD_NS
    return controls + len(settings) * 2 * baseline


def _plan(matrix: Matrix, cells: list[Cell], refused: list[Refused]) -> Plan:
    servers = _servers(matrix, cells)
    per_trial = matrix.warmup_ns + matrix.duration_ns + TRIAL_OVERHEAD_NS
    total = per_trial * len(cells) * matrix.trials + _surroundings_ns(cells, servers)
    return Plan(
        matrix=matrix,
        cells=cells,
        refused=refused,
        order=[block_order(matrix.seed, block, cells) for block in range(1, matrix.trials + 1)] if cells else [],
        servers=servers,
        seconds_per_trial=per_trial / S,
        seconds=total / S,
    )


def _servers(matrix: Matrix, cells: list[Cell]) -> list[ServerNeed]:
    def need(group: Group, servers: int) -> ServerNeed:
        members = [cell for cell in cells if group_of(cell) == group]
        backend = matrix.backends[group.backend]
        return ServerNeed(
            backend=group.backend,
            appendfsync=group.appendfsync,
            servers=servers,
            replicas=group.replicas,
            given=list(backend.shown_urls[:servers]) if backend.is_given else None,
            connections=max(
                shared_connections(cell) + own_connections(cell) + subscribing_connections(cell) for cell in members
            ),
        )

    return [need(group, servers) for group, servers in largest(cells).items()]


def _surroundings_ns(cells: list[Cell], servers: list[ServerNeed]) -> int:
    """Everything but the trials of the matrix itself."""
    if not cells:
        return 0
    started = sum(need.servers * (1 + need.replicas) for need in servers if need.given is None)
    followed = sum(need.servers for need in servers if need.given is None and need.replicas)
    starts = started * SERVER_START_NS + followed * REPLICAS_COUNTED_NS
    return starts + before_trials_ns(cells) + REPORT_NS
