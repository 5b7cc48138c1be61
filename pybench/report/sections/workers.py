"""The workers: the processes whose load was merged into the trial of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.columns import COLUMNS
from pybench.formats import Format
from pybench.numbers import format_ns, missing, plural
from pybench.report.charts.grid import datum
from pybench.report.html import fill
from pybench.report.section import Datum, Section
from pybench.report.view import View

FIGURES = ("clients", "grants", "grants/s", "p50", "p99", "send delay p99", "violations")
_COLUMNS = (
    ("clients", Format.COUNT),
    ("grants", Format.COUNT),
    *(
        (name, COLUMNS[name].format)
        for name in ("grants_per_s", "acquire_p50_us", "acquire_p99_us", "send_delay_p99_us")
    ),
    ("violations", Format.COUNT),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One worker."""

    name: str
    host: str
    state: str
    verdict: str
    figures: list[Datum]
    clock: str
    """The offset of its clock, with the error."""
    remark: str
    """Its note, or else the reason of its verdict."""


def render(view: View) -> Section | None:
    """A row for each worker; None in a run whose load came from one place."""
    workers = view.run.workers
    if workers.empty:
        return None
    rows = [_row(row) for row in workers.to_dict("records")]
    hosts = len(set(workers["host"]))
    lost = int((workers["state"] == "lost").sum())
    html = fill("workers.html", rows=rows, titles=FIGURES, hosts=hosts, lost=plural(lost, "worker") if lost else "")
    return Section("workers", "Workers", html)


def _row(row: Mapping[Any, Any]) -> Row:
    error_us = row["clock_error_us"]
    reason = row["note"] if not missing(row["note"]) else row["reason"]
    return Row(
        name=str(row["worker"]),
        host=str(row["host"]),
        state=f"{row['state']}, {_seconds(row['joined_s'])} to {_seconds(row['left_s'])}",
        verdict="" if missing(row["verdict"]) else str(row["verdict"]),
        figures=[datum(None if missing(row[name]) else float(row[name]), form.text) for name, form in _COLUMNS],
        clock="" if missing(error_us) else f"{_signed(row['clock_offset_us'] * 1e3)} ± {format_ns(error_us * 1e3)}",
        remark="" if missing(reason) else str(reason),
    )


def _seconds(value: float) -> str:
    return "?" if missing(value) else f"{value:.1f} s"


def _signed(ns: float) -> str:
    return f"{'-' if ns < 0 else '+'}{format_ns(abs(ns))}"
