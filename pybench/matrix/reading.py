"""How a parser that raises BadValue becomes a validator of pydantic, its message, hint and path kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic_core import PydanticCustomError

from pybench.notation import BadValue, visible

ERROR_TYPE = "pybench"

T = TypeVar("T")


def reads(parse: Callable[[object], T]) -> Callable[[object], T]:
    """`parse`, its BadValue turned into an error that pydantic collects together with the place of the value."""

    def validate(value: object) -> T:
        try:
            return parse(value)
        except BadValue as problem:
            # Visible, for pydantic takes no text with bytes that are not UTF-8, which input may have.
            hint = None if problem.hint is None else visible(problem.hint)
            told = {"told": visible(problem.message), "hint": hint, "at": problem.at}
            raise PydanticCustomError(ERROR_TYPE, "{told}", told) from None

    return validate
