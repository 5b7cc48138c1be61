"""The ranking, load by load: every cell with its figures and its verdict, and all that was measured of it folded up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pybench.analysis.comparison import Out, Standing
from pybench.analysis.lateness import late_cells
from pybench.analysis.quantile_text import POOLED_MEANS, is_pooled, least_wait, quantile_text
from pybench.matrix.conditions import say_conditions
from pybench.numbers import format_count, format_exact, format_percent, format_ratio, format_us, missing
from pybench.report import run_facts
from pybench.report.contests import contests
from pybench.report.html import fill
from pybench.report.section import Section
from pybench.report.verdict_reasons import reasons
from pybench.report.view import CellView, View

Text = Callable[[float | None], str]

# Rows that stand open; the page has a button for the rest.
SHOWN_ROWS = 24

PHASES = (
    ("service, p50", "service_p50_us"),
    ("service, p99", "service_p99_us"),
    ("queue, p99", "queue_p99_us"),
    ("hold, p50", "hold_p50_us"),
    ("release, p50", "release_p50_us"),
    ("release, p99", "release_p99_us"),
    ("lag of the generator, p99", "lag_p99_us"),
)
FIGURES = (
    ("longest wait", "longest_wait_us", format_us),
    ("Jain", "jain", format_ratio),
    ("attempts per grant", "attempts_per_grant", format_ratio),
    ("commands per grant", "commands_per_grant", format_ratio),
)
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

PAST_LEASE = ("holds past lease", "outlived_share", format_percent)
"""Shown only where a hold went past its lease."""

NOT_RANKED = "; not ranked, because {}"

QUANTILES = (
    ("p50", "acquire_p50_us"),
    ("p99", "acquire_p99_us"),
    ("p99.9", "acquire_p999_us"),
    ("hand-off p50", "handoff_p50_us"),
)

# What connecting, measuring and cleaning up send; all else is taken to be the lock's.
NOT_OF_A_LOCK = frozenset({"auth", "hello", "info", "ping", "scan", "script|load", "select", "unlink"})
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
    """A figure of the table, and what the table sorts it by."""

    text: str
    sort: float | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell of the ranking. `place` is its rank at its load, empty where it has none."""

    cell: CellView
    name: str
    """Its lock, with what else it is compared by."""
    place: str
    is_first: bool
    """Whether it is the best of its load, or statistically tied with it; nobody is where there is one lock."""
    is_late: bool
    """Whether the load generator could not keep its schedule, so that its latencies are not the lock's."""
    reason: str
    figures: list[Shown]
    phases: list[tuple[str, str]]
    outcomes: list[tuple[str, str]]
    trials: list[TrialRow]
    commands: list[CommandRow]


@dataclass(frozen=True, slots=True)
class LoadEntries:
    """The cells of one load, in the order of their ranks. `text` is empty where the run has one load."""

    text: str
    entries: list[Entry]


def render(view: View) -> Section | None:
    """All cells, load by load in the order of their ranks; None when there is no cell."""
    if not view.cells:
        return None
    html = fill(
        "ranking.html",
        loads=by_load(view),
        cells=len(view.cells),
        say_conditions=say_conditions,
        shown=SHOWN_ROWS,
        columns=[*(title for title, _ in QUANTILES), *(title for title, _, _ in figures_of(view))],
        sureness=view.sureness,
        baseline=run_facts.baseline_sentences(view.run.manifest),
        violating=set(view.run.violations["cell"]) if not view.run.violations.empty else set(),
        pooled=POOLED_MEANS if any(is_pooled(c.row, column) for c in view.cells for _, column in QUANTILES) else "",
    )
    return Section("ranking", "Ranking, load by load", html, nav="Ranking")


def figures_of(view: View) -> tuple[tuple[str, str, Text], ...]:
    """The figures of the table beside the quantiles."""
    outlived = any(cell.number(PAST_LEASE[1]) for cell in view.cells)
    return (*FIGURES, PAST_LEASE) if outlived else FIGURES


def by_load(view: View) -> list[LoadEntries]:
    """The loads of the run in their order, each with its cells in the order of their ranks."""
    why, trials, calls = reasons(view), _trials(view), _calls(view)
    late = late_cells(view.run.trials)
    best = {cell.id for contest in contests(view) for cell in contest.best}
    by_id = {cell.id: cell for cell in view.cells}
    shown = figures_of(view)

    def entry(standing: Standing, cell: CellView) -> Entry:
        return Entry(
            cell=cell,
            name=standing.lock,
            place=standing.mark,
            is_first=cell.id in best,
            is_late=cell.id in late,
            reason=why[cell.id] + _not_ranked(standing),
            figures=_figures(cell, shown),
            phases=[(name, format_us(cell.number(column))) for name, column in PHASES],
            outcomes=[(name, format_exact(cell.number(column))) for name, column in OUTCOMES],
            trials=trials[cell.id],
            commands=_commands(cell, calls.get(cell.id, Counter())),
        )

    return [
        LoadEntries(load.text, [entry(one, by_id[one.cell]) for one in load.standings if one.cell in by_id])
        for load in view.comparison.loads
    ]


def _not_ranked(standing: Standing) -> str:
    match standing.out:
        case Out.SHARED:
            return NOT_RANKED.format(f"it lets {standing.holders or 0:.0f} hold a key at a time")
        case Out.EXCLUDES_NOBODY | Out.LATE:
            return NOT_RANKED.format(standing.out.value)
        case _:
            return ""


def _figures(cell: CellView, shown: Sequence[tuple[str, str, Text]]) -> list[Shown]:
    quantiles = [Shown(quantile_text(cell.row, column), least_wait(cell.row, column)) for _, column in QUANTILES]
    return quantiles + [Shown(text(cell.number(column)), cell.number(column)) for _, column, text in shown]


def _calls(view: View) -> dict[str, Counter[str]]:
    """How often the server carried out each command of a lock in the complete trials of each cell, by its id."""
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
    """The most frequent first. The server counts the warm-up too, so what a grant took is split by its shares."""
    per_grant, total = cell.number("commands_per_grant"), calls.total()
    return [
        CommandRow(name, format_exact(count), format_ratio(per_grant * count / total if per_grant else None))
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
                rate=format_count(row["grants_per_s"]),
                p50=quantile_text(row, "acquire_p50_us"),
                p99=quantile_text(row, "acquire_p99_us"),
                verdict=str(row["verdict"]),
                status=str(row["status"]),
            )
        )
    return trials
