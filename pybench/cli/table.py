"""The ranked table: one row a cell, best safe grants/s first, unsafe cells struck at the end; below it why they are.

A safe cell that is not compared with the others stands in its order, without a place.

It fits the width it is given: what does not tell rows apart is dropped, least important first, and named below the
table; where even the rest does not fit, each row becomes an entry of two lines. Numbers are never wrapped or cut. The
same layout serves a terminal (styled) and a pipe (plain).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pybench.cli.figures import latency, spread
from pybench.conditions import axis_title, say_conditions
from pybench.contenders import apart, lock_name, why_apart
from pybench.numbers import format_ratio, format_us, format_whole, missing
from pybench.stats import confidence

if TYPE_CHECKING:
    from rich.text import Text

Row = Mapping[str, Any]
"""A row of `summary.csv`, n/a as None or NaN."""

AXES_OF_EVERY_MATRIX = ("concurrency", "keys", "hold", "retry")
GAP = 2
NOTES_SHOWN = 8
KEEP = 0
"""The `drop` of a column that is never dropped."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `heading` has two lines; of several columns too many, the one with the highest `drop` goes first."""

    heading: tuple[str, str]
    text: Callable[[Row], str]
    drop: int = KEEP
    left: bool = False

    @property
    def name(self) -> str:
        """Both lines of the heading on one."""
        return " ".join(part for part in self.heading if part).replace(" /", "/")


INTERVAL = Column(("", "interval"), lambda row: _interval(row), drop=3)
MEASURES = (
    Column(("safe", "grants/s"), lambda row: format_whole(row["safe_grants_per_s"])),
    INTERVAL,
    Column(("acquire", "p50"), lambda row: latency(row["acquire_p50_us"]), drop=2),
    Column(("acquire", "p99"), lambda row: latency(row["acquire_p99_us"]), drop=1),
    Column(("acquire", "p99.9"), lambda row: latency(row["acquire_p999_us"]), drop=7),
    Column(("attempts", "/grant"), lambda row: format_ratio(row["attempts_per_grant"]), drop=4),
    Column(("commands", "/grant"), lambda row: format_ratio(row["commands_per_grant"]), drop=6),
    Column(("Jain's", "index"), lambda row: format_ratio(row["jain"]), drop=8),
    Column(("hand-off", "p50"), lambda row: format_us(row["handoff_p50_us"]), drop=5),
    Column(("client", "CPU/grant"), lambda row: format_us(row["client_cpu_us_per_grant"]), drop=9),
    Column(("server", "CPU/grant"), lambda row: format_us(row["server_cpu_us_per_grant"]), drop=10),
    Column(("", "verdict"), lambda row: str(row["verdict"]), left=True),
)


@dataclass(frozen=True, slots=True)
class Note:
    """Why rows have a verdict other than SAFE: which, and what was seen of them."""

    verdict: str
    text: str


def render(rows: Sequence[Row], notes: Sequence[Note], width: int) -> list[Text]:
    """The lines of the table, for `rows` in rank order, and below them those of `notes`."""
    from rich.text import Text

    columns, dropped = _fit(rows, width)
    lines = _table(rows, columns) if _whole_width(columns, rows) <= width else _entries(rows, width)
    for note in notes[:NOTES_SHOWN]:
        style = "red" if note.verdict == "UNSAFE" else "yellow"
        lines += [Text(line, style=style) for line in _wrapped(f"{note.verdict} {note.text}", width)]
    if len(notes) > NOTES_SHOWN:
        lines.append(Text(f"  and {len(notes) - NOTES_SHOWN} more: see the report"))
    for why, names in _aside(rows).items():
        told = f"- {', '.join(names)}: not ranked, for {why}"
        lines += [Text(line, style="dim") for line in _wrapped(told, width)]
    if dropped:
        more = f"not shown at this width: {', '.join(reversed(dropped))} (all of it: --json)"
        lines += [Text(line, style="dim") for line in _wrapped(more, width)]
    return lines


