"""The trials that a run makes for itself."""

from __future__ import annotations

import pytest

from pybench import control
from pybench.matrix import expand, matrix_from_options


def cells(**options: str):
    return expand(matrix_from_options(strategy="mutex", **options))


@pytest.mark.parametrize(
    ("holds", "held_ns"),
    [("0", 0), ("200us,5ms", 200_000), ("2s", 1_000_000), ("exp(300us)", 207_944)],
)
def test_an_idle_call_comes_after_the_cells_shortest_hold(holds, held_ns):
    cell = control.round_trip_cell(cells(hold=holds, ttl="10s", concurrency="1,16"))
    assert cell.hold.median() == held_ns
    assert (cell.strategy, cell.concurrency, cell.keys) == ("mutex", 1, 1)


def test_the_control_has_two_clients_or_more_on_each_of_the_most_threads():
    cell = control.control_cell(cells(threads="1,8", concurrency="16"), "redis")
    assert (cell.strategy, cell.concurrency, cell.threads, cell.keys) == ("none", 16, 8, 1)
    assert cell.hold.median() == 1_000_000
