"""Bencher Metric Format (https://bencher.dev): JSON with a benchmark a cell and a value a measure.

Throughput has the interval over trials. An unsafe cell has no measures of speed: it has its violations only.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pybench.analysis.verdicts import Verdict
from pybench.report.view import make_view

if TYPE_CHECKING:
    from pybench.records import Run
    from pybench.report.view import CellView

MEASURES = {
    "acquire_p50_us": "acquire-p50-us",
    "acquire_p99_us": "acquire-p99-us",
    "longest_wait_us": "longest-wait-us",
    "commands_per_grant": "commands-per-grant",
    "server_cpu_us_per_grant": "server-cpu-us-per-grant",
}
"""The slug of each measure, by its column."""


def build(run: Run) -> str:
    """The whole file."""
    found = {cell.id: _measures(cell) for cell in make_view(run).cells}
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _measures(cell: CellView) -> dict[str, Any]:
    measures: dict[str, Any] = {"violations": {"value": cell.number("violations") or 0}}
    rate = cell.number("safe_grants_per_s")
    if cell.verdict != Verdict.SAFE or rate is None:
        return measures
    ends = {"lower_value": cell.number("grants_per_s_low"), "upper_value": cell.number("grants_per_s_high")}
    measures["safe-grants-per-s"] = {"value": rate, **{name: end for name, end in ends.items() if end is not None}}
    for column, slug in MEASURES.items():
        value = cell.number(column)
        if value is not None:
            measures[slug] = {"value": value}
    return measures
