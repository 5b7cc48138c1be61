"""A matrix for a first look: the same loads in less time."""

from __future__ import annotations

from typing import Any

from pybench.matrix.cells import AXES
from pybench.matrix.models import Matrix
from pybench.matrix.stages import Stages

_STAGES = "stages"
_FAULTS = "faults"


def with_shorter_stages(matrix: Matrix, length_ns: int) -> Matrix:
    """`matrix` with its stages shortened to about `length_ns`, wherever it names them; others stay as they are."""

    def shorter(value: Any) -> Any:  # noqa: ANN401 - stages, or a tuple of them
        if isinstance(value, Stages):
            return value.shortened_to(length_ns)
        # Values that differ in their lengths only become one.
        return tuple(dict.fromkeys(one.shortened_to(length_ns) for one in value))

    def of_part(part: Any) -> Any:  # noqa: ANN401 - a model that is made at run time
        if _STAGES not in part.model_fields_set:
            return part
        return part.model_copy(update={_STAGES: shorter(getattr(part, _STAGES))})

    parts = {"axes": of_part(matrix.axes), "fixed": of_part(matrix.fixed)}
    lists = {name: tuple(of_part(part) for part in getattr(matrix, name)) for name in ("exclude", "include")}
    thresholds = tuple(threshold.with_where(_STAGES, _texts(length_ns)) for threshold in matrix.thresholds)
    return matrix.model_copy(update={**parts, **lists, "thresholds": thresholds})


def end_of_faults_ns(matrix: Matrix) -> int:
    """When the last fault of any plan of `matrix` is over, in nanoseconds from the opening of the window; 0 without."""
    parts: list[Any] = [matrix.axes, matrix.fixed, *matrix.include]
    values = [getattr(part, _FAULTS) for part in parts if _FAULTS in part.model_fields_set]
    plans = [plan for value in values for plan in (value if isinstance(value, tuple) else (value,))]
    return max((plan.end_ns for plan in plans), default=0)


def _texts(length_ns: int) -> Any:  # noqa: ANN401 - a function of a text
    return lambda text: AXES[_STAGES].text(Stages.parse(text).shortened_to(length_ns))
