"""The first use of a lock asks of its servers all that the cells of a run will ask."""

from __future__ import annotations

from pybench.matrix import matrix_from_options
from pybench.planning.limits import Limits
from pybench.planning.plan import make_plan
from pybench.running.preflight import first_uses


def uses(**options: str):
    return first_uses(make_plan(matrix_from_options(**options), Limits.of_this_machine()).cells)


def test_readers_entries_and_sets_of_keys_are_tried_where_any_cell_has_them():
    ((shared, _),) = uses(strategy="read-write", read_share="0,0.9", concurrency="4")
    assert 0 < shared.read_share < 1
    ((nested, _),) = uses(strategy="reentrant", nesting="1,3")
    assert nested.nesting == 3
    ((several, _),) = uses(strategy="multilock", keys="8", keys_per_grant="1,4")
    assert (several.keys, several.keys_per_grant) == (4, 4)


def test_each_lock_is_used_once_however_many_cells_it_has_and_no_lock_is_none():
    found = uses(strategy="none,mutex,naive", concurrency="1,8", keys="1,100")
    assert sorted(cell.strategy for cell, _ in found) == ["mutex", "naive"]
    assert all(cell.concurrency == 3 for cell, _ in found), "one holds, two wait"
