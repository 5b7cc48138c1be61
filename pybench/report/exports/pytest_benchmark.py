"""The JSON of pytest-benchmark, which `pytest-benchmark compare` reads: a benchmark for each cell, a round a trial.

A round is the time per grant of one trial in seconds, the inverse of its grants/s. Nothing else is a round: a single
latency is no repetition. `extra_info` says so, and has the verdict and the figures of the cell. A cell that is unsafe
or void is left out, because its speed is no speed; so is a lock that promises nothing, such as `none`.
"""

from __future__ import annotations

import json
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pybench.analysis.verdicts import Verdict
from pybench.columns import SUMMARY_FIGURES
from pybench.matrix.conditions import say_conditions
from pybench.numbers import missing
from pybench.report import rules
from pybench.report.view import make_view

if TYPE_CHECKING:
    from pybench.records import Run
    from pybench.report.view import CellView

FORMAT = "5.3.1"
"""The version of pytest-benchmark whose format this is."""
TIMER = "time per grant: window / grants of one trial"
_LEFT_OUT = (Verdict.UNSAFE.value, Verdict.VOID.value)


def build(run: Run) -> str:
    """The whole file."""
    view = make_view(run)
    complete = run.trials[(run.trials["status"] == "complete") & (run.trials["grants_per_s"] > 0)]
    rounds = {cell: [1 / rate for rate in rows["grants_per_s"]] for cell, rows in complete.groupby("cell", sort=False)}
    name = str(run.manifest.get("name") or "run")
    machine, versions = run.manifest.get("machine") or {}, run.manifest.get("versions") or {}
    commit = versions.get("commit") or {}
    document = {
        "machine_info": {
            "node": "",
            "processor": str(machine.get("cpu") or ""),
            "machine": str(machine.get("architecture") or ""),
            "python_version": str(versions.get("python") or ""),
            "system": str(machine.get("system") or ""),
            "release": str(machine.get("kernel") or ""),
            "cpu": {"brand_raw": str(machine.get("cpu") or ""), "count": machine.get("cores")},
        },
        "commit_info": {"id": commit.get("id"), "dirty": bool(commit.get("dirty")), "project": name},
        "benchmarks": [
            _benchmark(name, cell, rounds[cell.id])
            for cell in view.cells
            if cell.id in rounds and cell.verdict not in _LEFT_OUT and not rules.promises_nothing(cell.row)
        ],
        "datetime": str(run.manifest.get("started_at") or ""),
        "version": FORMAT,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _benchmark(run: str, cell: CellView, rounds: Sequence[float]) -> dict[str, Any]:
    figures = {name: cell.row.get(name) for name in SUMMARY_FIGURES}
    load = say_conditions(cell.conditions) or None
    return {
        "group": load,
        "name": cell.name,
        "fullname": f"{run}::{cell.id}",
        "params": {column: value for column, value in cell.conditions if not missing(value)} or None,
        "param": load,
        "extra_info": {
            "timer": TIMER,
            "unit": "s",
            **{name: value for name, value in figures.items() if not missing(value)},
        },
        "options": {
            "disable_gc": False,
            "timer": "pybench",
            "min_rounds": len(rounds),
            "max_time": 0.0,
            "min_time": 0.0,
            "warmup": True,
        },
        "stats": statistics_of(rounds),
    }


def statistics_of(rounds: Sequence[float]) -> dict[str, Any]:
    """The statistics of the rounds, with the names and definitions of pytest-benchmark."""
    data = sorted(rounds)
    mean, median = statistics.mean(data), statistics.median(data)
    spread = statistics.stdev(data) if len(data) > 1 else 0
    q1, q3 = _quartiles(data)
    iqr = q3 - q1
    low, high = q1 - 1.5 * iqr, q3 + 1.5 * iqr
    beyond = sum(value < low or value > high for value in data)
    outside = sum(abs(value - mean) > spread for value in data)
    return {
        "min": data[0],
        "max": data[-1],
        "mean": mean,
        "stddev": spread,
        "rounds": len(data),
        "median": median,
        "iqr": iqr,
        "q1": q1,
        "q3": q3,
        "iqr_outliers": beyond,
        "stddev_outliers": outside,
        "outliers": f"{outside};{beyond}",
        "ld15iqr": data[bisect_left(data, low)],
        "hd15iqr": data[bisect_right(data, high) - 1],
        "ops": 1 / mean,
        "total": sum(data),
        "data": list(rounds),
        "iterations": 1,
    }


def _quartiles(data: Sequence[float]) -> tuple[float, float]:
    """Medians of the halves; with an odd number of rounds interpolated (methods 2 and 3 of common use)."""
    if len(data) == 1:
        return data[0], data[0]
    half = len(data) // 2
    if len(data) % 2 == 0:
        return statistics.median(data[:half]), statistics.median(data[half:])
    n, rest = divmod(len(data), 4)
    if rest == 1:
        return 0.25 * data[n - 1] + 0.75 * data[n], 0.75 * data[3 * n] + 0.25 * data[3 * n + 1]
    return 0.75 * data[n] + 0.25 * data[n + 1], 0.25 * data[3 * n + 1] + 0.75 * data[3 * n + 2]
