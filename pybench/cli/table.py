"""The table of a run, load by load: in each the locks in their order, and what is not ranked at its end.

Ranks count within a load. Who is first, tied or out is what the comparison says; nothing is compared here.

It fits the width it is given: what does not tell rows apart is dropped, least important first, and named below the
table; where even the rest does not fit, each row becomes an entry of two lines. Numbers are never wrapped or cut. The
same layout serves a terminal (styled) and a pipe (plain).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pybench.analysis.assumptions import BY_PROBE, HEALTHY, NOT_CONTENDED, badges, entry_of, would_not_survive
from pybench.analysis.comparison import Out, Place
from pybench.analysis.comparison.entrants import lock_name
from pybench.analysis.comparison.pairs import ENOUGH_BLOCKS
from pybench.analysis.quantile_text import POOLED_MEANS, is_pooled, quantile_text
from pybench.analysis.stats import confidence
from pybench.cli.figures import latency, spread
from pybench.numbers import format_percent, format_ratio, format_us, format_whole, missing

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from rich.text import Text

    from pybench.analysis.comparison import Comparison, LoadComparison, Standing

Row = Mapping[Any, Any]
"""A row of `summary.csv`, n/a as None or NaN."""

EVIDENCE = (NOT_CONTENDED, BY_PROBE)
GAP = 2
NOTES_SHOWN = 8
KEEP = 0
"""The `drop` of a column that is never dropped."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell at its load: its row, where it stands there, and whether the load generator was late in it."""

    row: Row
    standing: Standing
    is_late: bool

    @property
    def verdict(self) -> str:
        """The verdict of its row."""
        return str(self.row["verdict"])


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `heading` has two lines; of several columns too many, the one with the highest `drop` goes first."""

    heading: tuple[str, str]
    text: Callable[[Entry], str]
    drop: int = KEEP
    left: bool = False
    quantile: str = ""
    """The column of the summary, where it is a quantile: it may be pooled."""

    @property
    def name(self) -> str:
        """Both lines of the heading on one."""
        return " ".join(part for part in self.heading if part).replace(" /", "/")


def _figure(heading: tuple[str, str], column: str, text: Callable[[float | None], str], drop: int) -> Column:
    return Column(heading, lambda entry: text(entry.row.get(column)), drop)


def _quantile(heading: tuple[str, str], column: str, drop: int) -> Column:
    def text(entry: Entry) -> str:
        # A lock that asks nobody takes no time at all: that is no latency.
        return latency(0.0) if entry.row.get(column) == 0 else quantile_text(entry.row, column)

    return Column(heading, text, drop, quantile=column)


PAST_LEASE = "outlived_share"
"""Shown only where a hold went past its lease."""
INTERVAL = Column(("", "interval"), lambda entry: _interval(entry.row), drop=5)
MEASURES = (
    _figure(("safe", "grants/s"), "safe_grants_per_s", format_whole, KEEP),
    INTERVAL,
    _quantile(("acquire", "p50"), "acquire_p50_us", drop=4),
    _quantile(("acquire", "p99"), "acquire_p99_us", drop=1),
    _quantile(("acquire", "p99.9"), "acquire_p999_us", drop=9),
    _figure(("longest", "wait"), "longest_wait_us", format_us, drop=2),
    _figure(("Jain's", "index"), "jain", format_ratio, drop=3),
    _figure(("holds", "past lease"), PAST_LEASE, format_percent, drop=2),
    _figure(("attempts", "/grant"), "attempts_per_grant", format_ratio, drop=6),
    _figure(("commands", "/grant"), "commands_per_grant", format_ratio, drop=8),
    _quantile(("hand-off", "p50"), "handoff_p50_us", drop=7),
    _figure(("client", "CPU/grant"), "client_cpu_us_per_grant", format_us, drop=10),
    _figure(("server", "CPU/grant"), "server_cpu_us_per_grant", format_us, drop=11),
    Column(("", "verdict"), lambda entry: _verdict(entry), left=True),
)


@dataclass(frozen=True, slots=True)
class Note:
    """Why rows have a verdict other than SAFE: which, and what was seen of them."""

    verdict: str
    text: str


def render(
    rows: Sequence[Row],
    comparison: Comparison,
    notes: Sequence[Note],
    width: int,
    *,
    widest: int | None = None,
    late: AbstractSet[str] = frozenset(),
) -> list[Text]:
    """The lines of the table of `rows`, and below them those of `notes`. `late` are cells that the generator spoilt.

    Texts take `width` letters, and so does the table, unless `widest` says how many it may take.
    """
    from rich.text import Text

    loads = _loads(rows, comparison, late)
    entries = [entry for _, found in loads for entry in found]
    columns, dropped = _fit(entries, widest or width)
    fits = _whole_width(columns, entries) <= (widest or width)
    lines = _table(loads, columns) if fits else _pairs_of_lines(loads, width)
    for note in notes[:NOTES_SHOWN]:
        style = "red" if note.verdict == "UNSAFE" else "yellow"
        lines += [Text(line, style=style) for line in _wrapped(f"{note.verdict} {note.text}", width)]
    if len(notes) > NOTES_SHOWN:
        lines.append(Text(f"  and {len(notes) - NOTES_SHOWN} more: see the report"))
    told = [*_not_ranked(entries), *_stands_on(entries), *_legend(entries, columns if fits else [])]
    if fits and dropped:
        told.append(f"not shown at this width: {', '.join(reversed(dropped))} (all of it: --json)")
    for text in told:
        lines += [Text(line, style="dim") for line in _wrapped(text, width)]
    return lines


def _loads(
    rows: Sequence[Row], comparison: Comparison, late: AbstractSet[str]
) -> list[tuple[LoadComparison, list[Entry]]]:
    """The loads in their order, each with the cells that were measured at it."""
    by_cell = {str(row["cell"]): row for row in rows}
    return [
        (
            load,
            [
                Entry(by_cell[one.cell], one, one.cell in late)
                for one in load.standings
                if one.cell is not None and one.cell in by_cell
            ],
        )
        for load in comparison.loads
    ]


def _not_ranked(entries: Sequence[Entry]) -> list[str]:
    """Why safe locks have no rank, a line for each reason."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        if entry.standing.out in (Out.SHARED, Out.EXCLUDES_NOBODY):
            told = names.setdefault(entry.standing.out.value, [])
            if entry.standing.lock not in told:
                told.append(entry.standing.lock)
    return [f"- {', '.join(locks)}: not ranked, because {why}" for why, locks in names.items()]


