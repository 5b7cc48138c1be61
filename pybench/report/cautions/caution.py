"""One caution: a fact that a reader needs before the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybench.numbers import plural

SHOWN_CELLS = 3
"""A caution names so many cells, and counts the others."""


@dataclass(frozen=True, slots=True)
class Caution:
    """`grave` ones put the whole run in question."""

    title: str
    text: str
    grave: bool = False


def listed(sentences: Sequence[str], noun: str = "cell") -> str:
    """The first of `sentences`, one for each cell, and the number of the others: `a; b; and 2 further cells`."""
    more = len(sentences) - SHOWN_CELLS
    others = [f"and {plural(more, f'further {noun}')}"] if more > 0 else []
    return "; ".join([*sentences[:SHOWN_CELLS], *others]) + "."
