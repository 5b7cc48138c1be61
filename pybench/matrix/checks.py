"""Whether the parts of a matrix agree with each other, told all at once.

Does not judge whether a cell can be measured: that is the plan's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pybench.matrix.axes import AXES, OPEN_LOOP_AXES, OWN_COLUMNS
from pybench.matrix.problems import Path, Problem
from pybench.notation import shown, suggestion

if TYPE_CHECKING:
    from pybench.matrix.models import Axes, Fixed, Matrix

MOST_CELLS = 10_000


def problems_of(matrix: Matrix) -> list[Problem]:
    """Everything in `matrix` that contradicts something else in it."""
    axes, fixed = given(matrix.axes), given(matrix.fixed)
    return [
        *_twice(axes, fixed),
        *_repeated(axes),
        *_strategies(matrix, axes, fixed),
        *_backends(matrix),
        *_open_loop_words(("axes",), axes, {*axes, *fixed}),
        *_open_loop_words(("fixed",), fixed, {*axes, *fixed}),
        *_includes(matrix, fixed),
        *_thresholds(matrix),
        *_size(matrix, axes),
    ]


def given(part: Axes | Fixed) -> dict[str, Any]:
    """The axes that `part` names, in the order of the table, with their parsed values."""
    return {name: getattr(part, name) for name in AXES if name in part.model_fields_set}


def named_axes(matrix: Matrix) -> set[str]:
    """The axes that `axes`, `fixed` or `include` name."""
    parts: list[Axes | Fixed] = [matrix.axes, matrix.fixed, *matrix.include]
    return {name for part in parts for name in given(part)}


def _twice(axes: Iterable[str], fixed: Iterable[str]) -> Iterator[Problem]:
    for name in set(axes) & set(fixed):
        yield Problem(("fixed", name), f"{name} is in axes too", "keep one of them", of_key=True)


def _repeated(axes: dict[str, Any]) -> Iterator[Problem]:
    for name, values in axes.items():
        first: dict[Any, int] = {}
        for index, value in enumerate(values):
            if value in first:
                text = AXES[name].text(value)
                yield Problem(("axes", name, index), f"{text} is given twice", "keep one of them")
            first.setdefault(value, index)


def _strategies(matrix: Matrix, axes: dict[str, Any], fixed: dict[str, Any]) -> Iterator[Problem]:
    hint = "name one or more, for example naive and mutex"
    if "strategy" not in {*axes, *fixed} and (axes or not matrix.include):
        yield Problem(("axes", "strategy"), "there is no strategy", hint, of_key=True)
    for index, part in enumerate(matrix.include):
        if "strategy" not in {*part.model_fields_set, *fixed}:
            yield Problem(("include", index), "this cell has no strategy", hint)


def _backends(matrix: Matrix) -> Iterator[Problem]:
    for name, backend in matrix.backends.items():
        if {"written_url", "written_urls"} <= backend.model_fields_set:
            message = "one address stands under url and several under urls"
            yield Problem(("backends", name, "urls"), message, "leave one of them out", of_key=True)
        if backend.is_given and "source" in backend.model_fields_set:
            message = "a source is for servers that pybench starts, this one has an address"
            yield Problem(("backends", name, "source"), message, "leave one of them out", of_key=True)
    for path, name in _backends_named(matrix):
        if name not in matrix.backends:
            yield Problem(path, f"there is no backend {shown(name)}", suggestion(name, matrix.backends))


def _backends_named(matrix: Matrix) -> Iterator[tuple[Path, str]]:
    parts: list[tuple[Path, Axes | Fixed]] = [(("axes",), matrix.axes), (("fixed",), matrix.fixed)]
    parts += [(("include", index), part) for index, part in enumerate(matrix.include)]
    parts += [(("exclude", index), part) for index, part in enumerate(matrix.exclude)]
    for path, part in parts:
        named = given(part).get("backend")
        if isinstance(named, str):
            yield (*path, "backend"), named
        else:
            for index, name in enumerate(named or ()):
                yield (*path, "backend", index), name


def _open_loop_words(path: Path, names: Iterable[str], beside: set[str]) -> Iterator[Problem]:
    for name in OPEN_LOOP_AXES:
        if name in names and "rate" not in beside:
            message = f"{name} says nothing without a rate, which makes an open loop"
            yield Problem((*path, name), message, "add for example rate: 5000/s", of_key=True)


def _includes(matrix: Matrix, fixed: dict[str, Any]) -> Iterator[Problem]:
    for index, part in enumerate(matrix.include):
        names = part.model_fields_set
        yield from _open_loop_words(("include", index), names, {*names, *fixed})


def _thresholds(matrix: Matrix) -> Iterator[Problem]:
    columns = {*OWN_COLUMNS, *named_axes(matrix)}
    for index, threshold in enumerate(matrix.thresholds):
        for axis, _ in threshold.where:
            if axis not in columns:
                hint = f"name it under axes or fixed, or ask for one of {', '.join(sorted(columns))}"
                message = f"{axis} is not an axis of this matrix"
                yield Problem(("thresholds", index, "where", axis), message, hint, of_key=True)


def _size(matrix: Matrix, axes: dict[str, Any]) -> Iterator[Problem]:
    """Counted, not expanded: a matrix of 10^12 cells is refused as fast as one of 10^5."""
    lengths = [len(values) for values in axes.values()]
    if "backend" not in axes and "backend" not in matrix.fixed.model_fields_set:
        lengths.append(len(matrix.backends))
    cells = math.prod(lengths) + len(matrix.include)
    if cells > MOST_CELLS:
        message = f"the axes make {cells:,} cells"
        yield Problem(("axes",), message, f"at most {MOST_CELLS:,}: shorten an axis or fix it", of_key=True)
