"""Contradictions between the parts of a matrix, all found at once.

Does not do: checking whether a cell can be measured; the plan does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pybench.matrix.cells import AXES, OWN_SERVER
from pybench.matrix.places import kinds_of_place, parts_of_place, places
from pybench.matrix.problems import Path, Problem
from pybench.matrix.stage_checks import makes_open, stage_problems
from pybench.notation import shown, suggestion
from pybench.strategies import CATALOGUE, ServerKind

if TYPE_CHECKING:
    from pybench.matrix.backends import Backend
    from pybench.matrix.models import Axes, Fixed, Matrix

MOST_CELLS = 10_000


def problems_of(matrix: Matrix) -> list[Problem]:
    """All contradictions within `matrix`."""
    axes, fixed = given(matrix.axes), given(matrix.fixed)
    return [
        *_twice(axes, fixed),
        *_repeated(axes),
        *_strategies(matrix, axes, fixed),
        *_backends(matrix),
        *_open_loop_words(("axes",), axes, makes_open({**fixed, **axes})),
        *_open_loop_words(("fixed",), fixed, makes_open({**fixed, **axes})),
        *stage_problems(matrix, axes, fixed),
        *_includes(matrix, fixed),
        *_persistence(matrix, axes, fixed),
        *_size(matrix, axes),
    ]


def given(part: Axes | Fixed) -> dict[str, Any]:
    """The axes given in `part`, in the order of `Cell`, with their parsed values."""
    return {name: getattr(part, name) for name in AXES if name in part.model_fields_set}


def strategies_of(matrix: Matrix) -> list[str]:
    """The names of all strategies of `matrix`, without their arguments."""
    strategies: list[tuple[str, Any]] = [*given(matrix.axes).get("strategy", ())]
    strategies += [given(part)["strategy"] for part in (matrix.fixed, *matrix.include) if "strategy" in given(part)]
    return list(dict.fromkeys(name for name, _ in strategies))


def places_of(matrix: Matrix) -> Iterator[tuple[Path, str, list[str]]]:
    """For each strategy of `matrix`: the path where it is given, its name, and the backends it is measured on."""
    axes, fixed = given(matrix.axes), given(matrix.fixed)
    beside = strategies_of(matrix)
    entries: list[tuple[Path, str, Sequence[str] | None]] = []
    named = axes.get("backend") or ((fixed["backend"],) if "backend" in fixed else None)
    entries += [(("axes", "strategy", index), name, named) for index, (name, _) in enumerate(axes.get("strategy", ()))]
    # Without any axes, fixed values apply to the cells of include only.
    if "strategy" in fixed and (axes or not matrix.include):
        entries.append((("fixed", "strategy"), fixed["strategy"][0], named))
    for index, part in enumerate(matrix.include):
        point = {**fixed, **given(part)}
        if "strategy" in point:
            own = (point["backend"],) if "backend" in point else None
            entries.append((("include", index), point["strategy"][0], own))
    for path, name, where in entries:
        yield path, name, places(name, matrix.backends, named=where, beside=beside)


def backends_named(matrix: Matrix) -> Iterator[tuple[Path, str]]:
    """Every backend, or pair of backends, that the axis `backend` names, with its path."""
    return _named_by("backend", matrix)


def guard_backends_named(matrix: Matrix) -> Iterator[tuple[Path, str]]:
    """Every backend that the axis `guard_on` names, with its path."""
    return ((path, name) for path, name in _named_by("guard_on", matrix) if name != OWN_SERVER)


def _named_by(axis: str, matrix: Matrix) -> Iterator[tuple[Path, str]]:
    parts: list[tuple[Path, Axes | Fixed]] = [(("axes",), matrix.axes), (("fixed",), matrix.fixed)]
    parts += [(("include", index), part) for index, part in enumerate(matrix.include)]
    parts += [(("exclude", index), part) for index, part in enumerate(matrix.exclude)]
    for path, part in parts:
        named = given(part).get(axis)
        if isinstance(named, str):
            yield (*path, axis), named
        else:
            for index, name in enumerate(named or ()):
                yield (*path, axis, index), name


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
    # An unknown backend is reported alone, since the other problems may follow from it.
    if not wrong:
        for path, strategy, found in places_of(matrix):
            if not found:
                yield _nowhere(path, strategy, matrix)


def _backend(path: Path, backend: Backend) -> Iterator[Problem]:
    if {"written_url", "written_urls"} <= backend.model_fields_set:
        message = "both url and urls are given"
        yield Problem((*path, "urls"), message, "leave one of them out", of_key=True)
    if backend.is_given and "source" in backend.model_fields_set:
        message = "source is for servers that pybench starts, and this backend has an address"
        yield Problem((*path, "source"), message, "leave one of them out", of_key=True)
    if backend.kind_of_address not in (None, backend.kind):
        message = f"the address of this backend is not that of a {backend.kind.label} server"
        yield Problem((*path, "kind"), message, "leave kind out: the address decides", of_key=True)
    if backend.prepare != "auto" and backend.kind is not ServerKind.POSTGRES:
        message = "prepare is for Postgres servers only"
        yield Problem((*path, "prepare"), message, "leave prepare out", of_key=True)


def _unknown_backends(matrix: Matrix) -> Iterator[Problem]:
    for path, place in backends_named(matrix):
        unknown = [name for name in parts_of_place(place) if name not in matrix.backends]
        for name in unknown:
            yield Problem(path, f"there is no backend {shown(name)}", suggestion(name, matrix.backends))
        kinds = kinds_of_place(place, matrix.backends)
        if not unknown and len(kinds) > 1 and kinds != tuple(ServerKind):
            message = f"{place} is not a pair of a Redis backend and a Postgres backend"
            yield Problem(path, message, "use this order: redis+postgres")

    for path, name in guard_backends_named(matrix):
        if name not in matrix.backends:
            # A default backend that no strategy needs is there as soon as it is named.
            known = matrix.backends if "backends" in matrix.model_fields_set else ServerKind
            hint = suggestion(name, [OWN_SERVER, *known])
            yield Problem(path, f"there is no backend {shown(name)} for the guarded resource", hint)


def _nowhere(path: Path, strategy: str, matrix: Matrix) -> Problem:
    kinds = CATALOGUE[strategy].server_kinds
    needed = " and ".join(f"a {kind.label} server" for kind in kinds)
    missing = [kind for kind in kinds if kind not in {backend.kind for backend in matrix.backends.values()}]
    if missing:
        message = f"{strategy} needs {needed}, and backends lists no {missing[0].label} server"
        hint = f"add {missing[0]}: {{}} to backends (pybench starts a server), or pass an address with --{missing[0]}"
    else:
        message = f"{strategy} needs {needed}, and backend names no such server"
        hint = "name a suitable backend, or leave backend out"
    return Problem(path, message, hint)


def _open_loop_words(path: Path, names: Iterable[str], is_open: bool) -> Iterator[Problem]:  # noqa: FBT001 - a fact
    for name in (axis.name for axis in AXES.values() if axis.only_open):
        if name in names and not is_open:
            message = f"{name} has an effect in an open loop only, which needs a rate"
            yield Problem((*path, name), message, "add for example rate: 5000/s", of_key=True)


def _includes(matrix: Matrix, fixed: dict[str, Any]) -> Iterator[Problem]:
    for index, part in enumerate(matrix.include):
        own = given(part)
        yield from _open_loop_words(("include", index), own, makes_open({**fixed, **own}))


def _persistence(matrix: Matrix, axes: dict[str, Any], fixed: dict[str, Any]) -> Iterator[Problem]:
    blocks = [block for block, named in (("axes", axes), ("fixed", fixed)) if "appendfsync" in named]
    found = [place for _, _, on in places_of(matrix) for place in on] if blocks else []
    if found and not any(ServerKind.REDIS in kinds_of_place(place, matrix.backends) for place in found):
        for block in blocks:
            message = "appendfsync has no effect, because no cell uses a Redis server"
            hint = "leave appendfsync out; for locks of a database use their argument synchronous_commit"
            yield Problem((block, "appendfsync"), message, hint, of_key=True)


def _size(matrix: Matrix, axes: dict[str, Any]) -> Iterator[Problem]:
    """Too many cells. Cells are counted without expanding them, so even 10^12 cells are refused at once."""
    others = math.prod(len(values) for name, values in axes.items() if name not in ("strategy", "backend"))
    cells = sum(len(found) * (1 if path[0] == "include" else others) for path, _, found in places_of(matrix))
    if cells > MOST_CELLS:
        message = f"the axes make {cells:,} cells"
        yield Problem(("axes",), message, f"at most {MOST_CELLS:,}: give an axis fewer values", of_key=True)
