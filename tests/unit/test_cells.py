from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from pybench.matrix import expand, matrix_from_mapping
from pybench.matrix.cells import AXES, Cell
from pybench.matrix.validators import read

values = {
    "strategy": ["none", "naive", "mutex"],
    "concurrency": [1, 16, 64],
    "keys": [1, 1000],
    "hold": ["0", "1ms", "uniform(1ms, 3ms)"],
    "ttl": ["10s", "50ms"],
    "retry": ["full-jitter", "none", "fixed(base=2ms)"],
    "rate": ["10/s", "5000/s"],
    "connections": ["shared(4)", "per-client"],
}


@st.composite
def mappings(draw):
    axes = {"strategy": draw(st.lists(st.sampled_from(values["strategy"]), min_size=1, unique=True))}
    for name in draw(st.sets(st.sampled_from([name for name in values if name != "strategy"]))):
        axes[name] = draw(st.lists(st.sampled_from(values[name]), min_size=1, max_size=3, unique=True))
    return {"axes": axes}


@given(mappings())
def test_no_two_cells_are_equal_and_each_id_is_of_one_cell(mapping):
    cells = expand(matrix_from_mapping(mapping))
    bare = {dataclasses.replace(cell, id="") for cell in cells}
    assert len({cell.id for cell in cells}) == len(bare) == len(cells)


@given(mappings())
def test_a_cell_is_called_the_same_in_a_matrix_of_its_own(mapping):
    for cell in expand(matrix_from_mapping(mapping))[:5]:
        (alone,) = expand(matrix_from_mapping({"include": [point_of(cell)]}))
        assert alone == cell


def point_of(cell: Cell) -> dict[str, object]:
    """The axes that a cell's id names, read back from it."""
    strategy, *rest = cell.id.replace(", ", ",").split(" ")
    return {"strategy": strategy, **dict(part.split("=", 1) for part in rest)}


def test_an_id_names_the_strategy_then_each_axis_off_its_default():
    mapping = {
        "fixed": {"strategy": "mutex", "keys": 1000, "hold": "1000us", "concurrency": 64, "poll": "block"},
    }
    (cell,) = expand(matrix_from_mapping(mapping))
    assert cell.id == "mutex concurrency=64 hold=1ms keys=1000"


def test_every_default_is_a_value_that_its_own_axis_reads():
    for axis in AXES.values():
        if axis.default is not None:
            assert read(axis, axis.text(axis.default)) == axis.default
