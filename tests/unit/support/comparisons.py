"""Runs made by hand for the comparison: a summary and the trials that it is of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pybench.columns import SUMMARY_FIGURES
from pybench.records import schema

FIGURES = ("grants_per_s", "acquire_p99_us", "jain", "longest_wait_us", "limit_per_s")


def lock(name: str, grants: float, *, spread: float = 0.01, **fields: object) -> dict[str, Any]:
    """A SAFE cell with `grants` a second as its median; its trials differ by about `spread`."""
    return {"strategy": name, "grants_per_s": grants, "safe_grants_per_s": grants, "spread": spread, **fields}


def unsafe(name: str, **fields: object) -> dict[str, Any]:
    return {**lock(name, 99_000), "verdict": "UNSAFE", "safe_grants_per_s": 0.0, **fields}


def run_of(*cells: dict[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The summary and the trials of these cells; `trials` of each are five, and `starved_clients` a list by trial."""
    usual = {
        "args": "",
        "backend": "redis",
        "server": "redis 8.0 (path)",
        "concurrency": 1,
        "keys": 1,
        "hold": "0",
        "retry": "full-jitter",
        "trials": 5,
        "verdict": "SAFE",
    }
    rows = [{**usual, "cell": str(number), **cell} for number, cell in enumerate(cells)]
    trials = [trial for number, row in enumerate(rows) for trial in _trials(row, number)]
    axes = dict.fromkeys(name for row in rows for name in row if name not in SUMMARY_FIGURES)
    names = [*schema.CELL_COLUMNS, *(name for name in axes if name not in {*schema.CELL_COLUMNS, "spread"})]
    summary = pd.DataFrame(rows).reindex(columns=[*dict.fromkeys([*names, *SUMMARY_FIGURES])])
    return summary.drop(columns="starved", errors="ignore"), pd.DataFrame(trials)


def _trials(row: dict[str, Any], number: int) -> list[dict[str, Any]]:
    count = int(row["trials"])
    found = []
    for figure in FIGURES:
        median = row.get(figure)
        rng = np.random.default_rng([number, len(figure)])
        half = rng.normal(0, row.get("spread", 0.01), count // 2)
        # As much above the median as below it, so that the mean of the logarithms is that of the median.
        noise = rng.permutation([*half, *-half, *([0.0] * (count % 2))])
        found.append([None if median is None else float(median * np.exp(one)) for one in noise])
    starved = row.get("starved", [None] * count)
    return [
        {
            "cell": row["cell"],
            "block": block + 1,
            "status": "complete",
            "starved_clients": starved[block],
            **{name: values[block] for name, values in zip(FIGURES, found, strict=True)},
        }
        for block in range(count)
    ]
