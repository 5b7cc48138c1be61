"""What is wrong with a matrix, each problem with the path of the key or value that is to blame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pybench.errors import InputError

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the matrix."""

MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to put right."""

    path: Path
    message: str
    hint: str | None = None
    of_key: bool = False
    """Whether the key at `path` is to blame; otherwise its value is."""

    @property
    def advice(self) -> str:
        """What is wrong, then what to say instead."""
        return f"{self.message}; {self.hint}" if self.hint else self.message

    @property
    def sentence(self) -> str:
        """The same with the names of the keys that lead there."""
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
