"""The conditions that cells were measured under, in words: the same in the terminal, the answer and the report."""

from __future__ import annotations

from collections.abc import Iterable

from pybench.numbers import missing, plural

AxisValue = int | float | str | bool | None
Conditions = tuple[tuple[str, AxisValue], ...]
"""Axes and their values, such as the one that a run varied and what it was for one cell."""


def say_conditions(conditions: Iterable[tuple[str, AxisValue]]) -> str:
    """Conditions in words: "64 clients, 1,000 keys"."""
    return ", ".join(say_condition(axis, value) for axis, value in conditions)


def say_condition(axis: str, value: AxisValue) -> str:
    """One condition in words: "64 clients", "hold exp(2ms)", "after_lease stop"."""
    if missing(value):
        return f"no {axis}"
    if axis in _COUNTED and isinstance(value, int):
        return plural(value, _COUNTED[axis])
    return f"{axis} {value}"


def axis_title(axis: str) -> str:
    """The heading of a column that holds the values of `axis`: what is counted, where it counts."""
    return f"{_COUNTED[axis]}s" if axis in _COUNTED else axis


_COUNTED = {"concurrency": "client", "keys": "key", "threads": "thread"}
