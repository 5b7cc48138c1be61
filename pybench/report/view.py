"""The data that every section shows: the cells of a run, their locks, and the conditions they were measured under.

A view is made once from the frames of a run; nothing is drawn or measured here. A *series* is a strategy with its
arguments, in one colour in every chart; a lock that the run has on several backends is one series for each backend.
*Conditions* are the axes that the run varied, except the strategy and its backend: locks at the same load are compared
on whatever server they run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from pybench.analysis.answer import Answer, answer_of
from pybench.analysis.comparison import Comparison, Out, Standing, compare_locks
from pybench.analysis.comparison.claims import axis_value
from pybench.analysis.comparison.entrants import BASE_LINE, load_axes, lock_labels, set_by_stages
from pybench.analysis.stats import confidence
from pybench.matrix.conditions import (
    AxisValue,
    Conditions,
    axis_title,
    condition_value,
    place_on_chart,
    say_condition,
    say_conditions,
)
from pybench.numbers import missing
from pybench.records import Run
from pybench.report import rules
from pybench.report.trial_figures import further_figures

SERIES_COLOURS = 7
# A dotted line is an unsafe lock, and a short dash is no lock at all.
SHAPES = ("circle", "square", "diamond")
DASHES = ("solid", "longdash", "longdashdot")
BASE_LINE_DASH = "dash"


@dataclass(frozen=True, slots=True)
class Series:
    """A strategy with its arguments. `colour` is a CSS variable that both themes define.

    Colour is never alone: `shape` and `dash` together distinguish nine locks without it.
    """

    label: str
    strategy: str
    colour: str
    shape: str
    dash: str


@dataclass(frozen=True, eq=False, slots=True)
class CellView:
    """A row of the summary. `anchor` is the page's id of it, `conditions` the varied axes, as written.

    `index` is its place in `View.cells`, by which the page's filter knows it.
    """

    id: str
    index: int
    anchor: str
    series: Series
    """Its lock."""
    line: Series
    """Its line in charts: its lock, or in a run with a single lock the value of the axis that varies."""
    conditions: Conditions
    row: Mapping[str, Any]

    def number(self, column: str) -> float | None:
        """The figure in `column`; None where it is n/a or the run has no such column."""
        value = self.row.get(column)
        return None if missing(value) or isinstance(value, str) else float(value)  # type: ignore[arg-type]

    @property
    def verdict(self) -> str:
        """SAFE, UNSAFE, UNDECIDED or VOID."""
        value = self.row.get("verdict")
        return "UNDECIDED" if missing(value) else str(value)

    @property
    def unsafe(self) -> bool:
        """Whether the checker found violations."""
        return self.verdict == "UNSAFE"

    @property
    def name(self) -> str:
        """Its lock, with the conditions that the run varied: "mutex with 16 clients, 1 key"."""
        conditions = say_conditions(self.conditions)
        return f"{self.series.label} with {conditions}" if conditions else self.series.label

    @property
    def breaks_exclusion(self) -> bool:
        """Whether it is unsafe although its lock promises exclusion; overlaps without a promise are no fault."""
        return self.unsafe and not rules.promises_nothing(self.row)

    def condition(self, axis: str) -> AxisValue:
        """The value of a varied axis."""
        return dict(self.conditions)[axis]

    def at(self, axis: str) -> float:
        """The value of a varied axis that is a number, or is drawn as one."""
        place = place_on_chart(axis, self.condition(axis))
        assert place is not None, "an axis of load is one whose values are all numbers"
        return place

    def without(self, *axes: str) -> Conditions:
        """The conditions without `axes`."""
        return tuple(pair for pair in self.conditions if pair[0] not in axes)


@dataclass(frozen=True)
class View:
    """A run, ready to be shown. `cells` are in the order of the matrix."""

    run: Run
    cells: tuple[CellView, ...]
    series: tuple[Series, ...]
    axes: tuple[str, ...]
    """The axes with more than one value, except those of the lock: strategy, arguments and backend."""
    lines: tuple[Series, ...] = ()
    """The lines of charts: `series`, or in a run with a single lock the values of `line_axis`."""
    line_axis: str | None = None
    """The axis whose values are the lines of a chart; None where the locks are."""

    @cached_property
    def measured(self) -> bool:
        """Whether any trial was completed."""
        return any(cell.number("trials") for cell in self.cells)

    @cached_property
    def trials_by_cell(self) -> dict[str, pd.DataFrame]:
        """The trials of each cell, by its id: to look for them cell by cell takes the square of the time."""
        return {str(cell): trials for cell, trials in self.run.trials.groupby("cell", sort=False)}

    @cached_property
    def complete_trials(self) -> dict[str, pd.DataFrame]:
        """The complete trials of each cell that has any trial, by its id."""
        return {cell: trials[trials["status"] == "complete"] for cell, trials in self.trials_by_cell.items()}

    @cached_property
    def cells_of_lines(self) -> dict[str, list[int]]:
        """The indexes of the cells of each line of charts, by its label."""
        found: dict[str, list[int]] = {}
        for cell in self.cells:
            found.setdefault(cell.line.label, []).append(cell.index)
        return found

    @cached_property
    def sureness(self) -> str | None:
        """The confidence of the intervals over trials, "95 %", where trials are fewest; None without intervals."""
        trials = [int(cell.number("trials") or 0) for cell in self.cells]
        sure = confidence(min(trials, default=0))
        return f"{100 * sure:.0f} %" if sure is not None else None

    @cached_property
    def load_axis(self) -> str | None:
        """The horizontal axis of charts against load: concurrency, otherwise another axis of numbers."""
        return load_axis_of(self.axes, [cell.conditions for cell in self.cells])

    @cached_property
    def unsafe_series(self) -> frozenset[str]:
        """The labels of the locks that were unsafe in any cell."""
        return frozenset(cell.series.label for cell in self.cells if cell.unsafe)

    @cached_property
    def struck_lines(self) -> frozenset[str]:
        """The labels of the lines of charts that are struck out: their lock broke exclusion in some cell."""
        return frozenset(cell.line.label for cell in self.cells if cell.breaks_exclusion)

    @cached_property
    def comparison(self) -> Comparison:
        """Where each lock stands at each load."""
        return compare_locks(self.run.summary, self.run.trials)

    @cached_property
    def answer(self) -> Answer:
        """Which lock to take, and the arguments against it."""
        return answer_of(self.run.summary, self.run.trials, self.comparison)

    def standing(self, cell: CellView) -> Standing:
        """Where `cell` stands at its load."""
        return self.comparison.standing(cell.id)

    @cached_property
    def not_ranked(self) -> frozenset[str]:
        """The ids of safe cells that are not ranked, because several clients may hold a key at a time."""
        return frozenset(cell.id for cell in self.cells if self.standing(cell).out in (Out.SHARED, Out.EXCLUDES_NOBODY))

    def may_be_used(self, series: Series) -> bool:
        """Whether charts are scaled for `series`: a lock that was unsafe nowhere in the run."""
        return series.strategy != BASE_LINE and series.label not in self.unsafe_series

    def panels(self, *inside: str) -> list[tuple[Conditions, list[CellView]]]:
        """The cells of each chart: grouped by their conditions, without the axes `inside` and the axis of the lines."""
        return self.facets(*inside, *([self.line_axis] if self.line_axis else []))

    def facets(self, *inside: str) -> list[tuple[Conditions, list[CellView]]]:
        """The cells grouped by their conditions without the axes `inside`, in the order of the conditions."""
        groups: dict[Conditions, list[CellView]] = {}
        for cell in sorted(self.cells, key=lambda cell: self._rank(cell.without(*inside))):
            groups.setdefault(cell.without(*inside), []).append(cell)
        return list(groups.items())

    def _rank(self, conditions: Sequence[tuple[str, AxisValue]]) -> tuple[int, ...]:
        """The place of `conditions` in the order: the last axis is the outermost, so that concurrency runs fastest."""
        return tuple(self._places[axis][value] for axis, value in reversed(conditions))

    @cached_property
    def _places(self) -> dict[str, dict[Any, int]]:
        places = {}
        for axis in self.axes:
            values = list(dict.fromkeys(cell.condition(axis) for cell in self.cells))
            if all(_is_drawn(axis, value) for value in values):
                values.sort(key=lambda value: place_on_chart(axis, value) or 0.0)
            places[axis] = {value: place for place, value in enumerate(values)}
        return places


def make_view(run: Run) -> View:
    """The view of `run`; it has no cells when no trial was completed."""
    summary = run.summary
    if summary.empty:
        return View(run, (), (), ())
    further = further_figures(run.trials)
    rows: list[dict[str, Any]] = [
        further.get(str(row["cell"]), {}) | {str(name): value for name, value in row.items()}
        for row in summary.to_dict("records")
    ]
    varied = (axis for axis in load_axes(rows) if summary[axis].nunique(dropna=False) > 1)
    axes = tuple(axis for axis in varied if not set_by_stages(axis, rows))
    order = {str(cell["id"]): place for place, cell in enumerate(run.manifest.get("cells", []))}
    # Trials ran in random order; tables follow the order of the matrix.
    rows.sort(key=lambda row: order.get(str(row["cell"]), len(order)))
    labels = lock_labels(rows)
    series = _series((labels[str(row["cell"])], str(row["strategy"])) for row in rows)
    conditions = {str(row["cell"]): tuple((axis, axis_value(row[axis])) for axis in axes) for row in rows}
    line_axis = _line_axis(axes, list(conditions.values()), [one.strategy for one in series.values()])
    line_labels = {str(row["cell"]): _line_label(row, line_axis) or labels[str(row["cell"])] for row in rows}
    lines = _series((line_labels[str(row["cell"])], str(row["strategy"])) for row in rows) if line_axis else series
    anchors = _anchors([str(row["cell"]) for row in rows])
    cells = tuple(
        CellView(
            id=str(row["cell"]),
            index=index,
            anchor=anchors[str(row["cell"])],
            series=series[labels[str(row["cell"])]],
            line=lines[line_labels[str(row["cell"])]],
            conditions=conditions[str(row["cell"])],
            row=row,
        )
        for index, row in enumerate(rows)
    )
    return View(run, cells, tuple(series.values()), axes, tuple(lines.values()), line_axis)


def load_axis_of(axes: Sequence[str], conditions: Sequence[Conditions]) -> str | None:
    """The horizontal axis of charts against load: concurrency, otherwise the first of `axes` drawn as numbers.

    The rate of an open loop goes before a concurrency of fewer values, so that latency is drawn over what was offered.
    """
    drawn = [axis for axis in axes if all(_is_drawn(axis, dict(one)[axis]) for one in conditions)]
    loads = [axis for axis in ("concurrency", "rate_per_s") if axis in drawn]
    if loads:
        return max(loads, key=lambda axis: len({dict(one)[axis] for one in conditions}))
    return next(iter(drawn), None)


def _line_axis(axes: Sequence[str], conditions: Sequence[Conditions], strategies: Sequence[str]) -> str | None:
    """The axis whose values are lines: in a run with a single lock, the first axis that is not the load.

    So a lock under six retry policies is one panel with six lines, and not six panels with one line each.
    """
    if sum(strategy != BASE_LINE for strategy in strategies) != 1:
        return None
    load = load_axis_of(axes, conditions)
    return next((axis for axis in axes if axis != load), None)


def _line_label(row: Mapping[str, Any], line_axis: str | None) -> str | None:
    if line_axis is None:
        return None
    value, title = condition_value(line_axis, row[line_axis]), axis_title(line_axis)
    if row["strategy"] == BASE_LINE:
        return f"{BASE_LINE} ({title} {value})"
    # A bare `none` would read as the strategy of that name.
    told = say_condition(line_axis, row[line_axis])
    return f"no {title}" if value == BASE_LINE else told.removeprefix(f"{title} ")


def _series(named: Iterable[tuple[str, str]]) -> dict[str, Series]:
    """A series for each label, by the label; `named` gives each label with its strategy."""
    series: dict[str, Series] = {}
    coloured = base_lines = 0
    for label, strategy in named:
        if label in series:
            continue
        # Clients without a lock are the base line of every run, and are drawn in grey.
        if strategy == BASE_LINE:
            shape = SHAPES[base_lines % len(SHAPES)]
            series[label] = Series(label, BASE_LINE, "var(--series-none)", shape, BASE_LINE_DASH)
            base_lines += 1
            continue
        # Seven colours and nine pairs of shape and dash have no factor in common: 63 strategies differ.
        turn, shape_place = divmod(coloured, len(SHAPES))
        colour = f"var(--series-{coloured % SERIES_COLOURS})"
        series[label] = Series(label, strategy, colour, SHAPES[shape_place], DASHES[turn % len(DASHES)])
        coloured += 1
    return series


def _anchors(ids: Sequence[str]) -> dict[str, str]:
    anchors: dict[str, str] = {}
    taken: set[str] = set()
    for id_ in ids:
        stem = "cell-" + (re.sub(r"[^a-z0-9]+", "-", id_.lower()).strip("-") or "unnamed")
        anchor, again = stem, 2
        while anchor in taken:
            anchor, again = f"{stem}-{again}", again + 1
        taken.add(anchor)
        anchors[id_] = anchor
    return anchors


def _is_drawn(axis: str, value: AxisValue) -> bool:
    return place_on_chart(axis, value) is not None
