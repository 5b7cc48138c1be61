"""The ranking: every cell with its figures and its verdict, and all that was measured of it folded up below."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from pybench.conditions import say_conditions
from pybench.contenders import why_apart
from pybench.numbers import format_count, format_exact, format_ratio, format_us, missing
from pybench.report import facts
from pybench.report.html import fill
from pybench.report.reasons import reasons
from pybench.report.section import Section
from pybench.report.view import CellView, View
from pybench.summary import rank

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

NOT_RANKED = "; not ranked, for {}"

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
class Entry:
    """A cell of the ranking. `place` is empty where it does not rank."""

    cell: CellView
    place: str
    reason: str
    phases: list[tuple[str, str]]
    outcomes: list[tuple[str, str]]
    trials: list[TrialRow]
    commands: list[CommandRow]


def render(view: View) -> Section | None:
    """All cells, the most safe grants per second first; None when there is no cell."""
    if not view.cells:
        return None
    html = fill(
        "ranking.html",
        entries=entries(view),
        axes=view.axes,
        say_conditions=say_conditions,
        shown=SHOWN_ROWS,
        columns=_columns(),
        sureness=view.sureness,
        baseline=facts.baseline_sentences(view.run.manifest),
        violating=set(view.run.violations["cell"]) if not view.run.violations.empty else set(),
    )
    return Section("ranking", "Ranking", html)


def entries(view: View) -> list[Entry]:
    """The cells in the order of ranking."""
    why, trials, calls = reasons(view), _trials(view), _calls(view)
    aside = view.aside
    by_id = {cell.id: cell for cell in view.cells}
    ranked = [by_id[str(id_)] for id_ in rank(view.run.summary)["cell"]]
    found = []
    place = 0
    for cell in ranked:
        ranks = cell.verdict == "SAFE" and cell.id not in aside
        place += ranks
        found.append(
            Entry(
                cell,
                str(place) if ranks else "",
                why[cell.id] + (NOT_RANKED.format(_why_aside(aside[cell.id])) if cell.id in aside else ""),
                [(name, format_us(cell.number(column))) for name, column in PHASES],
                [(name, format_exact(cell.number(column))) for name, column in OUTCOMES],
                trials[cell.id],
                _commands(cell, calls.get(cell.id, Counter())),
            )
        )
    return found


def _why_aside(crowd: float) -> str:
    return why_apart(crowd) if math.isinf(crowd) else f"it lets {crowd:.0f} hold a key at a time"


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
    columns = ["cell", "trial", "grants_per_s", "acquire_p50_us", "acquire_p99_us", "verdict", "status"]
    trials: dict[str, list[TrialRow]] = {}
    for row in view.run.trials[columns].sort_values("trial").to_dict("records"):
        trials.setdefault(str(row["cell"]), []).append(
            TrialRow(
                number=int(row["trial"]),
                rate=format_count(row["grants_per_s"]),
                p50=format_us(row["acquire_p50_us"]),
                p99=format_us(row["acquire_p99_us"]),
                verdict=str(row["verdict"]),
                status=str(row["status"]),
            )
        )
    return trials


def _columns() -> list[tuple[str, str, Any]]:
    """Title, column and format of each figure of the table."""
    return [
        ("p50", "acquire_p50_us", format_us),
        ("p99", "acquire_p99_us", format_us),
        ("p99.9", "acquire_p999_us", format_us),
        ("hand-off p50", "handoff_p50_us", format_us),
        ("attempts per grant", "attempts_per_grant", format_ratio),
        ("commands per grant", "commands_per_grant", format_ratio),
        ("Jain", "jain", format_ratio),
    ]
