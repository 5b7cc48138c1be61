"""Heat maps as data: the locks of a run over the values of one axis, at each combination of the other axes.

A box has a figure only where the cell is safe. Only figures that may be compared are coloured: those of safe, ranked
cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pybench.analysis.comparison import Out
from pybench.analysis.comparison.entrants import BASE_LINE
from pybench.analysis.quantile_text import least_wait, quantile_text
from pybench.columns import COLUMNS
from pybench.matrix.conditions import AxisValue, Conditions, axis_title, condition_value
from pybench.numbers import NOT_AVAILABLE
from pybench.report.html import VERDICT_SYMBOLS
from pybench.report.rules import best_cells
from pybench.report.view import CellView, Series, View

AXES = ("concurrency", "rate_per_s", "keys")
"""The axes that have heat maps."""
STEPS = 8
# Beyond this ratio of the highest figure to the lowest, equal steps would put nearly all figures into the lowest one.
WIDE = 10.0
REMARKS = {
    Out.SHARED: "not ranked",
    Out.EXCLUDES_NOBODY: "not ranked",
    Out.NO_GRANTS: "no grants",
    Out.NO_TRIAL: "no complete trial",
    Out.LATE: "generator was late",
    Out.NO_LIMIT: "no limit found",
}


@dataclass(frozen=True, slots=True)
class HeatMeasure:
    """A figure of heat maps. `key` is a part of ids."""

    key: str
    column: str
    title: str
    least_is_best: bool = False

    def value(self, cell: CellView) -> float | None:
        """The figure of `cell`; the lower bound of a quantile that lies beyond the window."""
        return least_wait(cell.row, self.column) if self.least_is_best else cell.number(self.column)

    def text(self, cell: CellView) -> str:
        """The figure of `cell`, written."""
        if self.least_is_best:
            return quantile_text(cell.row, self.column)
        return COLUMNS[self.column].format.text(cell.number(self.column))


RATE = HeatMeasure("rate", "safe_grants_per_s", "safe grants/s")
P99 = HeatMeasure("p99", "acquire_p99_us", "p99 response", least_is_best=True)
MEASURES = (RATE, P99)


@dataclass(frozen=True, slots=True)
class HeatFigure:
    """A figure in a box. `step` is its colour, from 0, the worst, to `STEPS` - 1; None for a figure without one."""

    key: str
    text: str
    step: int | None
    is_bold: bool


@dataclass(frozen=True, slots=True)
class Box:
    """A cell in a heat map, with its figures, or with the words that stand for them."""

    cell: CellView
    figures: list[HeatFigure]
    words: str
    """Its verdict where it is not safe; else why its figures are not coloured; often empty."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The locks at one combination of the other axes. A box is None where nothing was measured."""

    conditions: Conditions
    columns: list[str]
    rows: list[tuple[Series, list[Box | None]]]

    @property
    def cells(self) -> list[int]:
        """The indexes of its cells."""
        return [box.cell.index for _, boxes in self.rows for box in boxes if box is not None]


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of a colour: the worst and the best figure, as texts, and the step of a figure between them."""

    measure: HeatMeasure
    worst: str
    best: str
    step: Callable[[float], int]


def first_measure(view: View, scales: Sequence[Scale]) -> HeatMeasure:
    """The measure that maps show first: at a given rate all locks that keep up have the same throughput."""
    is_open_loop = all(load.offered_per_s is not None for load in view.comparison.loads)
    return scales[-1 if is_open_loop else 0].measure


def scales_of(view: View) -> list[Scale]:
    """The scale of each measure that has one."""
    return [scale for measure in MEASURES if (scale := scale_of(view, measure)) is not None]


def scale_of(view: View, measure: HeatMeasure) -> Scale | None:
    """The scale over all figures of the run that are coloured; None where there is none."""
    cells = [cell for cell in view.cells if _is_coloured(view, cell)]
    values = {cell.id: value for cell in cells if (value := measure.value(cell))}
    found = sorted((cell for cell in cells if cell.id in values), key=lambda cell: values[cell.id])
    if not found:
        return None
    ends = found[::-1] if measure.least_is_best else found
    low, high = values[found[0].id], values[found[-1].id]
    step = partial(_step, low, high, turned=measure.least_is_best)
    return Scale(measure, measure.text(ends[0]), measure.text(ends[-1]), step)


def _step(low: float, high: float, value: float, *, turned: bool) -> int:
    if high <= low:
        return STEPS - 1
    wide = high > WIDE * low
    share = math.log(value / low) / math.log(high / low) if wide else (value - low) / (high - low)
    return min(int(STEPS * (1 - share if turned else share)), STEPS - 1)


def heat_maps(view: View, axis: str, scales: Sequence[Scale]) -> list[HeatMap]:
    """The maps over `axis`: those with two locks and two values at least."""
    if axis not in view.axes or axis == view.line_axis:
        return []
    best = {cell: load.first[0].figure for load in view.comparison.loads for cell in best_cells(load)}
    maps = []
    for conditions, cells in view.panels(axis):
        locks = [cell for cell in cells if cell.series.strategy != BASE_LINE]
        values = list(dict.fromkeys(cell.condition(axis) for cell in locks))
        lines = [line for line in view.lines if any(cell.line == line for cell in locks)]
        if len(values) < 2 or len(lines) < 2:
            continue
        boxes = {(cell.line.label, cell.condition(axis)): _box(view, cell, scales, best) for cell in locks}
        rows = [(line, [boxes.get((line.label, value)) for value in values]) for line in lines]
        maps.append(HeatMap(conditions, [_heading(axis, value) for value in values], rows))
    return maps


def _heading(axis: str, value: AxisValue) -> str:
    return f"{value:,}" if isinstance(value, int) else condition_value(axis, value)


def column_title(axis: str) -> str:
    """What the columns of the maps over `axis` are: "clients"."""
    return axis_title(axis)


def _is_coloured(view: View, cell: CellView) -> bool:
    return cell.verdict == "SAFE" and cell.series.strategy != BASE_LINE and view.standing(cell).out is None


def _box(view: View, cell: CellView, scales: Sequence[Scale], best: dict[str, Any]) -> Box:
    if cell.verdict != "SAFE":
        return Box(cell, [], f"{VERDICT_SYMBOLS[cell.verdict]} {cell.verdict}")
    out = view.standing(cell).out
    figures = []
    for scale in scales:
        measure = scale.measure
        value = measure.value(cell)
        text = measure.text(cell) if cell.number("trials") else NOT_AVAILABLE
        step = scale.step(value) if value and out is None else None
        decided = best.get(cell.id)
        is_bold = decided is not None and decided.value == measure.column.removeprefix("safe_")
        figures.append(HeatFigure(measure.key, text, step, is_bold))
    return Box(cell, figures, REMARKS.get(out, "") if out is not None else "")