def _stands_on(entries: Sequence[Entry]) -> list[str]:
    """What the word SAFE does not cover, a line for each lock that has it."""
    rows = {entry.standing.lock: entry.row for entry in entries if entry.verdict == "SAFE"}
    told: dict[str, None] = {}
    for lock, row in rows.items():
        known = entry_of(row)
        limit = would_not_survive(*known) if known else ""
        condition = [badge for badge in badges(row) if badge not in (HEALTHY, *EVIDENCE)]
        if limit or condition:
            # Retry policies are compared, and change nothing of that.
            which = lock if len(rows) == len({lock_name(row) for row in rows.values()}) else lock_name(row)
            told[f"{which}: SAFE on healthy servers{''.join(f', {one}' for one in condition)}; {limit}"] = None
    if len(told) > NOTES_SHOWN:
        return ["SAFE on healthy servers: `pybench strategies` says what each lock would not survive"]
    return list(told)


def _legend(entries: Sequence[Entry], columns: Sequence[Column]) -> list[str]:
    """What the marks of the table mean, of those that it has."""
    shown = [column.quantile for column in columns if column.quantile]
    told = []
    tied = [entry.standing for entry in entries if columns and entry.standing.place is Place.TIED]
    if any(one.ratio is not None for one in tied):
        told.append("=1 tied for the first place: the trials show no difference that is more than chance")
    if any(one.ratio is None for one in tied):
        told.append(f"=1 not compared: a comparison needs {ENOUGH_BLOCKS} trials per cell")
    if any(is_pooled(entry.row, column) for entry in entries for column in shown):
        told.append(POOLED_MEANS)
    return told


