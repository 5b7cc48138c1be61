"""Which cells of two runs are the same: those with the same lock under the same load.

A cell is matched by its content: strategy, arguments, every axis and its backend. Ids are not compared, because another
version may write them in another way. Only a gate names its pairs: there the lock may differ, under the same load.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pybench.analysis.comparison.claims import axis_value
from pybench.analysis.comparison.entrants import lock_name
from pybench.matrix.cells import LOAD_COLUMNS

Row = Mapping[Hashable, Any]
"""A row of `summary.csv`."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The pairs of rows of the old and the new run, in the order of the new one, and the rows without a partner."""

    pairs: list[tuple[Row, Row]]
    only_old: list[Row]
    only_new: list[Row]


def match_cells(
    old: Sequence[Row],
    new: Sequence[Row],
    kinds: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    known: Mapping[str, str] | None = None,
) -> Matches:
    """Match the cells of two summaries. `kinds` say for each run which kind of server a backend name stands for.

    Cells whose backends have different names are matched where both are of one kind and nothing else fits. `known` has
    pairs of ids, of the old and the new run, that are matched whatever their content.
    """
    pairs: dict[int, Row] = {}
    left = list(range(len(new)))
    right = list(old)
    known = known or {}
    passes: tuple[tuple[Callable[[Row], object], Callable[[Row], object]], ...] = (
        (lambda row: known.get(str(row["cell"]), id(row)), lambda row: str(row["cell"])),
        (lambda row: (row.get("backend"), _content(row)), lambda row: (row.get("backend"), _content(row))),
        (lambda row: (_kind(row, kinds[0]), _content(row)), lambda row: (_kind(row, kinds[1]), _content(row))),
    )
    for of_old, of_new in passes:
        found: dict[object, list[Row]] = {}
        for row in right:
            found.setdefault(of_old(row), []).append(row)
        for place in list(left):
            alike = found.get(of_new(new[place]), [])
            # With two candidates of one kind nothing says which of them it was.
            if len(alike) == 1:
                pairs[place] = alike.pop()
                left.remove(place)
                right = [row for row in right if row is not pairs[place]]
    return Matches(
        pairs=[(pairs[place], new[place]) for place in sorted(pairs)],
        only_old=right,
        only_new=[new[place] for place in left],
    )


def _content(row: Row) -> tuple[object, ...]:
    return (lock_name(row), *(axis_value(row.get(column)) for column in LOAD_COLUMNS))


def _kind(row: Row, kinds: Mapping[str, str]) -> str:
    """The kinds of the servers of a cell: a lock of two servers has a pair such as `redis+postgres`."""
    return "+".join(kinds.get(name, name) for name in str(row.get("backend")).split("+"))
