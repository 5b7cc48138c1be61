"""Worker processes in a plan: which cells cannot be spread over them and why, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pybench.matrix.durations import MS
from pybench.matrix.fault_kinds import Target
from pybench.numbers import plural
from pybench.strategies import CATALOGUE, Judge

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell


START_NS = 400 * MS
"""Starting and ending one worker process. Two of them take about the same, because a machine has two cores."""


def starting_ns(cell: Cell) -> int:
    """The time that the worker processes of `cell` add to a trial."""
    return START_NS * -(-cell.processes // 2)


def process_warnings(cells: Sequence[Cell], cores: int | None) -> list[str]:
    """A sentence for the cell whose processes have the most load threads, if they are more than `cores`."""
    most = max((cell for cell in cells if cell.processes), key=lambda cell: cell.all_threads, default=None)
    if most is None or cores is None or most.all_threads <= cores:
        return []
    load = f"{plural(most.processes, 'process', 'processes')} with {plural(most.threads, 'thread')} each"
    return [
        f"{load} share {plural(cores, 'core')}: they wait for each other, which makes latencies too long, and verdicts "
        "stay true; use fewer processes or threads, or a machine with more cores"
    ]


def why_no_processes(cell: Cell, matrix: Matrix) -> str | None:
    """The first reason against the processes of `cell`; None where it has none, or they can be started."""
    if not cell.processes:
        return None
    if cell.mode.is_search:
        return (
            f"mode {cell.mode.kind} measures many short trials, and each would start the processes again; use "
            "processes: 0, or set a rate instead of the mode"
        )
    if matrix.warmup.until_steady:
        return "a warm-up until steady needs the figures of all threads at once; use a fixed warm-up, or processes: 0"
    kills = any(fault.on is Target.PROCESS and fault.do == "kill" for fault in cell.faults.faults)
    judged_by = CATALOGUE[cell.strategy].with_arguments(cell.args).judged_by
    if kills and (cell.guard or judged_by in (Judge.EFFECTS, Judge.GUARD)):
        judged = f"guard: {cell.guard.text}" if cell.guard else cell.strategy
        return (
            f"{judged} is judged by writes, and a killed process cannot say which of them it was told of; "
            "use pause instead of kill"
        )
    return None