def _table(loads: Sequence[tuple[LoadComparison, list[Entry]]], columns: Sequence[Column]) -> list[Text]:
    from rich.text import Text

    entries = [entry for _, found in loads for entry in found]
    widths = [_width(column, entries) for column in columns]
    headings = [
        Text(_line([column.heading[i] for column in columns], columns, widths), style="bold")
        for i in (0, 1)
        if any(column.heading[i] for column in columns)
    ]
    lines = [*headings, Text("-" * _whole_width(columns, entries), style="dim")]
    for load, found in loads:
        if load.text and found:
            lines.append(Text(f"{load.text}:", style="bold"))
        lines += [
            Text(_line([column.text(entry) for column in columns], columns, widths), style=_style(entry))
            for entry in found
        ]
    return lines


def _pairs_of_lines(loads: Sequence[tuple[LoadComparison, list[Entry]]], width: int) -> list[Text]:
    """Two lines a cell: where there is no room for a table."""
    from rich.text import Text

    lines = []
    for load, found in loads:
        if load.text and found:
            lines += [Text(line, style="bold") for line in textwrap.wrap(f"{load.text}:", width)]
        for entry in found:
            which = f"{_rank(entry)} {entry.standing.lock}"
            figures = f"    {format_whole(entry.row['safe_grants_per_s'])} safe grants/s, {entry.verdict}"
            lines += [Text(line, style=_style(entry)) for line in textwrap.wrap(which, width, subsequent_indent="    ")]
            lines.append(Text(figures, style=_style(entry)))
    return lines


def _style(entry: Entry) -> str:
    """Bold for the first of a load and what ties with it; struck out what is unsafe."""
    return STYLES.get(entry.verdict, "") or ("bold" if entry.standing.rank == 1 else "")


STYLES = {"SAFE": "", "UNSAFE": "strike red", "UNDECIDED": "yellow", "VOID": "yellow"}


def _fit(entries: Sequence[Entry], width: int) -> tuple[list[Column], list[str]]:
    """The columns that fit, and the names of those that were dropped."""
    past = any(not missing(share := entry.row.get(PAST_LEASE)) and share != 0 for entry in entries)
    measures = [column for column in MEASURES if past or column.name != "holds past lease"]
    columns = [*_identity(entries), *(_named(column, entries) for column in measures)]
    dropped = []
    while _whole_width(columns, entries) > width:
        worst = max(columns, key=lambda column: column.drop)
        if worst.drop == KEEP:
            break
        columns.remove(worst)
        dropped.append(worst.name)
    return columns, dropped


def _identity(entries: Sequence[Entry]) -> list[Column]:
    """The columns that tell the locks of a load apart: rank, lock, and its backend where there are several."""
    columns = [Column(("", "#"), _rank), Column(("", "lock"), lambda entry: entry.standing.lock, left=True)]
    if len({entry.row["backend"] for entry in entries}) > 1:
        columns.append(Column(("", "backend"), lambda entry: str(entry.row["backend"]), left=True))
    return columns


def _verdict(entry: Entry) -> str:
    """`SAFE, not contended`; `SAFE, late` where the load generator was."""
    evidence = [badge for badge in badges(entry.row) if badge in EVIDENCE]
    return ", ".join([entry.verdict, *evidence, *(["late"] if entry.is_late else [])])


def _rank(entry: Entry) -> str:
    """The mark of its rank; `x` of what is unsafe, `-` of what is not ranked."""
    return entry.standing.mark or ("x" if entry.standing.out is Out.UNSAFE else "-")


def _named(column: Column, entries: Sequence[Entry]) -> Column:
    """The interval's column says how sure it is, which depends on the trials."""
    sure = confidence(min((int(entry.row["trials"]) for entry in entries), default=0))
    return replace(column, heading=(f"{100 * sure:.0f} %", "interval")) if column is INTERVAL and sure else column


def _whole_width(columns: Sequence[Column], entries: Sequence[Entry]) -> int:
    return sum(_width(column, entries) + GAP for column in columns) - GAP


def _interval(row: Row) -> str:
    if not row["safe_grants_per_s"] or missing(row["safe_grants_per_s"]):
        return ""
    return spread(row["grants_per_s"], row["grants_per_s_low"], row["grants_per_s_high"])


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def _width(column: Column, entries: Sequence[Entry]) -> int:
    return max(*(len(part) for part in column.heading), *(len(column.text(entry)) for entry in entries), 0)


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if column.left else cell.rjust(width)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    return (" " * GAP).join(padded).rstrip()
