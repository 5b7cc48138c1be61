"""A table for a terminal whose last columns are dropped where it would be too wide: half a number is a wrong number."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from pybench.cli.output import UNBOUNDED, is_unbounded

if TYPE_CHECKING:
    from rich.console import Console

Row = TypeVar("Row")
GAP = 2


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column; one that is kept stands in the table however wide it is."""

    heading: str
    text: Callable[[Row], str]
    left: bool = False
    is_kept: bool = False

    def width(self, rows: Sequence[Row]) -> int:
        """The widest of its texts."""
        return max(len(self.heading), *(len(self.text(one)) for one in rows))


def print_table(
    console: Console, rows: Sequence[Row], columns: Sequence[Column[Row]], style: Callable[[Row], str]
) -> list[str]:
    """Print a line a row; returns the headings of the columns that were dropped."""
    shown, dropped = _fitting(rows, columns, UNBOUNDED if is_unbounded() else console.width)
    widths = [column.width(rows) for column in shown]
    console.print(_line([column.heading for column in shown], shown, widths), style="bold", soft_wrap=True)
    console.print("-" * (sum(widths) + GAP * (len(widths) - 1)), style="dim", soft_wrap=True)
    for one in rows:
        line = _line([column.text(one) for column in shown], shown, widths)
        console.print(line, style=style(one), soft_wrap=True)
    return dropped


def print_with_notes(
    console: Console,
    rows: Sequence[Row],
    columns: Sequence[Column[Row]],
    style: Callable[[Row], str],
    notes: Sequence[str],
) -> None:
    """Print a table where there are rows, name the columns that were dropped, and print the notes."""
    if rows:
        say(console, "")
        dropped = print_table(console, rows, columns, style)
        say(console, "")
        if dropped:
            say(console, f"not shown at this width: {', '.join(dropped)} (--json has all)", style="dim")
    for note in notes:
        say(console, note, style="dim")


def say(console: Console, text: str, style: str = "", indent: str = "  ") -> None:
    """Print a text of any length, wrapped to the width of the console."""
    lines = textwrap.wrap(text, console.width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
    for line in lines or [""]:
        console.print(line, style=style, soft_wrap=True)


def _fitting(rows: Sequence[Row], columns: Sequence[Column[Row]], width: int) -> tuple[list[Column[Row]], list[str]]:
    shown, dropped = list(columns), list[str]()
    while sum(column.width(rows) + GAP for column in shown) - GAP > width and not shown[-1].is_kept:
        dropped.insert(0, shown.pop().heading)
    return shown, dropped


def _line(texts: Sequence[str], columns: Sequence[Column[Row]], widths: Sequence[int]) -> str:
    padded = [
        text.ljust(width) if column.left else text.rjust(width)
        for text, column, width in zip(texts, columns, widths, strict=True)
    ]
    return (" " * GAP).join(padded).rstrip()
