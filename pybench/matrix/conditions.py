"""The conditions that cells were measured under, in words: the same in the terminal, the answer and the report."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from pybench.numbers import format_percent, missing, plural

AxisValue = int | float | str | bool | None
Conditions = tuple[tuple[str, AxisValue], ...]
"""Axes and their values, such as the one that a run varied and what it was for one cell."""


def say_conditions(conditions: Iterable[tuple[str, AxisValue]]) -> str:
    """Conditions in words: "64 clients, 1,000 keys"."""
    return ", ".join(condition_texts(conditions))


def condition_texts(conditions: Iterable[tuple[str, AxisValue]]) -> list[str]:
    """Each of the conditions in words; the order of the keys of a grant is left out where a grant has one."""
    pairs = [(axis, _number(value) if axis in _OF_SETS else value) for axis, value in conditions]
    one_key = ("keys_per_grant", 1) in pairs
    return [say_condition(axis, value) for axis, value in pairs if not (one_key and axis == "key_order")]


def say_condition(axis: str, value: AxisValue) -> str:
    """One condition in words: "64 clients", "hold exp(2ms)", "after_lease stop"."""
    if missing(value):
        return f"no {axis}"
    if axis in _COUNTED and isinstance(value, int):
        return plural(value, _COUNTED[axis])
    if axis == "keys_per_grant" and isinstance(value, int):
        return f"{plural(value, 'key')} a grant"
    if axis == "key_order":
        return f"keys in {value} order"
    if axis == "read_share" and isinstance(value, int | float):
        return f"{format_percent(value)} readers" if value else "no readers"
    return f"{axis} {value}"


def axis_title(axis: str) -> str:
    """The heading of a column that holds the values of `axis`: what is counted, where it counts."""
    return f"{_COUNTED[axis]}s" if axis in _COUNTED else axis


def _number(value: AxisValue) -> AxisValue:
    """The number that a text is of, for records keep further axes as text."""
    if isinstance(value, str):
        for read in (int, float):
            with suppress(ValueError):
                return read(value)
    return value


_OF_SETS = ("keys_per_grant", "read_share")
_COUNTED = {"concurrency": "client", "keys": "key", "threads": "thread"}