def _aside(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The strategies that are not compared with the others, by the reason."""
    aside, names = apart(rows), dict[str, list[str]]()
    for row in rows:
        if str(row["cell"]) in aside:
            told = names.setdefault(why_apart(aside[str(row["cell"])]), [])
            if lock_name(row) not in told:
                told.append(lock_name(row))
    return names


def _table(rows: Sequence[Row], columns: Sequence[Column]) -> list[Text]:
    from rich.text import Text

    widths = [_width(column, rows) for column in columns]
    headings = [
        Text(_line([column.heading[i] for column in columns], columns, widths), style="bold")
        for i in (0, 1)
        if any(column.heading[i] for column in columns)
    ]
    rule = Text("-" * _whole_width(columns, rows), style="dim")
    lines = [(_line([column.text(row) for column in columns], columns, widths), row) for row in rows]
    return [*headings, rule, *(Text(line, style=STYLES.get(str(row["verdict"]), "")) for line, row in lines)]


def _entries(rows: Sequence[Row], width: int) -> list[Text]:
    """Two lines a row: where there is no room for a table."""
    from rich.text import Text

    lines = []
    axes = varying(rows)
    rank, *names = _identity(rows)[: -len(axes) or None]
    for row in rows:
        parts = [*(name.text(row) for name in names), say_conditions((axis, row[axis]) for axis in axes)]
        which = f"{rank.text(row)} {', '.join(filter(None, parts))}"
        figures = f"    {format_whole(row['safe_grants_per_s'])} safe grants/s, {row['verdict']}"
        style = STYLES.get(str(row["verdict"]), "")
        lines += [Text(line, style=style) for line in textwrap.wrap(which, width, subsequent_indent="    ")]
        lines.append(Text(figures, style=style))
    return lines


STYLES = {"SAFE": "", "UNSAFE": "strike red", "UNDECIDED": "yellow", "VOID": "yellow"}


def varying(rows: Sequence[Row]) -> list[str]:
    """The axes by which these rows differ, in the order of `summary.csv`."""
    names = list(rows[0]) if rows else []
    further = names[names.index("retry") + 1 : names.index("trials")] if rows else []
    return [name for name in (*AXES_OF_EVERY_MATRIX, *further) if len({str(row[name]) for row in rows}) > 1]


def _fit(rows: Sequence[Row], width: int) -> tuple[list[Column], list[str]]:
    """The columns that fit, and the names of those that were dropped."""
    columns = [*_identity(rows), *(_named(column, rows) for column in MEASURES)]
    dropped = []
    while _whole_width(columns, rows) > width:
        worst = max(columns, key=lambda column: column.drop)
        if worst.drop == KEEP:
            break
        columns.remove(worst)
        dropped.append(worst.name)
    return columns, dropped


def _identity(rows: Sequence[Row]) -> list[Column]:
    """The columns that tell the rows apart: rank, strategy, backend where there are several, axes that vary."""
    ranks = {str(row["cell"]): str(i) for i, row in enumerate(_ranked(rows), start=1)}
    columns = [
        Column(("", "#"), lambda row: ranks.get(str(row["cell"]), "x" if row["verdict"] == "UNSAFE" else "-")),
        Column(("", "strategy"), lock_name, left=True),
    ]
    if len({row["backend"] for row in rows}) > 1:
        columns.append(Column(("", "backend"), lambda row: str(row["backend"]), left=True))
    return columns + [Column(("", axis_title(name)), lambda row, name=name: _axis(row, name)) for name in varying(rows)]  # type: ignore[misc]


def _named(column: Column, rows: Sequence[Row]) -> Column:
    """The interval's column says how sure it is, which depends on the trials."""
    sure = confidence(min((int(row["trials"]) for row in rows), default=0))
    return replace(column, heading=(f"{100 * sure:.0f} %", "interval")) if column is INTERVAL and sure else column


def _whole_width(columns: Sequence[Column], rows: Sequence[Row]) -> int:
    return sum(_width(column, rows) + GAP for column in columns) - GAP


def _interval(row: Row) -> str:
    if not row["safe_grants_per_s"] or missing(row["safe_grants_per_s"]):
        return ""
    return spread(row["grants_per_s"], row["grants_per_s_low"], row["grants_per_s_high"])


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def _ranked(rows: Sequence[Row]) -> list[Row]:
    aside = apart(rows)
    safe = [row for row in rows if row["verdict"] == "SAFE" and not missing(row["safe_grants_per_s"])]
    return [row for row in safe if str(row["cell"]) not in aside]


def _axis(row: Row, name: str) -> str:
    value = row[name]
    return f"{value:,}" if isinstance(value, int) else str(value)


def _width(column: Column, rows: Sequence[Row]) -> int:
    return max(*(len(part) for part in column.heading), *(len(column.text(row)) for row in rows), 0)


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if column.left else cell.rjust(width)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    return (" " * GAP).join(padded).rstrip()
