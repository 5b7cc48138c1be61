"""The table of a run, load by load: the locks of a load in the order of their ranks, those without a rank last.

Ranks count within a load. The comparison decides who is first, tied or not ranked; nothing is compared here.

The table fits the given width. Columns that do not fit are dropped, the least important first, and named below the
table. Where even the remaining columns do not fit, each row becomes an entry of two lines. Numbers are never wrapped or
cut. The same layout serves a terminal (styled) and a pipe (plain).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pybench.analysis.assumptions import (
    BY_PROBE,
    HEALTHY,
    NOT_CONTENDED,
    badges,
    entry_of,
    servers_of,
    would_not_survive,
)
from pybench.analysis.comparison import Out
from pybench.analysis.comparison.entrants import lock_name
from pybench.analysis.comparison.pairs import ENOUGH_BLOCKS
from pybench.analysis.fault_promises import unpromised
from pybench.analysis.limits import interval_text
from pybench.analysis.quantile_text import POOLED_MEANS, is_pooled, quantile_text
from pybench.analysis.stats import confidence
from pybench.cli.figures import latency, spread
from pybench.columns import COLUMNS
from pybench.matrix.faults import recorded_faults
from pybench.matrix.search_modes import recorded_mode
from pybench.numbers import missing
from pybench.report.rules import best_cells, promises_nothing

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from rich.text import Text

    from pybench.analysis.comparison import Comparison, LoadComparison, Standing

Row = Mapping[Any, Any]
"""A row of `summary.csv`, with n/a as None or NaN."""

EVIDENCE = {NOT_CONTENDED: ", not contended", BY_PROBE: " by probe"}
"""What stands behind SAFE where it does not rest on contended grants of the cell itself."""
GAP = 2
NOTES_SHOWN = 8
PLANS_NAMED = 4
KEEP = 0
"""The `drop` of a column that is never dropped."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell at its load: its row, where it stands there, and whether the load generator was late in it."""

    row: Row
    standing: Standing
    is_late: bool
    is_best: bool
    """Whether it is bold: the best of its load, or statistically tied with the best."""

    @property
    def verdict(self) -> str:
        """The verdict of its row."""
        return str(self.row["verdict"])


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `heading` has two lines. Of columns that do not fit, the one with the highest `drop` goes first."""

    heading: tuple[str, str]
    text: Callable[[Entry], str]
    drop: int = KEEP
    left: bool = False
    quantile: str = ""
    """The column of the summary, where it is a quantile, which may be pooled."""

    @property
    def name(self) -> str:
        """Both lines of the heading on one."""
        return " ".join(part for part in self.heading if part).replace(" /", "/")


def _written(row: Row, column: str) -> str:
    """The figure of `row` in `column`, in the format of the column."""
    return COLUMNS[column].format.text(row.get(column))


def _figure(heading: tuple[str, str], column: str, drop: int) -> Column:
    return Column(heading, lambda entry: _written(entry.row, column), drop)


def _quantile(heading: tuple[str, str], column: str, drop: int) -> Column:
    def text(entry: Entry) -> str:
        # A lock that sends nothing takes no time, which is no latency.
        return latency(0.0) if entry.row.get(column) == 0 else quantile_text(entry.row, column)

    return Column(heading, text, drop, quantile=column)


PAST_LEASE = "outlived_share"
"""Shown only where a hold went past its lease."""
BOUND = "bound_per_million"
"""Shown only where a verdict has a bound."""
LIMIT = "limit_per_s"
"""Shown, with its interval, only where the run has searched for a limit."""
INTERVAL = Column(("", "interval"), lambda entry: _interval(entry.row), drop=5)
MEASURES = (
    Column(("", "verdict"), lambda entry: _verdict(entry), left=True),
    _figure(("safe", "grants/s"), "safe_grants_per_s", KEEP),
    INTERVAL,
    _figure(("limit", "arrivals/s"), LIMIT, KEEP),
    Column(("limit", "interval"), lambda entry: interval_text(entry.row), drop=5),
    _figure(("true rate", "below"), BOUND, drop=6),
    _quantile(("acquire", "p50"), "acquire_p50_us", drop=4),
    _quantile(("acquire", "p99"), "acquire_p99_us", drop=1),
    _quantile(("acquire", "p99.9"), "acquire_p999_us", drop=9),
    _figure(("longest", "wait"), "longest_wait_us", drop=2),
    _figure(("Jain's", "index"), "jain", drop=3),
    _figure(("holds", "past lease"), PAST_LEASE, drop=2),
    _figure(("attempts", "/grant"), "attempts_per_grant", drop=6),
    _figure(("commands", "/grant"), "commands_per_grant", drop=8),
    _quantile(("handoff", "p50"), "handoff_p50_us", drop=7),
    _figure(("client", "CPU/grant"), "client_cpu_us_per_grant", drop=10),
    _figure(("server", "CPU/grant"), "server_cpu_us_per_grant", drop=11),
)


OF_SEARCHES = ("limit arrivals/s", "limit interval")


@dataclass(frozen=True, slots=True)
class Note:
    """Why rows have a verdict other than SAFE: which rows, and what the checker saw."""

    verdict: str
    text: str
    is_evidence: bool = False
    """Whether it shows that the checker works, and no fault of a lock."""

    @property
    def line(self) -> str:
        """The note behind its verdict."""
        return f"{'expected:' if self.is_evidence else self.verdict} {self.text}"

    @property
    def style(self) -> str:
        """Red is for locks that broke the exclusion they promise."""
        return "dim" if self.is_evidence else "red" if self.verdict == "UNSAFE" else "yellow"


def render(
    rows: Sequence[Row],
    comparison: Comparison,
    notes: Sequence[Note],
    width: int,
    *,
    widest: int | None = None,
    late: AbstractSet[str] = frozenset(),
) -> list[Text]:
    """The lines of the table of `rows`, then those of `notes`. In the cells of `late` the load generator was late.

    Texts take at most `width` letters, and the table at most `widest`, which is `width` unless it is given.
    """
    from rich.text import Text

    loads = _loads(rows, comparison, late)
    entries = [entry for _, found in loads for entry in found]
    columns, dropped = _fit(entries, widest or width)
    fits = _whole_width(columns, entries) <= (widest or width)
    lines = _table(loads, columns) if fits else _pairs_of_lines(loads, width)
    for note in notes[:NOTES_SHOWN]:
        lines += [Text(line, style=note.style) for line in _wrapped(note.line, width)]
    if len(notes) > NOTES_SHOWN:
        lines.append(Text(f"  and {len(notes) - NOTES_SHOWN} more: see the report"))
    texts = [*_not_ranked(entries), *_stands_on(entries), *_legend(entries, columns if fits else [])]
    if fits and dropped:
        texts.append(f"not shown at this width: {', '.join(reversed(dropped))} (--json has all columns)")
    for text in texts:
        lines += [Text(line, style="dim") for line in _wrapped(text, width)]
    return lines


def _loads(
    rows: Sequence[Row], comparison: Comparison, late: AbstractSet[str]
) -> list[tuple[LoadComparison, list[Entry]]]:
    """The loads in their order, each with the cells that were measured at it."""
    by_cell = {str(row["cell"]): row for row in rows}

    def entries_of(load: LoadComparison) -> list[Entry]:
        best = best_cells(load)
        return [
            Entry(by_cell[one.cell], one, one.cell in late, one.cell in best)
            for one in load.standings
            if one.cell is not None and one.cell in by_cell
        ]

    return [(load, entries_of(load)) for load in comparison.loads]


def _not_ranked(entries: Sequence[Entry]) -> list[str]:
    """Why safe locks have no rank, a line for each reason."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        if entry.standing.out in (Out.SHARED, Out.EXCLUDES_NOBODY):
            locks = names.setdefault(entry.standing.out.value, [])
            if entry.standing.lock not in locks:
                locks.append(entry.standing.lock)
    return [f"- {', '.join(locks)}: not ranked, because {why}" for why, locks in names.items()]


