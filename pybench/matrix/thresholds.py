"""What a run must reach: `acquire.p99 < 50ms`, parsed into a metric, a comparison and a value.

Does not evaluate anything: that is `pybench.thresholds`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from pybench.durations import parse_duration, parse_rate
from pybench.notation import BadValue, parse_number, shown, suggestion

Comparison = Literal["<", "<=", ">", ">=", "==", "!="]

_LATENCIES = {
    "acquire.p50": "acquire_p50_us",
    "acquire.p99": "acquire_p99_us",
    "acquire.p999": "acquire_p999_us",
    "handoff.p50": "handoff_p50_us",
}
_COLUMNS = (
    "grants_per_s",
    "grants_per_s_low",
    "grants_per_s_high",
    "safe_grants_per_s",
    "acquire_p50_us",
    "acquire_p99_us",
    "acquire_p999_us",
    "handoff_p50_us",
    "attempts_per_grant",
    "commands_per_grant",
    "contention_rate",
    "jain",
    "utilisation",
    "client_cpu_us_per_grant",
    "server_cpu_us_per_grant",
    "grants",
    "contended_grants",
    "violations",
    "bound_per_million",
)
METRICS: dict[str, str] = _LATENCIES | {column: column for column in _COLUMNS}
"""Each metric that a threshold may name, and its column of `summary.csv`."""

_CHECK = re.compile(r"\s*(?P<metric>[A-Za-z][\w.]*)\s*(?P<op><=|>=|==|!=|<|>)\s*(?P<value>[^<>=!\s].*?)\s*")


@dataclass(frozen=True, slots=True)
class Threshold:
    """`row[column] op value` has to be true of every row of the summary that `where` selects."""

    metric: str
    """As written: `acquire.p99`, `violations`."""
    column: str
    """Its column of `summary.csv`."""
    op: Comparison
    value: float
    """In the unit of the column: microseconds for `_us`."""
    where: tuple[tuple[str, tuple[str, ...]], ...]
    """Axis by axis the canonical texts of which a row must show one; empty: every row. A strategy's text holds its
    arguments, `redlock(nodes=5)`: columns `strategy` and `args` together."""
    text: str
    """The check as the user wrote it, `acquire.p99 < 50ms`, with its `where`, if any, behind it."""


def parse_check(check: object, where: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> Threshold:
    """Read `acquire.p99 < 50ms`, `violations == 0` or `grants_per_s >= 1000`.

    Raises BadValue for another form, an unknown metric (naming the nearest), or a value of the wrong unit.
    """
    match = _CHECK.fullmatch(check) if isinstance(check, str) else None
    if match is None:
        hint = 'say for example "acquire.p99 < 50ms" or "violations == 0"'
        raise BadValue(f"{shown(check)} is not a threshold", hint=hint)
    metric = match["metric"]
    if metric not in METRICS:
        raise BadValue(f'there is no metric "{metric}"', hint=suggestion(metric, METRICS))
    column = METRICS[metric]
    try:
        value = _value(column, match["value"])
    except BadValue as problem:
        raise BadValue(f"{metric}: {problem.message}", hint=problem.hint) from None
    text = f"{metric} {match['op']} {match['value']}"
    if where:
        text += " where " + ", ".join(f"{axis} is {' or '.join(texts)}" for axis, texts in where)
    return Threshold(metric, column, cast("Comparison", match["op"]), value, where, text)


def _value(column: str, text: str) -> float:
    if "_us" in column:
        return parse_duration(text) / 1_000
    if "per_s" in column and "/" in text:
        return parse_rate(text)
    return parse_number(text, lowest=0, highest=1e15)
