"""How pydantic reads the values of a matrix, and its errors in plain words.

Numbers and choices are types of pydantic; each notation of the matrix has a parser that raises BadValue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_origin

from pydantic import BeforeValidator, PlainValidator, TypeAdapter, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError

from pybench.matrix.axes import Axis, Parsed
from pybench.matrix.cells import AXES
from pybench.notation import BadValue, format_number, nearest, refuse_leading_zero, shown, visible

ERROR_TYPE = "pybench"

T = TypeVar("T")


def reads(parse: Callable[[object], T]) -> Callable[[object], T]:
    """`parse` with its BadValue turned into an error that pydantic collects with the path of the value."""

    def validate(value: object) -> T:
        try:
            return parse(value)
        except BadValue as problem:
            # Pydantic accepts no text with bytes that are not UTF-8, which input may contain.
            hint = None if problem.hint is None else visible(problem.hint)
            context = {"message": visible(problem.message), "hint": hint, "at": problem.at}
            raise PydanticCustomError(ERROR_TYPE, "{message}", context) from None

    return validate


def _as_written(value: object) -> object:
    """`value`, unless pydantic would misread it as a number: `true`, and the `024` of `1,024`."""
    if isinstance(value, bool):
        raise BadValue(f"{shown(value)} is not a number")
    refuse_leading_zero(value)
    if isinstance(value, str) and not value.isascii():
        raise BadValue(f"{shown(value)} is not a number")
    return value


AS_WRITTEN = BeforeValidator(reads(_as_written))
"""The check before a number is read."""


def _stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


STRIPPED = BeforeValidator(_stripped)
"""The preparation before a choice is read."""


def annotation(axis: Axis) -> Any:  # noqa: ANN401 - a type as data
    """The type by which pydantic reads one value of `axis` and makes its schema."""
    if isinstance(axis.type, Parsed):
        return Annotated[Any, PlainValidator(reads(axis.type.parse)), WithJsonSchema(dict(axis.type.schema))]
    return Annotated[axis.type, STRIPPED if get_origin(axis.type) is Literal else AS_WRITTEN]


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(annotation(AXES[name]))


def read(axis: Axis, value: object) -> Any:  # noqa: ANN401 - a parsed value of any axis
    """Read one value of `axis`. Raises BadValue."""
    try:
        return _adapter(axis.name).validate_python(value)
    except ValidationError as error:
        raise meaning(error.errors(include_url=False)[0]) from None


def meaning(found: Mapping[str, Any]) -> BadValue:
    """One error of pydantic in plain words, with a hint."""
    kind, context, value = found["type"], found.get("ctx", {}), found["input"]
    if kind == ERROR_TYPE:
        return BadValue(context["message"], hint=context["hint"], at=context["at"])
    if kind == "literal_error":
        return _no_choice(value, re.findall(r"'([^']*)'|(\d+)", context["expected"]))
    if kind in _BOUNDS:
        word, name = _BOUNDS[kind]
        number = value.strip() if isinstance(value, str) else value
        return BadValue(f"{number} is out of range", hint=f"at {word} {format_number(context[name])}")
    if kind in ("int_type", "int_parsing", "int_from_float"):
        return BadValue(f"{shown(value)} is not a whole number", hint="write digits, as in 16")
    if kind == "int_parsing_size":
        return BadValue(f"{shown(value)} is out of range", hint="use a smaller number")
    if kind in ("float_type", "float_parsing"):
        return BadValue(f"{shown(value)} is not a number")
    return BadValue(found["msg"])


_BOUNDS = {"greater_than_equal": ("least", "ge"), "less_than_equal": ("most", "le")}


def _no_choice(value: object, expected: list[tuple[str, str]]) -> BadValue:
    choices = [word or number for word, number in expected]
    if len(choices) == 1:
        return BadValue(f"{shown(value)} is not supported", hint=f"use {choices[0]}")
    message = f"{shown(value)} is not one of {', '.join(choices)}"
    near = nearest(value, choices) if isinstance(value, str) else None
    return BadValue(message, hint=f"did you mean {near}?" if near else None)
