"""The two sides of a gate: when there is nothing to compare."""

from __future__ import annotations

import pytest

from pybench.gate.sides import Sides
from pybench.matrix import matrix_from_options


def sides(base: dict[str, str], head: dict[str, str]) -> Sides:
    matrices = [matrix_from_options(strategy="mutex", **options) for options in (base, head)]
    return Sides(matrices[0], matrices[1], (None, None), None, None)


@pytest.mark.parametrize(
    ("base", "head", "same"),
    [
        ({}, {}, True),
        ({"keys": "2"}, {}, False),
        ({"guard": "counter"}, {"guard": "counter"}, True),
        ({"redis": "redis://127.0.0.1:1"}, {"redis": "redis://127.0.0.1:2"}, False),
    ],
)
def test_sides_are_the_same_if_cells_and_servers_are(base: dict[str, str], head: dict[str, str], *, same: bool):
    assert sides(base, head).are_same is same


def test_another_server_of_the_guarded_resource_is_another_side():
    guarded = {"guard": "counter", "guard_on": "postgres"}
    ports = [{**guarded, "postgres": f"postgresql://127.0.0.1:{port}/shop"} for port in (1, 2)]
    assert not sides(*ports).are_same
