"""Thresholds of a run, such as `acquire.p99 < 50ms`, parsed into a metric, a comparison and a value.

Does not do: evaluating thresholds; `pybench.analysis.thresholds` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from pydantic import TypeAdapter

from pybench.columns import COLUMNS
from pybench.matrix.cells import AXES
from pybench.matrix.durations import parse_duration, parse_rate
from pybench.matrix.validators import annotation, read
from pybench.notation import BadValue, nearest, parse_number, shortened, shown, suggestion
from pybench.numbers import missing

Comparison = Literal["<", "<=", ">", ">=", "==", "!="]

_LATENCIES = {
    "acquire.p50": "acquire_p50_us",
    "acquire.p99": "acquire_p99_us",
    "acquire.p999": "acquire_p999_us",
    "handoff.p50": "handoff_p50_us",
}
_NUMBERS = tuple(column.name for column in COLUMNS.values() if column.in_summary and column.is_number)
METRICS: dict[str, str] = _LATENCIES | {column: column for column in _NUMBERS}
"""Metric of a threshold -> its column of `summary.csv`."""

_CHECK = re.compile(r"\s*(?P<metric>[A-Za-z][\w.]*)\s*(?P<op><=|>=|==|!=|<|>)\s*(?P<value>[^<>=!\s].*?)\s*")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A condition: `row[column] op value` must hold for every row of the summary that `where` selects."""

    metric: str
    """The metric as written: `acquire.p99`, `violations`."""
    column: str
    """The column of `summary.csv`."""
    op: Comparison
    value: float
    """The limit in the unit of the column: microseconds for `_us`."""
    where: tuple[tuple[str, tuple[str, ...]], ...]
    """For each axis the accepted values as canonical texts; empty selects every row. The text of a strategy includes
    its arguments, `redlock(nodes=5)`, from the columns `strategy` and `args`."""
    check: str
    """The comparison as the user wrote it: `acquire.p99 < 50ms`."""

    @property
    def text(self) -> str:
        """The check, followed by its `where`, if any: `violations == 0 where strategy is mutex`."""
        if not self.where:
            return self.check
        selections = [f"{axis} is {' or '.join(texts)}" for axis, texts in self.where]
        return f"{self.check} where {', '.join(selections)}"

    def selects(self, row: Mapping[Any, Any]) -> bool:
        """Whether the threshold selects the cell with the columns `row`, from a table or from `Cell.columns`."""
        return all(_column_text(row, axis) in texts for axis, texts in self.where)

    def with_where(self, axis: str, change: Callable[[str], str]) -> Threshold:
        """The threshold with every accepted value of `axis` changed."""
        where = tuple((one, tuple(map(change, texts)) if one == axis else texts) for one, texts in self.where)
        return replace(self, where=where)

    def to_dict(self) -> dict[str, Any]:
        """The threshold as in a matrix; `parse_threshold` reads it back to an equal threshold."""
        return {"where": {axis: list(texts) for axis, texts in self.where}, "check": self.check}


def parse_threshold(value: object) -> Threshold:
    """Read a check, or a mapping `{where: {strategy: mutex}, check: "violations == 0"}`. Raises BadValue."""
    if not isinstance(value, Mapping):
        return parse_check(value)
    for key in value:
        if key not in ("where", "check"):
            hint = suggestion(str(key), ("where", "check"))
            raise BadValue(f"a threshold has no {shortened(str(key))}", hint=hint, at=(str(key),))
    if "check" not in value:
        raise BadValue("this threshold has no check", hint='use check: "violations == 0"')
    where = value.get("where") or {}
    if not isinstance(where, Mapping):
        raise BadValue(f"{shown(where)} is not a mapping", hint="use where: {strategy: mutex}", at=("where",))
    try:
        return parse_check(value["check"], tuple(_selected(str(name), where[name]) for name in where))
    except BadValue as problem:
        if problem.at:
            raise
        raise BadValue(problem.message, hint=problem.hint, at=("check",)) from None


def threshold_schema() -> dict[str, Any]:
    """JSON Schema of one threshold."""
    metrics = "|".join(metric.replace(".", "\\.") for metric in METRICS)
    check = {
        "type": "string",
        "pattern": f"^\\s*({metrics})\\s*(<=|>=|==|!=|<|>)",
        "examples": ["acquire.p99 < 50ms", "violations == 0", "grants_per_s >= 1000"],
    }
    axes = {
        axis.name: {"anyOf": [one, {"type": "array", "items": one}], "description": f"{axis.meaning}."}
        for axis in AXES.values()
        if (one := TypeAdapter(annotation(axis)).json_schema())
    }
    where = {"type": "object", "properties": axes, "additionalProperties": False}
    described = {"where": {**where, "description": "The cells to which the threshold applies."}, "check": check}
    selected = {"type": "object", "properties": described, "required": ["check"], "additionalProperties": False}
    return {"anyOf": [check, selected]}


def parse_check(check: object, where: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> Threshold:
    """Read `acquire.p99 < 50ms`, `violations == 0` or `grants_per_s >= 1000`.

    Raises BadValue for another form, an unknown metric (the hint has the nearest), or a value of the wrong unit.
    """
    match = _CHECK.fullmatch(check) if isinstance(check, str) else None
    if match is None:
        hint = 'use for example "acquire.p99 < 50ms" or "violations == 0"'
        raise BadValue(f"{shown(check)} is not a threshold", hint=hint)
    metric = match["metric"]
    if metric not in METRICS:
        near = nearest(metric, METRICS)
        hint = f"did you mean {near}?" if near else "use acquire.p99, handoff.p50 or a column of summary.csv"
        raise BadValue(f"there is no metric {shown(metric)}", hint=hint)
    column = METRICS[metric]
    try:
        value = _value(column, match["value"])
    except BadValue as problem:
        raise BadValue(f"{metric}: {problem.message}", hint=problem.hint) from None
    text = f"{metric} {match['op']} {match['value']}"
    return Threshold(metric, column, cast("Comparison", match["op"]), value, where, text)


def _column_text(row: Mapping[Any, Any], axis: str) -> str | None:
    if axis == "strategy":
        return f"{row['strategy']}({row['args']})" if row["args"] else str(row["strategy"])
    one = AXES[axis]
    value = row.get(one.column)
    return None if missing(value) else one.text_in_table(value)


def _selected(name: str, value: object) -> tuple[str, tuple[str, ...]]:
    if name not in AXES:
        raise BadValue(f"there is no axis {shown(name)}", hint=suggestion(name, AXES), at=("where", name))
    axis = AXES[name]
    try:
        values = value if isinstance(value, list | tuple) else [value]
        return name, tuple(axis.text(read(axis, one)) for one in values)
    except BadValue as problem:
        raise BadValue(problem.message, hint=problem.hint, at=("where", name)) from None


def _value(column: str, text: str) -> float:
    if "_us" in column:
        return parse_duration(text) / 1_000
    if "per_s" in column and "/" in text:
        return parse_rate(text)
    return parse_number(text, lowest=0, highest=1e15)
