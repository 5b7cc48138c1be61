"""Matrices of 1,000 cells: the cost of planning and of gathering grows with the cells, and not with their square.

Costs are counted in calls of functions, which no busy machine changes; the bounds in seconds are generous.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from support.trials import CAUGHT, cell, manifest, record

from pybench.cli.plan import lines_of
from pybench.matrix import matrix_from_options
from pybench.planning.plan import Plan, make_plan
from pybench.records import RunFolder, load

SMALL, LARGE = 40, 400
MOST_TIMES = 1.5
"""A cell of a large matrix costs at most so many times what a cell of a small one does."""


def planned(cells: int) -> Plan:
    """A plan of locks that need more than the usual look-ups: quorums, distances, exclusions, thresholds."""
    return make_plan(
        matrix_from_options(
            strategy=["mutex", "redlock(nodes=3)", "fair", "semaphore", "pg-advisory"],
            concurrency=[*range(1, cells // 20 + 1)],
            hold=["1ms", "lognormal(2ms, 0.8)"],
            rtt=["0ms", "exp(2ms)"],
            threshold=["violations == 0", "acquire_p99_us < 10ms"],
        )
    )


def calls_of(work: Callable[[], object]) -> int:
    """How many functions of Python and C `work` calls."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def show(cells: int) -> str:
    return "\n".join(lines_of(planned(cells)))


def test_planning_ten_times_the_cells_costs_ten_times_as_much_and_takes_no_second_for_a_thousand():
    show(SMALL)
    small, large = (calls_of(lambda cells=cells: show(cells)) for cells in (SMALL, LARGE))
    assert large / LARGE <= MOST_TIMES * small / SMALL
    begun = time.process_time()
    plan = planned(1_000)
    took_s = time.process_time() - begun
    assert len(plan.cells) == 1_000
    assert took_s < 1


def test_the_plan_of_a_thousand_cells_fits_on_a_screen_and_names_every_value():
    text = show(1_000)
    lines = text.splitlines()
    assert len(lines) < 40
    assert lines[0].startswith("run: 1,000 cells, ")
    for name, value in (("strategy", "redlock(nodes=3)"), ("concurrency", "50"), ("hold", "lognormal(2ms, 0.8)")):
        assert any(line.startswith(f"  {name}: ") for line in lines)
        assert value in text
    assert "--json lists all cells" in text


def test_of_many_refused_cells_the_first_are_named_and_the_others_counted():
    plan = make_plan(matrix_from_options(strategy="mutex", concurrency=[*range(1, 201)], hold="1ms,60s"))
    lines = lines_of(plan)
    at = next(number for number, line in enumerate(lines) if line.startswith("refused: "))
    named = [line for line in lines[at:] if line.startswith("  mutex")]
    assert len(named) == 5
    assert lines[-1] == "  and 195 more; --json lists all cells"


def folder_of(cells: int, place: Path) -> RunFolder:
    """A folder with one trial of each cell, as a killed run leaves it."""
    all_cells = [cell(keys=keys) for keys in range(1, cells + 1)]
    ids = [{"id": one.id} for one in all_cells]
    folder = RunFolder.create(place, manifest(cells=ids, order=[[*range(cells)]], control=CAUGHT))
    one = record()
    for each in all_cells:
        folder.add_trial(replace(one, cell=each.id, row={**one.row, "cell": each.id, "keys": each.keys}))
    return folder


def test_reading_and_gathering_a_trial_costs_the_same_however_many_there_are(tmp_path: Path):
    folders = {cells: folder_of(cells, tmp_path / str(cells)) for cells in (SMALL // 4, LARGE // 4)}
    folder_of(2, tmp_path / "first").finish("complete")
    for work in (RunFolder.starts, lambda folder: folder.finish("complete"), lambda folder: load(folder.path)):
        small, large = (calls_of(lambda cells=cells, work=work: work(folders[cells])) / cells for cells in folders)
        assert large <= MOST_TIMES * small
    assert [len(load(folder.path).summary) for folder in folders.values()] == [*folders]
