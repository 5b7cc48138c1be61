"""The conditions of cells in words: the same text in the terminal, the answer and the report."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from pybench.matrix.cells import BY_COLUMN
from pybench.matrix.faults import NO_FAULTS
from pybench.matrix.guards import NO_GUARD
from pybench.matrix.stages import NO_STAGES, recorded_stages
from pybench.notation import BadValue
from pybench.numbers import format_percent, missing, plural

AxisValue = int | float | str | bool | None
Conditions = tuple[tuple[str, AxisValue], ...]
"""Columns of axes with their values for one cell, such as the axes that a run varied."""


def say_conditions(conditions: Iterable[tuple[str, AxisValue]]) -> str:
    """Conditions in words: "64 clients, 1,000 keys"."""
    return ", ".join(condition_texts(conditions))


def condition_texts(conditions: Iterable[tuple[str, AxisValue]]) -> list[str]:
    """Each of the conditions in words; what means nothing beside the others is left out.

    Such are the order of the keys of a grant of one key, the arrivals of a closed loop, the backend of no guard, and
    the clients or the rate beside stages, which name them.
    """
    pairs = list(conditions)
    one_key = ("keys_per_grant", 1) in pairs
    idle = {column for column, value in pairs if missing(value) and column in BY_COLUMN and BY_COLUMN[column].only_open}
    if one_key:
        idle.add("key_order")
    if ("guard", NO_GUARD.text) in pairs:
        idle.add("guard_on")
    idle |= _told_by_stages(pairs)
    return [say_condition(column, value) for column, value in pairs if column not in idle]


def say_condition(column: str, value: AxisValue) -> str:
    """One condition in words: "64 clients", "hold exp(2ms)", "ttl 50ms"."""
    axis = BY_COLUMN.get(column)
    if missing(value):
        return "a closed loop" if column == "rate_per_s" else f"no {axis_title(column)}"
    match column, value:
        case "keys_per_grant", int():
            return f"{plural(value, 'key')} a grant"
        case "key_order", _:
            return f"keys in {value} order"
        case "stages" | "faults", str():
            # These values have commas of their own.
            return f"no {column}" if value in (NO_STAGES.text, NO_FAULTS.text) else f"{column} ({value})"
        case "guard", NO_GUARD.text:
            return "no guard"
        case "guard_on", str():
            return f"guard on {value}"
        case "read_share", int() | float():
            return f"{format_percent(value)} readers" if value else "no readers"
    if axis is None:
        return f"{column} {value}"
    if axis.noun is not None and isinstance(value, int):
        return plural(value, axis.noun)
    return f"{axis.name} {axis.text_in_table(value)}"


def _told_by_stages(pairs: Iterable[tuple[str, AxisValue]]) -> set[str]:
    stages = next((recorded_stages(value) for column, value in pairs if column == "stages"), NO_STAGES)
    if not stages:
        return set()
    return {"rate_per_s"} if stages.is_open else {"rate_per_s", "concurrency"}


def condition_value(column: str, value: AxisValue) -> str:
    """A value of an axis as in a matrix: "50ms", "5000/s"."""
    axis = BY_COLUMN.get(column)
    return str(value) if axis is None or missing(value) else axis.text_in_table(value)


def axis_title(column: str) -> str:
    """The heading of the column of an axis: the counted noun, such as `clients`, else the name of the axis."""
    axis = BY_COLUMN.get(column)
    if axis is None:
        return column
    return f"{axis.noun}s" if axis.noun is not None else axis.name


def place_on_chart(column: str, value: AxisValue) -> float | None:
    """The place of a value of an axis on the axis of a chart; None for a value that is not a number."""
    if isinstance(value, int | float) and not isinstance(value, bool) and not missing(value):
        return float(value)
    axis = BY_COLUMN.get(column)
    # A record of another version may hold an unknown form.
    with suppress(BadValue):
        return axis.on_chart(value) if axis is not None and axis.on_chart and isinstance(value, str) else None
    return None


def chart_title(column: str) -> str:
    """The title of the axis of a chart: that of the column, with the unit where texts are drawn as numbers."""
    axis = BY_COLUMN.get(column)
    return axis_title(column) if axis is None or axis.on_chart is None else f"{axis_title(column)} (ms)"
