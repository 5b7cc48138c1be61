"""Contradictions between the axis `stages` and the axes that it sets.

Stages of clients set `concurrency`, stages of arrivals set `rate`, each to their highest value. Another value of that
axis would have no effect, so it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pybench.matrix.durations import format_rate
from pybench.matrix.problems import Path, Problem
from pybench.matrix.stages import Stages

if TYPE_CHECKING:
    from pybench.matrix.models import Matrix


def makes_open(values: Mapping[str, Any]) -> bool:
    """Whether the axes `values`, each with one value or with several, make the loop of some cell open."""
    searches = any(mode.is_search for mode in _listed(values.get("mode", ())))
    return "rate" in values or searches or any(stages.is_open for stages in _stages_in(values))


def stage_problems(matrix: Matrix, axes: Mapping[str, Any], fixed: Mapping[str, Any]) -> list[Problem]:
    """What contradicts the stages of `matrix`, whose blocks `axes` and `fixed` have these values; a path once."""
    found: list[Problem] = []
    # Without any axes, fixed values apply to the cells of include only.
    if axes or not matrix.include:
        found += _contradictions({**fixed, **axes}, lambda name: ("axes" if name in axes else "fixed", name))
    for index, part in enumerate(matrix.include):
        own = {name: getattr(part, name) for name in part.model_fields_set}
        found += _contradictions({**fixed, **own}, _path_in_include(index, own))
    return list({problem.path: problem for problem in reversed(found)}.values())


def _path_in_include(index: int, own: Mapping[str, Any]) -> Callable[[str], Path]:
    return lambda name: ("include", index, name if name in own else "stages")


def _contradictions(values: Mapping[str, Any], path: Callable[[str], Path]) -> Iterator[Problem]:
    for stages in _stages_in(values):
        if not stages.is_open and "rate" in values:
            message = f"the stages {stages.text} are clients, and a rate makes the loop open"
            yield Problem(path("rate"), message, "leave rate out, or write the stages in arrivals per second")
        name = "rate" if stages.is_open else "concurrency"
        if any(value != stages.highest for value in _listed(values.get(name, ()))):
            highest = format_rate(stages.highest) if stages.is_open else f"{int(stages.highest)}"
            message = f"{name} contradicts the stages {stages.text}, which set it to their highest value, {highest}"
            yield Problem(path(name), message, f"leave {name} out (cells with a steady load belong under include)")


def _stages_in(values: Mapping[str, Any]) -> list[Stages]:
    return [stages for stages in _listed(values.get("stages", ())) if stages]


def _listed(value: Any) -> Iterable[Any]:  # noqa: ANN401 - one parsed value of any axis, or a tuple of them
    return value if isinstance(value, tuple) else (value,)
