"""Measures A/A runs: the same cell three times in each block, from which a test computes the gate's error rates.

    python -m tools.gate_noise FIRST LAST

measures the runs with these numbers, and adds a row per trial to `tests/unit/support/gate_noise.csv.gz`. As in
`pybench gate`, the three trials of a cell in a block follow each other, on the same servers. Each run starts its own
servers, and takes about 20 s. Runs from 101 on were measured at real-time priority (`chrt -r 1`). Runs up to 17 had a
longer schedule, at normal priority on a machine that was busy with much more than it has cores for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pybench.planning.plan import block_order
from pybench.records import trial_record
from pybench.running.interrupts import Interrupts
from pybench.running.job import plan_with_servers, read_matrix
from pybench.running.observer import Observer
from pybench.running.watch import Silent, Slot
from pybench.servers import ServerPool
from pybench.strategies import CATALOGUE
from tools.identical_locks import extend

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.planning.plan import Plan

TABLE = Path(__file__).parents[1] / "tests" / "unit" / "support" / "gate_noise.csv.gz"
SCHEDULE = {"trials": 4, "duration": "200ms", "warmup": "50ms"}
MATRICES = (
    {"strategy": "mutex", "concurrency": [1, 16], "hold": "200us"},
    {"strategy": "fenced", "concurrency": 16, "hold": "200us"},
    {"strategy": "mutex", "concurrency": 64, "keys": 100, "rate": "6000/s"},
    {"strategy": "pg-advisory", "concurrency": 8, "keys": 4},
)
SIDES = 3
FIGURES = ("grants_per_s", "acquire_p50_us", "acquire_p99_us")
DIGITS = 5


def measure(number: int) -> pd.DataFrame:
    """One run of every cell, as one row per trial."""
    matrices = [read_matrix(None, None, seed=number, **SCHEDULE, **axes) for axes in MATRICES]
    with ServerPool() as pool, Interrupts() as interrupts:
        observed = []
        for matrix in matrices:
            plan, placement, _ = plan_with_servers(matrix, pool)
            observed.append((plan, Observer(matrix, plan.cells, pool, placement, Silent(), interrupts)))
        rows = [row for block in range(1, matrices[0].trials + 1) for row in _block(number, block, observed)]
    return pd.DataFrame(rows)


def _block(number: int, block: int, observed: list[tuple[Plan, Observer]]) -> Iterator[dict[str, Any]]:
    cells = [(plan.matrix, cell, observer) for plan, observer in observed for cell in plan.cells]
    for place in block_order(number, block, [cell for _, cell, _ in cells]):
        matrix, cell, observer = cells[place]
        for turn in range(SIDES):
            row = _trial(matrix, Slot(1, cell, block, 1.0), observer)
            figures = {name: None if row[name] is None else float(f"{row[name]:.{DIGITS}g}") for name in FIGURES}
            yield {"run": number, "cell": cell.id, "block": block, "turn": turn, **figures}


def _trial(matrix: Matrix, slot: Slot, observer: Observer) -> dict[str, Any]:
    servers = observer.servers(slot.cell)
    measured = observer.observe(slot, servers, warmup_ns=matrix.warmup_ns, duration_ns=matrix.duration_ns)
    if measured.result.stopped:
        raise KeyboardInterrupt
    return trial_record(
        slot.cell,
        trial=slot.block,
        block=slot.block,
        started_at=measured.started_at,
        result=measured.result,
        servers=servers,
        server_cpu_us=None,
        strategy=CATALOGUE[slot.cell.strategy].with_arguments(slot.cell.args),
    ).row


if __name__ == "__main__":
    extend(TABLE, range(int(sys.argv[1]), int(sys.argv[2]) + 1), measure)
