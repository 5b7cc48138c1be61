"""A run of a thousand cells, with every section that cells can fill."""

from __future__ import annotations

import itertools

from pybench.records import Run
from tests.report.support import Point, make_run
from tests.report.test_database import figures

LOCKS = {
    "none": 1.6, "mutex": 47.0, "naive": 62.0, "fair": 90.0, "fenced": 60.0, "notify": 55.0, "watchdog": 50.0,
    "redlock": 300.0, "pg-row": 130.0, "pg-advisory": 120.0,
}  # fmt: skip
RETRIES = (
    *("none", "fixed(delay=1ms)"),
    *("full-jitter(base=1ms, cap=50ms, max_wait=10s)", "equal-jitter(base=1ms, cap=50ms, max_wait=10s)"),
)
CLIENTS = (1, 4, 16, 64, 256)
KEYS = (1, 4, 16, 64, 256)
BIG = len(LOCKS) * len(RETRIES) * len(CLIENTS) * len(KEYS)


def big_points() -> list[Point]:
    """Ten locks, two of them on a database, at a hundred loads."""
    return [
        Point(
            name,
            clients,
            keys,
            args="nodes=3" if name == "redlock" else "",
            backend="postgres" if name.startswith("pg-") else "default",
            cost=cost,
            broken=clients > 1 and (name == "none" or (name == "naive" and keys == 1)),
            retry=retry,
            database=figures() if name.startswith("pg-") else None,
        )
        for (name, cost), retry, keys, clients in itertools.product(LOCKS.items(), RETRIES, KEYS, CLIENTS)
    ]


def big_run(trials: int) -> Run:
    """A thousand cells of `trials` short trials."""
    return make_run(big_points(), name="big", trials=trials, steps=10)
