"""The ranking, load by load: every cell with its verdict and main figures; its other figures are folded up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate

from pybench.analysis.assumptions import BY_PROBE, HEALTHY, NOT_CONTENDED, badges, servers_of
from pybench.analysis.comparison import Figure as Placed
from pybench.analysis.comparison import Out, Standing
from pybench.analysis.comparison.pairs import ENOUGH_BLOCKS
from pybench.analysis.quantile_text import POOLED_MEANS, is_pooled, least_wait, quantile_text
from pybench.analysis.send_delay import late_cells
from pybench.columns import COLUMNS
from pybench.matrix.search_modes import recorded_mode
from pybench.numbers import format_exact, missing
from pybench.report import run_facts
from pybench.report.charts.grid import PLAIN_ROWS
from pybench.report.html import fill
from pybench.report.rules import best_cells
from pybench.report.section import Section
from pybench.report.verdict_reasons import reasons
from pybench.report.view import CellView, View

# Rows that the page shows at first; a button shows the others.
SHOWN_ROWS = 24

PHASES = (
    ("service, p50", "service_p50_us"),
    ("service, p99", "service_p99_us"),
    ("queue, p99", "queue_p99_us"),
    ("hold, p50", "hold_p50_us"),
    ("release, p50", "release_p50_us"),
    ("release, p99", "release_p99_us"),
    ("send delay, p99", "send_delay_p99_us"),
)
QUANTILES = (
    ("p50", "acquire_p50_us"),
    ("p99", "acquire_p99_us"),
    ("p99.9", "acquire_p999_us"),
    ("handoff p50", "handoff_p50_us"),
)
FIGURES = (
    ("longest wait", "longest_wait_us"),
    ("Jain's index", "jain"),
    ("attempts per grant", "attempts_per_grant"),
    ("commands per grant", "commands_per_grant"),
)
PAST_LEASE = ("holds past lease", "outlived_share")
"""Shown only where a hold went past its lease."""
BOUND = ("true rate below", "bound_per_million")
"""Shown only where a verdict has a bound."""
LIMIT = ("limit, arrivals/s", "limit_per_s")
"""Shown only where the run has searched for a limit."""
OUTCOMES = (
    ("grants", "grants"),
    ("contended", "contended_grants"),
    ("refused", "refused"),
    ("timeouts", "timeouts"),
    ("errors", "errors"),
    ("lost", "lost"),
    ("unknown", "unknown"),
    ("unfinished", "unfinished"),
    ("conflicts", "conflicts"),
    ("sessions lost", "sessions_lost"),
    ("stale writes refused", "stale_writes"),
    ("broken connections", "reconnects"),
    ("lost calls", "lost_calls"),
)

NOT_RANKED = "not ranked, because {}"

# Commands of connecting, measuring and cleaning up. All other commands count as those of the lock.
NOT_OF_A_LOCK = frozenset(
    {"auth", "hello", "info", "ping", "scan", "script|load", "select", "slowlog", "slowlog|get", "unlink"}
)
SHOWN_COMMANDS = 6


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial of a cell, in words."""

    number: int
    rate: str
    p50: str
    p99: str
    verdict: str
    status: str


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command of a cell: how often the server carried it out, and its share of the commands per grant."""

    name: str
    calls: str
    per_grant: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure of the table, with the title of its column and the number to sort by."""

    title: str
    text: str
    sort: float | None
    is_bold: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell of the ranking. `place` is its rank at its load, empty where it has none."""

    cell: CellView
    name: str
    """Its lock; in a run that compares the retry policies of one lock, its policy."""
    place: str
    bold: str | None
    """The column whose figure is bold: the best of its load, or statistically tied with the best."""
    is_late: bool
    """Whether the load generator was late, so that the latencies are invalid."""
    notes: list[str]
    """Notes below its badge, a few words each."""
    reason: str
    """Why it has its verdict."""
    figures: list[Shown]
    phases: list[tuple[str, str]]
    outcomes: list[tuple[str, str]]
    trials: list[TrialRow]
    commands: list[CommandRow]

    @property
    def rate(self) -> str:
        """Its safe grants/s."""
        return written(self.cell, "safe_grants_per_s")

    @property
    def granted(self) -> str:
        """Its grants/s, safe or not."""
        return written(self.cell, "grants_per_s")

    @property
    def interval(self) -> str:
        """The interval of its safe grants/s; empty where it has none."""
        if self.cell.verdict != "SAFE" or self.cell.number("grants_per_s_low") is None:
            return ""
        return f"{written(self.cell, 'grants_per_s_low')} to {written(self.cell, 'grants_per_s_high')}"


@dataclass(frozen=True, slots=True)
class LoadEntries:
    """The cells of one load, in the order of their ranks. `text` is empty where the run has one load."""

    text: str
    entries: list[Entry]


def render(view: View) -> Section | None:
    """All cells, load by load in the order of their ranks; None when there is no cell."""
    if not view.cells:
        return None
    loads = by_load(view)
    html = fill(
        "ranking.html",
        loads=loads,
        first=_in_table(loads),
        cells=len(view.cells),
        shown=SHOWN_ROWS,
        columns=[title for title, _ in columns_of(view)],
        has_bound=BOUND in columns_of(view),
        has_bold=any(entry.bold for load in loads for entry in load.entries),
        few_trials=0 < view.comparison.trials < ENOUGH_BLOCKS,
        enough=ENOUGH_BLOCKS,
        sureness=view.sureness,
        baseline=run_facts.baseline_sentences(view.run.manifest),
        pooled=POOLED_MEANS if any(is_pooled(c.row, column) for c in view.cells for _, column in QUANTILES) else "",
    )
    violating = set(view.run.violations["cell"]) if not view.run.violations.empty else set()
    folded = {
        f"{entry.cell.anchor}-more": fill("ranking_details.html", entry=entry, cell=entry.cell, violating=violating)
        for load in loads
        for entry in load.entries
    }
    return Section("ranking", "Ranking, load by load", html, nav="Ranking", folded=folded)


def _in_table(loads: Sequence[LoadEntries]) -> int:
    """How many loads are in the table from the beginning: all, or in a large run enough to fill it."""
    ends = list(accumulate(len(load.entries) for load in loads))
    if ends[-1] <= PLAIN_ROWS:
        return len(loads)
    return next(place for place, end in enumerate(ends, start=1) if end >= SHOWN_ROWS)


def columns_of(view: View) -> tuple[tuple[str, str], ...]:
    """The columns of the table after the safe grants/s: each with its title."""
    outlived = any(cell.number(PAST_LEASE[1]) for cell in view.cells)
    bounded = any(cell.number(BOUND[1]) is not None for cell in view.cells)
    searched = any(recorded_mode(cell.row.get("mode")).is_search for cell in view.cells)
    return (*[LIMIT] * searched, *[BOUND] * bounded, *QUANTILES, *FIGURES, *[PAST_LEASE] * outlived)


def written(cell: CellView, column: str) -> str:
    """The figure of `cell` in `column`, in the format of the column."""
    return COLUMNS[column].format.text(cell.number(column))


def by_load(view: View) -> list[LoadEntries]:
    """The loads of the run in their order, each with its cells in the order of their ranks."""
    why, trials, calls = reasons(view), _trials(view), _calls(view)
    late = late_cells(view.run.trials)
    by_id = {cell.id: cell for cell in view.cells}
    columns = columns_of(view)

    def entry(standing: Standing, cell: CellView, best: AbstractSet[str]) -> Entry:
        not_ranked = _not_ranked(standing)
        bold = _bold_column(standing) if cell.id in best else None
        return Entry(
            cell=cell,
            name=standing.lock,
            place=standing.mark,
            bold=bold,
            is_late=cell.id in late,
            notes=[*_evidence(cell), *["not ranked"] * bool(not_ranked)],
            reason="; ".join(filter(None, [why[cell.id], not_ranked])),
            figures=[_figure(cell, title, column, is_bold=column == bold) for title, column in columns],
            phases=[(name, written(cell, column)) for name, column in PHASES],
            outcomes=[(name, format_exact(cell.number(column))) for name, column in OUTCOMES],
            trials=trials[cell.id],
            commands=_commands(cell, calls.get(cell.id, Counter())),
        )

    return [
        LoadEntries(
            load.text, [entry(one, by_id[one.cell], best_cells(load)) for one in load.standings if one.cell in by_id]
        )
        for load in view.comparison.loads
    ]


def _bold_column(standing: Standing) -> str | None:
    """The column of the table that placed the lock; throughput is shown as safe grants/s."""
    if standing.figure is None or standing.figure is Placed.THROUGHPUT:
        return "safe_grants_per_s"
    return standing.figure.value


def _evidence(cell: CellView) -> list[str]:
    """On what SAFE rests, where it does not rest on contended grants of the cell itself, on healthy servers."""
    faults = {servers_of(cell.row)} - {HEALTHY}
    return [badge for badge in badges(cell.row) if badge in {NOT_CONTENDED, BY_PROBE} | faults]


def _not_ranked(standing: Standing) -> str:
    match standing.out:
        case Out.SHARED:
            return NOT_RANKED.format(f"it lets {standing.holders or 0:.0f} hold a key at a time")
        case Out.EXCLUDES_NOBODY | Out.LATE:
            return NOT_RANKED.format(standing.out.value)
        case _:
            return ""


def _figure(cell: CellView, title: str, column: str, *, is_bold: bool) -> Shown:
    if (title, column) in QUANTILES:
        return Shown(title, quantile_text(cell.row, column), least_wait(cell.row, column), is_bold)
    return Shown(title, written(cell, column), cell.number(column), is_bold)


def _calls(view: View) -> dict[str, Counter[str]]:
    """How often the server carried out each command of the lock, over the complete trials, by the id of the cell."""
    trials = view.run.trials
    calls: dict[str, Counter[str]] = {}
    if "commandstats" not in trials:
        return calls
    complete = trials[trials["status"] == "complete"]
    for cell, text in zip(complete["cell"], complete["commandstats"], strict=True):
        counted = {} if missing(text) else json.loads(text)
        calls.setdefault(str(cell), Counter()).update({k: n for k, n in counted.items() if k not in NOT_OF_A_LOCK})
    return calls


def _commands(cell: CellView, calls: Counter[str]) -> list[CommandRow]:
    """The most frequent commands first. The server counts the warm-up too, so commands per grant are split by share."""
    per_grant, total = cell.number("commands_per_grant"), calls.total()
    per_grant_text = COLUMNS["commands_per_grant"].format.text
    return [
        CommandRow(name, format_exact(count), per_grant_text(per_grant * count / total if per_grant else None))
        for name, count in calls.most_common(SHOWN_COMMANDS)
        if count
    ]


def _trials(view: View) -> dict[str, list[TrialRow]]:
    """The trials of each cell, by its id."""
    trials: dict[str, list[TrialRow]] = {}
    for row in view.run.trials.sort_values("trial").to_dict("records"):
        trials.setdefault(str(row["cell"]), []).append(
            TrialRow(
                number=int(row["trial"]),
                rate=COLUMNS["grants_per_s"].format.text(row["grants_per_s"]),
                p50=quantile_text(row, "acquire_p50_us"),
                p99=quantile_text(row, "acquire_p99_us"),
                verdict=str(row["verdict"]),
                status=str(row["status"]),
            )
        )
    return trials