def _stands_on(entries: Sequence[Entry]) -> list[str]:
    """What SAFE does not cover: a line for each safe lock, and one for each cell that was safe without a promise."""
    labels: dict[str, dict[str, None]] = {}
    covers: dict[tuple[str, str], dict[str, None]] = {}
    lucky: dict[tuple[str, str], None] = {}
    for entry in entries:
        if entry.verdict != "SAFE":
            continue
        name, servers = lock_name(entry.row), servers_of(entry.row)
        labels.setdefault(name, {})[entry.standing.lock] = None
        known = entry_of(entry.row)
        limit = would_not_survive(*known) if known else ""
        condition = [f", {badge}" for badge in badges(entry.row) if badge not in (servers, *EVIDENCE)]
        if limit or condition:
            where = f"on {servers}" if servers == HEALTHY else servers
            covers.setdefault((name, f"{''.join(condition)}; {limit}"), {})[where] = None
        if why := unpromised(entry.row):
            plan = recorded_faults(entry.row.get("faults")).text
            lucky[name, f"under {plan}: no violation was seen, but {why}"] = None
    # All retry policies of a lock have the same limits: one line names the lock.
    which = {name: next(iter(found)) if len(found) == 1 else name for name, found in labels.items()}
    lines = [f"{which[name]}: SAFE {_listed(list(where))}{limit}" for (name, limit), where in covers.items()]
    if len(lines) > NOTES_SHOWN:
        lines = ["SAFE covers no other event: `pybench strategies` lists what each lock would not survive"]
    told = [f"{which[name]} {why}" for name, why in lucky]
    if len(told) > NOTES_SHOWN:
        told[NOTES_SHOWN:] = [f"and {len(told) - NOTES_SHOWN} more: see the report"]
    return lines + told


