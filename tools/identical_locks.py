"""Measures runs of identical locks, from which a test computes the rate of false winners.

    python -m tools.identical_locks FIRST LAST

measures the runs with these numbers, and adds a row per trial to `tests/unit/support/identical.csv.gz`. The identical
locks are one `mutex` under four retry policies that differ only in a `max_wait` that no trial reaches. A run takes
about a minute. Runs 1 to 20 were measured at real-time priority (`chrt -r 1`), later runs at normal priority on a busy
machine.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from pybench.matrix.values import Retry
from pybench.running.job import Job, carry_out, read_matrix

TABLE = Path(__file__).parents[1] / "tests" / "unit" / "support" / "identical.csv.gz"
SPELLINGS = [f"full-jitter(max_wait={seconds}s)" for seconds in (10, 11, 12, 13)]
SHARED = {"strategy": "mutex", "hold": "200us", "trials": 5, "duration": "400ms", "warmup": "50ms", "retry": SPELLINGS}
CLOSED = {"concurrency": [1, 16, 64], "keys": 10}
OPEN = {"concurrency": 64, "keys": 100, "rate": "3000/s"}
FIGURES = ("grants_per_s", "acquire_p99_us", "jain")
DIGITS = 5


def measure(number: int) -> pd.DataFrame:
    """One run of each kind of loop, as one row per trial."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            carry_out(
                Job(read_matrix(None, None, seed=number, **SHARED, **axes), command=[], out=Path(folder) / kind)
            ).run
            for kind, axes in (("closed", CLOSED), ("open", OPEN))
        ]
        return pd.concat([_rows(run.trials, number) for run in runs])


def _rows(trials: pd.DataFrame, number: int) -> pd.DataFrame:
    rate = trials["rate_per_s"]
    rows = pd.DataFrame(
        {
            "run": number,
            "concurrency": trials["concurrency"],
            "keys": trials["keys"],
            "rate_per_s": rate,
            "lock": trials["retry"].map([Retry.parse(text).text for text in SPELLINGS].index),
            "block": trials["block"],
        }
    )
    for name in FIGURES:
        rows[name] = [float(f"{value:.{DIGITS}g}") for value in trials[name]]
    return rows.sort_values(list(rows.columns[:6]))


def extend(table: Path, numbers: Iterable[int], measure: Callable[[int], pd.DataFrame]) -> None:
    """Measure the runs `numbers`, and rewrite `table` after each, so that it is always complete."""
    for number in numbers:
        found = [measure(number)]
        if table.exists():
            before = pd.read_csv(table)
            found.insert(0, before[before["run"] != number])
        pd.concat(found).to_csv(table, index=False, compression={"method": "gzip", "mtime": 0})


if __name__ == "__main__":
    extend(TABLE, range(int(sys.argv[1]), int(sys.argv[2]) + 1), measure)
