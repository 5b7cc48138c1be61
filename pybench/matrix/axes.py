"""The description of one axis of a matrix, and how a field of `Cell` becomes an axis.

Each axis is written once, as a field of `pybench.matrix.cells.Cell`. The matrix and its schema, the options of the
command line, the ids of cells, the columns of tables and the core's specification are made from these fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, get_args, get_origin

from annotated_types import Interval

from pybench.column import Type

REQUIRED: Final = object()
"""Marks an axis without a default."""

Column = int | float | str | None
"""A value of an axis in a table."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The type of an axis whose values have their own notation."""

    parse: Callable[[object], Any]
    """Reads one value; raises BadValue."""
    schema: Mapping[str, Any]
    """JSON Schema of one value."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: how its values are read, written, kept in tables and explained."""

    name: str
    """The name in a matrix, in an option and in a cell's id."""
    type: Any
    """The type by which pydantic reads a value: a `Literal`, an `Annotated` number with its bounds, or `Parsed`."""
    default: Any
    """None for `strategy` and `rate`, which have no default; a `rate` makes the loop open."""
    meaning: str
    """What the axis means, and the forms of its values, as a phrase for the help and the schema."""
    metavar: str
    """The placeholder for a value in `--help`."""
    column: str
    """The name of the column in every table."""
    unit: str
    """The unit of the column's values; empty without a unit."""
    column_type: Type
    text: Callable[[Any], str]
    """The canonical text of a parsed value."""
    noun: str | None
    """The noun of a count, as in "64 clients"; None for other values."""
    short: str | None
    """The short name of the option."""
    also: str | None
    """Another long name of the option."""
    only_open: bool
    """Whether the axis has a meaning in an open loop only."""
    of_servers: bool
    """Whether the axis describes the servers of a cell, and not its load."""
    on_chart: Callable[[str], float | None] | None
    """The place of a canonical text on the axis of a chart, None for a text without one. Columns of numbers and texts
    that are drawn as panels have no such function."""
    has_commas: bool
    """Whether a value may have commas of its own, so that a text of an option is always one value."""

    @property
    def sentence(self) -> str:
        """The meaning followed by the default."""
        default = "" if self.default is None else f" Default: {self.text(self.default)}."
        return f"{self.meaning}.{default}"

    @property
    def flag(self) -> str:
        """The long name of the option."""
        return f"--{self.name.replace('_', '-')}"

    def in_table(self, value: Any) -> Column:  # noqa: ANN401 - one parsed value of any axis
        """A parsed value as tables hold it: a number in a numeric column, otherwise the canonical text."""
        return self.text(value) if self.column_type == "string" and value is not None else value

    def text_in_table(self, value: Any) -> str:  # noqa: ANN401 - a field of a frame's row
        """The canonical text of a value of the column."""
        match self.column_type:
            case "int64":
                return self.text(int(value))
            case "float64":
                return self.text(float(value))
        return str(value)


def count(highest: int, *, lowest: int = 1) -> Any:  # noqa: ANN401 - a type as data
    """The type of a whole number from `lowest` to `highest`."""
    return Annotated[int, Interval(ge=lowest, le=highest)]


def share() -> Any:  # noqa: ANN401 - a type as data
    """The type of a number from 0 to 1."""
    return Annotated[float, Interval(ge=0, le=1)]


def axis(
    type: Any,  # noqa: ANN401 - a type as data
    default: Any,  # noqa: ANN401 - of any axis
    meaning: str,
    *,
    metavar: str = "N,...",
    name: str | None = None,
    unit: str = "",
    column_type: Type | None = None,
    text: Callable[[Any], str] | None = None,
    noun: str | None = None,
    short: str | None = None,
    also: str | None = None,
    only_open: bool = False,
    of_servers: bool = False,
    on_chart: Callable[[str], float | None] | None = None,
    has_commas: bool = False,
) -> Any:  # noqa: ANN401 - a field of a dataclass, which stands for its value
    """A field of `Cell` that is an axis; `name` is given where the axis and its column have different names."""
    described = Axis(
        name=name or "",
        type=type,
        default=None if default is REQUIRED else default,
        meaning=meaning,
        metavar=metavar,
        column="",
        unit=unit,
        column_type=column_type or _column_type(type),
        text=text or _text_of(type),
        noun=noun,
        short=short,
        also=also,
        only_open=only_open,
        of_servers=of_servers,
        on_chart=on_chart,
        has_commas=has_commas,
    )
    metadata = {"axis": described}
    return field(metadata=metadata) if default is REQUIRED else field(default=default, metadata=metadata)


def axes_of(fields: Mapping[str, Any]) -> dict[str, Axis]:
    """The axes among the `fields` of a dataclass, by name. The name of a field is that of the column."""
    described = {column: one.metadata["axis"] for column, one in fields.items() if "axis" in one.metadata}
    found = [replace(one, name=one.name or column, column=column) for column, one in described.items()]
    return {one.name: one for one in found}


def _column_type(kind: Any) -> Type:  # noqa: ANN401 - a type as data
    if get_origin(kind) is not Annotated:
        return "string"
    return "int64" if get_args(kind)[0] is int else "float64"


def _text_of(kind: Any) -> Callable[[Any], str]:  # noqa: ANN401 - a type as data
    return _own_text if isinstance(kind, Parsed) else str


def _own_text(value: Any) -> str:  # noqa: ANN401 - a value of any notation
    return str(value.text)
