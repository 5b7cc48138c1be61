"""Which cells cannot be spread over worker processes, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.matrix.fault_kinds import Target
from pybench.strategies import CATALOGUE, Judge

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell


def why_no_processes(cell: Cell, matrix: Matrix) -> str | None:
    """The first reason against the processes of `cell`; None where it has none, or they can be started."""
    if not cell.processes:
        return None
    if cell.mode.is_search:
        return f"mode {cell.mode.kind} starts a trial for each probe; use processes: 0, or a rate"
    if matrix.warmup.until_steady:
        return "a warm-up until steady needs the figures of all threads at once; use a fixed warm-up, or processes: 0"
    kills = any(fault.on is Target.PROCESS and fault.do == "kill" for fault in cell.faults.faults)
    if kills and CATALOGUE[cell.strategy].with_arguments(cell.args).judged_by is Judge.EFFECTS:
        return (
            f"{cell.strategy} is judged by its writes, and a killed process cannot say which of them it was told of; "
            "use pause instead of kill"
        )
    return None
