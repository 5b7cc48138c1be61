"""One row of `make perf` in one round, and what makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pybench.servers import Server

Bound = Literal["at least", "at most"]
Goal = tuple[Bound, float]


@dataclass(frozen=True, slots=True)
class Sample:
    """One row in one round. With a reference the goal is of the ratio, otherwise of the figure."""

    name: str
    figure: float
    reference: float | None
    goal: Goal | None
    unit: str = "grants/s"


Case = Callable[[Server], Iterator[Sample]]
