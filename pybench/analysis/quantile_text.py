"""The text of a quantile of waits: `290 ms`, or `> 400 ms` where its rank falls among unfinished waits.

Promises: the same text in the terminal, the report and the documents. A quantile of the merged histograms of all trials
carries the mark `POOLED`. Older records, which lack the columns of bounds and marks, are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybench.columns import COLUMNS
from pybench.numbers import missing

POOLED = "*"
POOLED_MEANS = f"{POOLED} quantile of the samples of all trials together: single trials have too few samples"


def quantile_text(row: Mapping[Any, Any], column: str) -> str:
    """The quantile in `column`, such as `acquire_p99_us`, of a row of the summary or of the trials."""
    stem, text = column.removesuffix("_us"), COLUMNS[column].format.text
    mark = POOLED if is_pooled(row, column) else ""
    at_least = row.get(f"{stem}_at_least_us")
    if missing(row.get(column)) and not missing(at_least):
        return f"> {text(at_least)}{mark}"
    return f"{text(row.get(column))}{mark}"


def is_pooled(row: Mapping[Any, Any], column: str) -> bool:
    """Whether the quantile in `column` is that of the samples of all trials together."""
    pooled = row.get(f"{column.removesuffix('_us')}_pooled")
    return not missing(pooled) and bool(pooled)


def least_wait(row: Mapping[Any, Any], column: str) -> float | None:
    """The quantile or its lower bound in microseconds; a sort key only, since the two look alike."""
    value = row.get(column)
    if missing(value):
        value = row.get(f"{column.removesuffix('_us')}_at_least_us")
    return None if value is None or missing(value) else float(value)