def _listed(where: Sequence[str]) -> str:
    """`on healthy servers, under kill redis[0] and under 3 further plans of faults`."""
    if len(where) > PLANS_NAMED:
        where = [*where[: PLANS_NAMED - 1], f"under {len(where) - PLANS_NAMED + 1} further plans of faults"]
    return " and ".join(filter(None, (", ".join(where[:-1]), where[-1])))


def _legend(entries: Sequence[Entry], columns: Sequence[Column]) -> list[str]:
    """What the marks of the table mean, a line for each mark that the table has."""
    shown = [column.quantile for column in columns if column.quantile]
    lines = []
    tied = [entry.standing for entry in entries if columns and entry.standing.shares_rank]
    if any(one.ratio is not None for one in tied):
        lines.append("= statistically tied with the first lock of the same rank: the difference may be chance")
    if any(one.ratio is None for one in tied):
        lines.append(f"=1 shared by all: fewer than {ENOUGH_BLOCKS} trials per cell are too few to compare locks")
    if any(is_pooled(entry.row, column) for entry in entries for column in shown):
        lines.append(POOLED_MEANS)
    if any(column.name == "true rate below" for column in columns):
        lines.append("true rate below: with 95 % confidence, the share of contended grants that break exclusion")
    return lines


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
            figures = f"    {_verdict(entry)}, {_written(entry.row, 'safe_grants_per_s')} safe grants/s"
            lines += [Text(line, style=_style(entry)) for line in textwrap.wrap(which, width, subsequent_indent="    ")]
            lines.append(Text(figures, style=_style(entry)))
    return lines


def _style(entry: Entry) -> str:
    """Bold for the best of a load. Struck out and red where a lock broke the exclusion that it promises."""
    if promises_nothing(entry.row):
        return "dim"
    return STYLES.get(entry.verdict, "") or ("bold" if entry.is_best else "")


STYLES = {"SAFE": "", "UNSAFE": "strike red", "UNDECIDED": "yellow", "VOID": "yellow"}


def _fit(entries: Sequence[Entry], width: int) -> tuple[list[Column], list[str]]:
    """The columns that fit, and the names of those that were dropped."""
    past = any(not missing(share := entry.row.get(PAST_LEASE)) and share != 0 for entry in entries)
    bounded = any(not missing(entry.row.get(BOUND)) for entry in entries)
    searched = any(recorded_mode(entry.row.get("mode")).is_search for entry in entries)
    optional = (("holds past lease", past), ("true rate below", bounded), *((name, searched) for name in OF_SEARCHES))
    absent = {name for name, shown in optional if not shown}
    measures = [column for column in MEASURES if column.name not in absent]
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
    """The columns that identify the locks of a load: rank, lock, and the backend where the run has several."""
    columns = [Column(("", "#"), _rank), Column(("", "lock"), lambda entry: entry.standing.lock, left=True)]
    if len({entry.row["backend"] for entry in entries}) > 1:
        columns.append(Column(("", "backend"), lambda entry: str(entry.row["backend"]), left=True))
    return columns


def _verdict(entry: Entry) -> str:
    """The verdict with what it rests on: `SAFE by probe`, `SAFE, not contended`, `SAFE, generator late`.

    `SAFE, not steady` where the window opened before the figures were steady.
    """
    evidence = [EVIDENCE[badge] for badge in badges(entry.row) if badge in EVIDENCE]
    unsteady = ", not steady" if entry.row.get("steady") is False else ""
    plan = recorded_faults(entry.row.get("faults"))
    harmed = f" under {plan.names[0] if len(plan.names) == 1 else f'{len(plan.faults)} faults'}" if plan else ""
    return "".join([entry.verdict, harmed, *evidence, ", generator late" if entry.is_late else "", unsteady])


def _rank(entry: Entry) -> str:
    """The mark of its rank; `x` where it is unsafe, `-` where it is not ranked."""
    return entry.standing.mark or ("x" if entry.standing.out is Out.UNSAFE else "-")


def _named(column: Column, entries: Sequence[Entry]) -> Column:
    """The heading of the interval with its confidence, which depends on the number of trials."""
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
