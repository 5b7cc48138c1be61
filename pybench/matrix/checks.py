"""Whether the parts of a matrix agree with each other, told all at once.

Does not judge whether a cell can be measured: that is the plan's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pybench.matrix.cells import AXES
from pybench.matrix.places import kinds_of_place, parts_of_place, places
from pybench.matrix.problems import Path, Problem
from pybench.notation import shown, suggestion
from pybench.strategies import CATALOGUE, ServerKind

if TYPE_CHECKING:
    from pybench.matrix.backends import Backend
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
        *_persistence(matrix, axes, fixed),
        *_size(matrix, axes),
    ]


def given(part: Axes | Fixed) -> dict[str, Any]:
    """The axes that `part` names, in the order of the table, with their parsed values."""
    return {name: getattr(part, name) for name in AXES if name in part.model_fields_set}


def strategies_of(matrix: Matrix) -> list[str]:
    """The names of all strategies of `matrix`, without their arguments."""
    found: list[tuple[str, Any]] = [*given(matrix.axes).get("strategy", ())]
    found += [given(part)["strategy"] for part in (matrix.fixed, *matrix.include) if "strategy" in given(part)]
    return list(dict.fromkeys(name for name, _ in found))


def places_of(matrix: Matrix) -> Iterator[tuple[Path, str, list[str]]]:
    """For each strategy that `matrix` names: where it is named, its name, and the backends that it is measured on."""
    axes, fixed = given(matrix.axes), given(matrix.fixed)
    beside = strategies_of(matrix)
    said: list[tuple[Path, str, Sequence[str] | None]] = []
    named = axes.get("backend") or ((fixed["backend"],) if "backend" in fixed else None)
    said += [(("axes", "strategy", index), name, named) for index, (name, _) in enumerate(axes.get("strategy", ()))]
    # With no axes at all, what is fixed is only for the cells that are included.
    if "strategy" in fixed and (axes or not matrix.include):
        said.append((("fixed", "strategy"), fixed["strategy"][0], named))
    for index, part in enumerate(matrix.include):
        point = {**fixed, **given(part)}
        if "strategy" in point:
            own = (point["backend"],) if "backend" in point else None
            said.append((("include", index), point["strategy"][0], own))
    for path, name, where in said:
        yield path, name, places(name, matrix.backends, named=where, beside=beside)


def backends_named(matrix: Matrix) -> Iterator[tuple[Path, str]]:
    """Every backend, or pair of them, that an axis names, and where."""
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
        yield from _backend(("backends", name), backend)
    wrong = list(_unknown_backends(matrix))
    yield from wrong
    # Where a backend is not known, that is what the user is told of.
    if not wrong:
        for path, strategy, found in places_of(matrix):
            if not found:
                yield _nowhere(path, strategy, matrix)


def _backend(path: Path, backend: Backend) -> Iterator[Problem]:
    if {"written_url", "written_urls"} <= backend.model_fields_set:
        message = "one address stands under url and several under urls"
        yield Problem((*path, "urls"), message, "leave one of them out", of_key=True)
    if backend.is_given and "source" in backend.model_fields_set:
        message = "a source is for servers that pybench starts, this one has an address"
        yield Problem((*path, "source"), message, "leave one of them out", of_key=True)
    if backend.kind_of_address not in (None, backend.kind):
        message = f"its address is not that of a {backend.kind.label} server"
        yield Problem((*path, "kind"), message, "leave kind out: the address says it", of_key=True)
    if backend.prepare != "auto" and backend.kind is not ServerKind.POSTGRES:
        message = "only statements of a Postgres server are prepared"
        yield Problem((*path, "prepare"), message, "leave it out", of_key=True)


def _unknown_backends(matrix: Matrix) -> Iterator[Problem]:
    for path, place in backends_named(matrix):
        unknown = [name for name in parts_of_place(place) if name not in matrix.backends]
        for name in unknown:
            yield Problem(path, f"there is no backend {shown(name)}", suggestion(name, matrix.backends))
        kinds = kinds_of_place(place, matrix.backends)
        if not unknown and len(kinds) > 1 and kinds != tuple(ServerKind):
            message = f"{place} is not a Redis backend and a Postgres one"
            yield Problem(path, message, "say them in this order, as in redis+postgres")


def _nowhere(path: Path, strategy: str, matrix: Matrix) -> Problem:
    kinds = CATALOGUE[strategy].server_kinds
    needed = " and ".join(f"a {kind.label} server" for kind in kinds)
    missing = [kind for kind in kinds if kind not in {backend.kind for backend in matrix.backends.values()}]
    if missing:
        message = f"{strategy} needs {needed}, and backends has none of {missing[0].label}"
        hint = f"add {missing[0]}: {{}} there, and pybench starts one, or give an address with --{missing[0]}"
    else:
        message = f"{strategy} needs {needed}, and that is not what backend names"
        hint = "name one, or leave backend out"
    return Problem(path, message, hint)


def _open_loop_words(path: Path, names: Iterable[str], beside: set[str]) -> Iterator[Problem]:
    for name in (axis.name for axis in AXES.values() if axis.only_open):
        if name in names and "rate" not in beside:
            message = f"{name} says nothing without a rate, which makes an open loop"
            yield Problem((*path, name), message, "add for example rate: 5000/s", of_key=True)


def _includes(matrix: Matrix, fixed: dict[str, Any]) -> Iterator[Problem]:
    for index, part in enumerate(matrix.include):
        names = part.model_fields_set
        yield from _open_loop_words(("include", index), names, {*names, *fixed})


def _persistence(matrix: Matrix, axes: dict[str, Any], fixed: dict[str, Any]) -> Iterator[Problem]:
    blocks = [block for block, named in (("axes", axes), ("fixed", fixed)) if "appendfsync" in named]
    found = [place for _, _, on in places_of(matrix) for place in on] if blocks else []
    if found and not any(ServerKind.REDIS in kinds_of_place(place, matrix.backends) for place in found):
        for block in blocks:
            message = "appendfsync says nothing where no cell is on a Redis server"
            hint = "leave it out; what a database's commit waits for is an argument of its locks: synchronous_commit"
            yield Problem((block, "appendfsync"), message, hint, of_key=True)


def _size(matrix: Matrix, axes: dict[str, Any]) -> Iterator[Problem]:
    """Counted, not expanded: a matrix of 10^12 cells is refused as fast as one of 10^5."""
    others = math.prod(len(values) for name, values in axes.items() if name not in ("strategy", "backend"))
    cells = sum(len(found) * (1 if path[0] == "include" else others) for path, _, found in places_of(matrix))
    if cells > MOST_CELLS:
        message = f"the axes make {cells:,} cells"
        yield Problem(("axes",), message, f"at most {MOST_CELLS:,}: shorten an axis or fix it", of_key=True)
