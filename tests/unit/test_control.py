"""The trials that a run makes for itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pybench.matrix import expand, matrix_from_options
from pybench.matrix.cells import Cell
from pybench.planning import control
from pybench.records import RunFolder, control_entry
from pybench.running.controls import run_controls
from pybench.running.watch import Silent, Slot
from pybench.strategies import ServerKind
from tests.unit.support.trials import manifest, totals


def cells(**options: str):
    return expand(matrix_from_options(strategy="mutex", **options))


@pytest.mark.parametrize(
    ("holds", "held_ns"),
    [("0", 0), ("200us,5ms", 200_000), ("2s", 1_000_000), ("exp(300us)", 207_944)],
)
def test_an_idle_call_comes_after_the_cells_shortest_hold(holds, held_ns):
    cell = control.round_trip_cell(cells(hold=holds, ttl="10s", concurrency="1,16"), "redis", ServerKind.REDIS)
    assert cell.hold.median() == held_ns
    assert (cell.strategy, cell.concurrency, cell.keys) == ("mutex", 1, 1)


def test_an_idle_call_to_a_database_is_an_advisory_lock_that_does_not_wait():
    mixed = expand(matrix_from_options(strategy="layered,pg-row", keys="5", concurrency="1,16"))
    cell = control.round_trip_cell(mixed, "postgres", ServerKind.POSTGRES)
    assert (cell.strategy, cell.args, cell.backend) == ("pg-advisory", (("wait", "try"),), "postgres")
    assert (cell.concurrency, cell.keys, cell.appendfsync) == (1, 1, "none")


def test_a_lock_of_two_servers_has_the_control_of_each():
    cells_ = expand(matrix_from_options(strategy="layered", concurrency="16"))
    assert [(cell.id, cell.backend, cell.strategy, cell.appendfsync) for cell in control.control_cells(cells_)] == [
        ("control of postgres", "postgres", "none", "none"),
        ("control of redis", "redis", "none", "off"),
    ]


def test_the_control_has_two_clients_or_more_on_each_of_the_most_threads():
    (cell,) = control.control_cells(cells(threads="1,8", concurrency="16"))
    assert (cell.strategy, cell.concurrency, cell.threads, cell.keys) == ("none", 16, 8, 1)
    assert cell.hold.median() == 1_000_000


def test_a_backend_has_a_control_for_each_way_in_which_its_cells_are_judged():
    alone = [cell for threads in ("2", "16") for cell in cells(threads=threads, concurrency="64")]
    shared = [
        cell
        for processes, threads in (("2", "8"), ("8", "1"), ("8", "4"))
        for cell in cells(processes=processes, threads=threads, concurrency="64")
    ]
    load = [(one.id, one.processes, one.threads, one.concurrency) for one in control.control_cells([*shared, *alone])]
    # 16 threads in each of 8 processes are a load that no cell has, and would leave the checker of `alone` untested.
    assert load == [
        ("control of redis", 0, 16, 32),
        ("control of redis in worker processes", 8, 4, 64),
    ]
    assert [one.processes for one in control.control_cells(shared)] == [8]
    assert [one.processes for one in control.control_cells(alone)] == [0]


def test_the_controls_of_a_backend_have_nothing_of_the_cells_of_another():
    elsewhere = expand(matrix_from_options(strategy="pg-advisory", processes="2", threads="4", concurrency="16"))
    of = control.control_cells([*cells(threads="2", concurrency="16"), *elsewhere])
    assert [(cell.backend, cell.processes, cell.threads) for cell in of] == [("postgres", 2, 4), ("redis", 0, 2)]


def test_a_resumed_run_measures_the_controls_that_it_lacks_and_those_that_were_missed(tmp_path: Path):
    both = [replace(cell, processes=processes) for processes in (0, 2) for cell in cells(concurrency="8")]
    alone, shared = control.control_cells(both)
    measured: list[str] = []

    def again(before: list[dict[str, object]]) -> list[str]:
        folder = RunFolder.create(tmp_path / str(len(list(tmp_path.iterdir()))), manifest(control=before))
        measured.clear()

        def measure(cell: Cell):
            measured.append(cell.id)
            return Slot(0, cell, 0, 0.3), SimpleNamespace(stopped=False, totals=totals(double_grants=9), violations=[])

        run_controls(folder, Silent(), [alone, shared], measure)
        assert [entry["caught"] for entry in folder.manifest["control"]] == [True, True]
        return measured

    caught = {cell: control_entry(cell, totals(double_grants=9), []) for cell in (alone, shared)}
    assert again([]) == [alone.id, shared.id]
    assert again(list(caught.values())) == []
    # An older run had one control of a backend, with the processes of its cells.
    assert again([{**caught[shared], "id": "control of redis"}]) == [alone.id]
    assert again([caught[alone], control_entry(shared, totals(), [])]) == [shared.id]
