"""The problems of a matrix, each with the path of the faulty key or value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pybench.errors import InputError

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the matrix."""

MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a matrix."""

    path: Path
    message: str
    hint: str | None = None
    of_key: bool = False
    """Whether the key at `path` is faulty; otherwise its value is."""

    @property
    def advice(self) -> str:
        """The problem, followed by its correction."""
        return f"{self.message}; {self.hint}" if self.hint else self.message

    @property
    def sentence(self) -> str:
        """The advice, preceded by the path of the value."""
        where = ".".join(part for part in self.path if isinstance(part, str))
        return f"{where}: {self.advice}" if where and not self.of_key else self.advice


def raise_all(problems: Iterable[Problem], line: Callable[[Problem], str], *, hint: str) -> None:
    """Raise one InputError with a `line` for each problem; return when there is none."""
    lines = list(dict.fromkeys(line(problem) for problem in problems))
    if not lines:
        return
    if len(lines) > MOST_SHOWN:
        lines = [*lines[:MOST_SHOWN], f"... and {len(lines) - MOST_SHOWN} more"]
    raise InputError("\n".join(lines), hint=hint)
