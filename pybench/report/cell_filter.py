"""What the page can be filtered by: locks, backends, the axes of the run, and verdicts.

The page keeps one choice for all its charts and tables. It knows a cell by `CellView.index`: an element with the
attribute `data-cell` and a trace of a chart with `ids` follow the filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pybench.matrix.conditions import axis_title, condition_value, say_condition
from pybench.report.view import CellView, View


@dataclass(frozen=True, slots=True)
class Facet:
    """One choice. `key` stands in the address of the page, `title` beside the values."""

    key: str
    title: str
    values: list[tuple[str, str]]
    """Each value as the page's address and buttons have it, and in the words by which the text filter finds it."""


@dataclass(frozen=True, slots=True)
class CellFilter:
    """All choices of a page. `cells` has for each cell the place of its value in each facet."""

    facets: list[Facet]
    cells: list[list[int]]

    @property
    def data(self) -> dict[str, Any]:
        """What the page's script reads."""
        facets = [{"key": one.key, "values": [value for value, _ in one.values]} for one in self.facets]
        words = [[words for _, words in one.values] for one in self.facets]
        return {"facets": facets, "words": words, "cells": self.cells}

    @property
    def choices(self) -> list[Facet]:
        """The facets that leave a choice."""
        return [facet for facet in self.facets if len(facet.values) > 1]


def cell_filter(view: View) -> CellFilter | None:
    """The filter of `view`; None where there are no two cells to choose from."""
    if len(view.cells) < 2:
        return None
    facets = [
        _facet(view.cells, "lock", "lock", _lock),
        _facet(view.cells, "backend", "backend", lambda cell: (str(cell.row["backend"]), f"on {cell.row['backend']}")),
        *(_facet(view.cells, axis, axis_title(axis), _condition(axis)) for axis in view.axes),
        _facet(view.cells, "verdict", "verdict", lambda cell: (cell.verdict, cell.verdict)),
    ]
    return CellFilter(
        [facet for facet, _ in facets], [list(of_cell) for of_cell in zip(*(c for _, c in facets), strict=True)]
    )


def _lock(cell: CellView) -> tuple[str, str]:
    """The lock without its backend, which is a choice of its own."""
    args = str(cell.row.get("args") or "")
    name = f"{cell.series.strategy}({args})" if args else cell.series.strategy
    # The line may be called after its retry policy or its run.
    return name, f"{name} {cell.series.label}"


def _condition(axis: str) -> Callable[[CellView], tuple[str, str]]:
    def told(cell: CellView) -> tuple[str, str]:
        return condition_value(axis, cell.condition(axis)), say_condition(axis, cell.condition(axis))

    return told


def _facet(
    cells: Sequence[CellView], key: str, title: str, told: Callable[[CellView], tuple[str, str]]
) -> tuple[Facet, list[int]]:
    """The facet, and for each cell the place of its value in it."""
    values: dict[tuple[str, str], int] = {}
    codes = [values.setdefault(told(cell), len(values)) for cell in cells]
    return Facet(key, title, list(values)), codes
