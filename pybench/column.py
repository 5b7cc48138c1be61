"""A column of the records, and the forms that most columns have; `pybench.columns` lists them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pybench.formats import Format

Type = Literal["string", "int64", "float64", "bool"]


class Over(StrEnum):
    """How the figures of a cell's trials become one figure."""

    MEDIAN = "median"
    """The median over complete trials; a quantile is n/a unless more than half of them have it."""
    SUM = "sum"
    """The sum over all trials, including interrupted ones."""
    MOST = "highest"
    """The highest value over complete trials."""
    QUANTILE = "median, or pooled"
    """The median over complete trials where most of them have the quantile, else that of all samples together."""
    OWN = "see its meaning"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `trials.parquet`, of `summary.csv`, or of both."""

    name: str
    type: Type
    meaning: str
    """The text for the data dictionary, including when the figure is n/a."""
    unit: str = ""
    over: Over | None = None
    """None where the figures of several trials cannot be combined."""
    in_summary: bool = False
    in_trials: bool = True
    format: Format = Format.TEXT
    """How every table writes its figures."""

    @property
    def is_number(self) -> bool:
        """Whether the column is numeric, so that a threshold can use it if the summary has it."""
        return self.type in ("int64", "float64")


def text(name: str, meaning: str) -> Column:
    """A column of text of `trials.parquet`."""
    return Column(name, "string", meaning)


def count(name: str, meaning: str, *, over: Over | None = Over.SUM, summary: bool = False) -> Column:
    """A count; the summary has it only where `summary` says so."""
    return Column(name, "int64", meaning, over=over, in_summary=summary, format=Format.COUNT)


def figure(
    name: str,
    meaning: str,
    unit: str = "",
    *,
    over: Over = Over.MEDIAN,
    summary: bool = True,
    format: Format | None = None,
) -> Column:
    """A figure of a trial, written in the format of its unit."""
    return Column(name, "float64", meaning, unit, over, summary, format=format or _FORMATS[unit])


def summed_up(name: str, kind: Type, meaning: str, unit: str = "") -> Column:
    """A column of the summary that no single trial has."""
    written = Format.COUNT if kind == "int64" else _FORMATS[unit] if kind == "float64" else Format.TEXT
    return Column(name, kind, meaning, unit, Over.OWN, in_summary=True, in_trials=False, format=written)


_FORMATS = {
    "1/s": Format.RATE,
    "µs": Format.TIME_US,
    "ms": Format.TIME_MS,
    "s": Format.TIME_S,
    "B": Format.BYTES,
    "": Format.RATIO,
}
"""By unit, where a column's entry names no other."""


def quantiles(stem: str, meaning: str) -> Iterator[Column]:
    """The three quantiles of acquires, which may be pooled."""
    for part in ("p50", "p99", "p999"):
        yield figure(f"{stem}_{part}_us", meaning, "µs", over=Over.QUANTILE)


def phase(*names: str, of: str) -> Iterator[Column]:
    """Figures of one phase, of trials only."""
    for name in names:
        yield figure(name, of, "µs", over=Over.OWN, summary=False)
