"""The cells of a matrix: the product of its axes, without the excluded cells and with the included ones.

Promises: no two cells are equal. The order is that of the matrix: axes in the order of `Cell`, values as written. The
id of a cell depends on the cell alone, so it means the same cell in every run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from pybench.errors import InputError
from pybench.matrix.cells import AXES, HAS_NONE, OWN_SERVER, Cell
from pybench.matrix.checks import given, strategies_of
from pybench.matrix.models import Matrix
from pybench.matrix.places import default_place, kinds_of_place, parts_of_place, places
from pybench.strategies import ServerKind

Point = dict[str, Any]
"""A parsed value for every axis."""


def expand(matrix: Matrix) -> list[Cell]:
    """Every cell of `matrix`. Raises InputError when `exclude` leaves none."""
    cells: dict[str, Cell] = {}
    excluded = [given(part) for part in matrix.exclude]
    for point in itertools.chain(_product(matrix, excluded), _included(matrix)):
        cell = _cell(_applicable(point, matrix), matrix)
        # An include that repeats a cell of the product adds nothing.
        cells.setdefault(cell.id, cell)
    if not cells:
        raise InputError("exclude leaves no cell", hint="drop an entry of exclude")
    return list(cells.values())


def idle_excludes(matrix: Matrix) -> list[str]:
    """The entries of `exclude` that match no cell, in words: most likely mistakes."""
    points = list(_product(matrix, excluded=()))
    return [
        ", ".join(f"{name} {' or '.join(AXES[name].text(value) for value in values)}" for name, values in part.items())
        for part in map(given, matrix.exclude)
        if not any(_matches(point, part) for point in points)
    ]


def cell_id(point: Point) -> str:
    """The strategy with its arguments, then each axis off its default, by name; without the axis that stages set."""
    own_server = parts_of_place(point["backend"])[0]
    usual = {"backend": default_place(point["strategy"][0]), "guard_on": own_server, **_set_by_stages(point)}
    texts = [
        f"{name}={AXES[name].text(value)}"
        for name, value in sorted(point.items())
        if name != "strategy" and value not in (usual.get(name, AXES[name].default), HAS_NONE)
    ]
    return " ".join([AXES["strategy"].text(point["strategy"]), *texts])


def _product(matrix: Matrix, excluded: Sequence[dict[str, tuple[Any, ...]]]) -> Iterator[Point]:
    axes, fixed = given(matrix.axes), given(matrix.fixed)
    if "strategy" not in {*axes, *fixed}:
        return
    strategies = axes.pop("strategy", None) or (fixed["strategy"],)
    named = axes.pop("backend", None) or ((fixed["backend"],) if "backend" in fixed else None)
    for strategy in strategies:
        where = _places(matrix, strategy[0], named)
        for backend, *values in itertools.product(where, *axes.values()):
            own = dict(zip(axes, values, strict=True))
            point = _completed({**fixed, "strategy": strategy, "backend": backend, **own})
            if not any(_matches(point, part) for part in excluded):
                yield point


def _included(matrix: Matrix) -> Iterator[Point]:
    fixed = given(matrix.fixed)
    for part in matrix.include:
        point = {**fixed, **given(part)}
        named = [point["backend"]] if "backend" in point else None
        for backend in _places(matrix, point["strategy"][0], named):
            yield _completed({**point, "backend": backend})


def _places(matrix: Matrix, strategy: str, named: Sequence[str] | None) -> list[str]:
    return places(strategy, matrix.backends, named=named, beside=strategies_of(matrix))


def _completed(named: Point) -> Point:
    point = {name: named.get(name, axis.default) for name, axis in AXES.items()}
    return {**point, **_set_by_stages(point)}


def _set_by_stages(point: Point) -> Point:
    """The axis that the stages of `point` set, with its value: the highest number of clients, or the highest rate."""
    stages = point["stages"]
    if not stages:
        return {}
    return {"rate": stages.highest} if stages.is_open else {"concurrency": int(stages.highest)}


def _applicable(point: Point, matrix: Matrix) -> Point:
    """`point` without axes that do not apply to it, and with the name of the backend of its guarded resource.

    A database has no persistence setting of Redis.
    """
    point = {**point, "guard_on": _guard_on(point)}
    kinds = kinds_of_place(point["backend"], matrix.backends)
    if ServerKind.REDIS in (*kinds, _guard_kind(point, matrix)):
        return point
    return {**point, "appendfsync": HAS_NONE}


def _guard_on(point: Point) -> str:
    if not point["guard"]:
        return HAS_NONE
    named = str(point["guard_on"])
    return parts_of_place(point["backend"])[0] if named == OWN_SERVER else named


def _guard_kind(point: Point, matrix: Matrix) -> ServerKind | None:
    backend = matrix.backends.get(point["guard_on"])
    return backend.kind if backend is not None and point["guard"] else None


def _matches(point: Point, part: dict[str, tuple[Any, ...]]) -> bool:
    """Whether `point` matches all axes of `part`. An empty entry matches no point."""
    return bool(part) and all(point[name] in values for name, values in part.items())


def _cell(point: Point, matrix: Matrix) -> Cell:
    strategy, arguments = point["strategy"]
    values = {axis.column: point[name] for name, axis in AXES.items() if name != "strategy"}
    kind = _guard_kind(point, matrix)
    return Cell(id=cell_id(point), strategy=strategy, args=arguments, guard_kind=kind, **values)
