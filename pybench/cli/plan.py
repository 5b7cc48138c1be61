"""`pybench plan`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from pybench.cli.options import AsJson, Asked
from pybench.cli.output import data, data_json, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybench.matrix import Matrix
    from pybench.matrix.cells import Cell
    from pybench.planning.plan import Plan, ServerNeed


MOST_LISTED = 100
"""So many cells are listed one by one."""
FEW_LISTED = 5
"""Of more cells that are refused for one reason, so many."""

Try = Annotated[
    bool, typer.Option("--try", help="Also acquire, renew and release each lock once on the servers that you name.")
]


def plan(*, asked: Asked, tries: Try = False, as_json: AsJson = False) -> int:
    """Show what `run` would do: cells, time, servers.

    Takes the arguments of `run`, and lists the cells that `run` refuses, with the reason. Measures nothing; without
    --try it connects to no server.
    """
    from pybench.planning.limits import Limits
    from pybench.planning.plan import make_plan

    matrix, _ = asked.read()
    made = make_plan(matrix, Limits.of_this_machine())
    if as_json:
        data_json(made.to_dict())
    else:
        data("\n".join(lines_of(made)))
    made.require_cells()
    if tries:
        _try_locks(matrix, as_json=as_json)
    return 0


def _try_locks(matrix: Matrix, *, as_json: bool) -> None:
    """Raises ServerError for the first lock that a server refuses."""
    from pybench.running.preflight import try_locks

    tried = try_locks(matrix)
    for _, error in tried:
        if error is not None:
            raise error
    if not as_json:
        names = ", ".join(dict.fromkeys(name for name, _ in tried))
        data(f"tried on the given servers: {names}" if names else "tried: nothing, because no server is given")


def lines_of(plan: Plan) -> list[str]:
    """The plan as `pybench plan` prints it."""
    from pybench.cli.figures import wall_time
    from pybench.numbers import plural

    matrix = plan.matrix
    times = times_of(matrix, plan.cells)
    lines = [f"{matrix.name}: {plural(len(plan.cells), 'cell')}, {plural(matrix.trials, 'trial')} each of {times}"]
    if plan.cells:
        lines += [
            f"time: about {wall_time(plan.seconds)}"
            + (f", at most {wall_time(plan.seconds_at_most)}" if plan.seconds_at_most > plan.seconds else ""),
            *plan.searches,
            *(_server_line(need) for need in plan.servers),
            f"order: {plural(len(plan.order), 'block')}, shuffled by seed {matrix.seed}",
            *_cells(plan.cells),
        ]
    for warning in plan.warnings:
        lines += textwrap.wrap(f"warning: {warning}", width(), subsequent_indent="  ", break_on_hyphens=False)
    for note in [*plan.notes, *plan.tails]:
        lines += textwrap.wrap(f"note: {note}", width(), subsequent_indent="  ", break_on_hyphens=False)
    by_reason: dict[str, list[str]] = {}
    for refused in plan.refused:
        by_reason.setdefault(refused.reason, []).append(refused.cell.id)
    for reason, cells in by_reason.items():
        lines += textwrap.wrap(f"refused: {reason}", width(), subsequent_indent="  ", break_on_hyphens=False)
        lines += _shortened(cells)
    return lines


def times_of(matrix: Matrix, cells: Sequence[Cell]) -> str:
    """How long the trials of `cells` measure, and after which warm-up."""
    from pybench.matrix.durations import format_duration

    windows = sorted({cell.window_ns(matrix.duration_ns) for cell in cells} or {matrix.duration_ns})
    window = format_duration(windows[0]) + (f" to {format_duration(windows[-1])}" if len(windows) > 1 else "")
    longest = format_duration(matrix.warmup_ns)
    warmup = f"a warm-up until steady, at most {longest}" if matrix.warmup.until_steady else f"{longest} of warm-up"
    return f"{window} after {warmup}"


def _cells(cells: Sequence[Cell]) -> list[str]:
    """A line for each cell; of many cells the axes that vary, with their values."""
    from pybench.matrix.cells import AXES

    if len(cells) <= MOST_LISTED:
        return ["cells:", *(f"  {cell.id}" for cell in cells)]
    lines = ["axes that vary (--json lists all cells):"]
    for name, axis in AXES.items():
        own = ((cell.strategy, cell.args) if name == "strategy" else getattr(cell, axis.column) for cell in cells)
        values = list(dict.fromkeys(own))
        if len(values) > 1:
            texts = ("none" if value is None else axis.text(value) for value in values)
            lines += textwrap.wrap(f"  {name}: {', '.join(texts)}", width(), subsequent_indent="    ")
    return lines


def _shortened(cells: Sequence[str]) -> list[str]:
    """A line for each cell; of many cells the first ones, and how many follow."""
    shown = cells if len(cells) <= MOST_LISTED else cells[:FEW_LISTED]
    more = len(cells) - len(shown)
    return [*(f"  {cell}" for cell in shown), *([f"  and {more:,} more; --json lists all cells"] if more else [])]


def _server_line(need: ServerNeed) -> str:
    from pybench.numbers import plural

    what = ", ".join(need.given) if need.given else "started by pybench"
    several = f"{need.servers} of {need.backend}" if need.servers > 1 else need.backend
    replicas = f", with {plural(need.replicas, 'replica')}" if need.replicas else ""
    unit = "session" if need.kind == "postgres" else "connection"
    most = plural(need.connections, unit) + (" each" if need.servers > 1 else "")
    disk = "" if need.appendfsync == "none" else f", appendfsync {need.appendfsync}"
    return f"server: {several}{replicas}, {what}{disk}, up to {most}"
