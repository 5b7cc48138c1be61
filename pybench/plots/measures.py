"""The figures that pictures show: their titles, their scales, and their texts, as the report has them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pybench.columns import COLUMNS
from pybench.errors import InputError
from pybench.numbers import NOT_AVAILABLE
from pybench.report.charts.axes import Axis, linear_axis, log_axis
from pybench.report.charts.curves import Measure, figure_text
from pybench.report.sections import cost, fairness, latency, throughput
from pybench.report.view import CellView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SAFE = replace(throughput.MEASURE, column="safe_grants_per_s", title="safe grants/s", axis="safe grants/s")
_FURTHER = (
    Measure("handoff", "handoff_p50_us", "p50 handoff", "handoff", scale="log"),
    Measure("starved", "starved_clients", "starved clients, worst trial", "clients"),
)
_KNOWN = {
    one.column: one
    for one in (
        *(throughput.MEASURE, _SAFE, *latency.MEASURES, fairness.JAIN, fairness.LONGEST_WAIT, *fairness.TABLE_ONLY),
        *(*cost.CHARTED, *cost.TABLE_ONLY, *_FURTHER),
    )
}
WIDE = 10.0
"""An axis is logarithmic where its figures differ more than so many times. Rates start at zero, to show ratios."""
HIGHER_IS_BETTER = frozenset({"safe_grants_per_s", "grants_per_s", "jain", "clients_served", "efficiency"})


@dataclass(frozen=True, slots=True)
class Value:
    """The figure of a cell as it is drawn."""

    number: float | None
    """None where there is nothing to draw: the text says why."""
    text: str
    low: float | None = None
    high: float | None = None
    """The interval of the median, or the lowest and the highest trial."""
    is_bound: bool = False
    """Whether the figure is only known to be higher: its rank falls among waits that were not over."""


def measure_of(column: str) -> Measure:
    """The measure of a column of the summary. Raises InputError for another column."""
    if column in _KNOWN:
        return _KNOWN[column]
    known = COLUMNS.get(column)
    if known is None or not known.is_number:
        raise InputError(f"{column!r} is no figure of the summary", hint="docs/columns.md lists them")
    title = column.removesuffix("_us").replace("_per_s", "/s").replace("_", " ")
    return Measure(column, column, title, f"{title}, {known.unit}" if known.unit else title)


def value_of(cell: CellView, measure: Measure) -> Value:
    """The figure of `cell`. Only a SAFE cell has an interval of safe grants/s."""
    number = cell.number(measure.column)
    bound = cell.number(f"{measure.column.removesuffix('_us')}_at_least_us")
    text = figure_text(cell, measure)
    if number is None:
        return Value(bound, text, is_bound=bound is not None)
    low, high = (cell.number(column) if column else None for column in (measure.low, measure.high))
    if measure.column == "safe_grants_per_s" and cell.verdict != "SAFE":
        low = high = None
    return Value(number, text, low, high)


def order_of(cell: CellView, measure: Measure) -> tuple[int, float]:
    """The place of `cell` in an order with the best figure first; cells that are not SAFE come last."""
    number = value_of(cell, measure).number
    sign = -1.0 if measure.column in HIGHER_IS_BETTER else 1.0
    return (0 if cell.verdict == "SAFE" else 1 if not cell.unsafe else 2, math.inf if number is None else sign * number)


def with_interval(value: Value, measure: Measure) -> str:
    """The figure with its interval: "3,730 (3,570 to 3,780)"."""
    if value.low is None or value.high is None or value.low == value.high:
        return value.text
    return f"{value.text} ({measure.text(value.low)} to {measure.text(value.high)})"


def usable(values: Mapping[CellView, Value]) -> list[Value]:
    """The values for which an axis is scaled: an unsafe cell does not flatten those of locks that may be used."""
    safe = [value for cell, value in values.items() if not cell.unsafe and value.number is not None]
    return safe or list(values.values())


def axis_of(measure: Measure, values: Sequence[Value], *, title: str | None = None) -> Axis:
    """An axis for `values`, with round ticks and units as in the report; logarithmic where they differ widely."""
    ends = [end for one in values for end in (one.number, one.low, one.high) if end is not None]
    positive = [end for end in ends if end > 0]
    wide = measure.top is None and 0 < WIDE * min(ends, default=0.0) < max(ends, default=0.0)
    if measure.scale == "log" or (wide and measure.column not in HIGHER_IS_BETTER):
        return log_axis(positive, title or measure.axis, measure.ticks)
    return linear_axis([measure.top] if measure.top is not None else positive, title or measure.axis, measure.ticks)


def has_place(value: Value, axis: Axis) -> bool:
    """Whether the figure lies on `axis`: a logarithmic axis has no zero, and an unsafe figure may lie beyond it."""
    return value.number is not None and axis.low <= value.number <= axis.high


def said(cell: CellView, measure: Measure) -> str:
    """The figure of `cell` in a sentence, with its interval, and its verdict where it is not SAFE."""
    text = with_interval(value_of(cell, measure), measure)
    return text if cell.verdict == "SAFE" or text == NOT_AVAILABLE else f"{text} {cell.verdict}"
