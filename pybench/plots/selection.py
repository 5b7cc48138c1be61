"""The cells that a picture shows, chosen by a query of pandas, and how they are named beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybench.errors import InputError
from pybench.matrix.conditions import Conditions, condition_texts, say_conditions
from pybench.report.view import CellView, View, load_axis_of, make_view

if TYPE_CHECKING:
    from pybench.records import Run


@dataclass(frozen=True, slots=True)
class Selection:
    """Cells of a run. `axes` are those in which they differ, besides the lock."""

    view: View
    cells: tuple[CellView, ...]
    axes: tuple[str, ...]

    @property
    def fixed(self) -> str:
        """The conditions that the run varied, and that all these cells share: "64 clients, 1 key"."""
        return say_conditions(pair for pair in self.cells[0].conditions if pair[0] not in self.axes)

    @property
    def load_axis(self) -> str | None:
        """The axis of load in which they differ."""
        return load_axis_of(self.axes, [cell.conditions for cell in self.cells])

    def varied(self, cell: CellView, *, without: tuple[str, ...] = ()) -> Conditions:
        """The conditions of `cell` in which these cells differ."""
        return tuple(pair for pair in cell.conditions if pair[0] in self.axes and pair[0] not in without)

    def name(self, cell: CellView) -> str:
        """The lock of `cell` with the conditions in which these cells differ."""
        return ", ".join([cell.series.label, *condition_texts(self.varied(cell))])


def chosen(run: Run, where: str | None) -> Selection:
    """The cells of `run` whose row of the summary fulfils `where`, a query of pandas; all without one.

    Raises InputError for a query that pandas refuses, or that fits no cell.
    """
    view = make_view(run)
    if not view.cells:
        raise InputError("this run has no complete trial", hint="let the run finish: pybench run --resume DIR")
    try:
        fitting = set(run.summary.query(where)["cell"] if where else run.summary["cell"])
    except Exception as problem:
        raise InputError(
            f"where={where!r} is not a query of the summary: {problem}",
            hint="name columns of run.summary, such as \"concurrency == 64 and verdict == 'SAFE'\"",
        ) from None
    cells = tuple(cell for cell in view.cells if cell.id in fitting)
    if not cells:
        raise InputError(f"no cell of this run fulfils {where}", hint="run.summary lists the cells")
    values = {axis: {cell.condition(axis) for cell in cells} for axis in view.axes}
    return Selection(view, cells, tuple(axis for axis in view.axes if len(values[axis]) > 1))
