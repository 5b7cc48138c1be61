"""Findings in words, as JSON, and as the rows of a log. `cli.lab` prints them, `lab.page` shows them.

Promises: pure functions of findings.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from pybench.lab.findings import Case, Figure, Findings, Seen
from pybench.numbers import format_ns, format_percent, format_plain, plural

LOG_COLUMNS: Final = (
    "process_id",
    "lock_acquired",
    "stock_before",
    "stock_after",
    "duration_ms",
    "success",
    "error",
    "experiment",
    "case",
)

LONGEST_NAME: Final = 11
"""Of an experiment, in characters."""
MOST_LISTED: Final = 5
"""Of more cases a sentence says only how many there are."""


def figure_text(figure: Figure) -> str:
    """The value of a figure for people; the ending of its key says the unit."""
    value = figure.value
    if value is None:
        return "n/a"
    if isinstance(value, str):
        return value
    if figure.key.endswith("_ms"):
        return format_ns(value * 1e6)
    if figure.key.endswith("_share"):
        return format_percent(value)
    return format_plain(value)


def headings(cases: Sequence[Case]) -> list[tuple[str, str]]:
    """Key and label of each figure that a case has, in the order in which they first appear."""
    return list({figure.key: (figure.key, figure.label) for case in cases for figure in case.figures}.values())


def cell(case: Case, key: str) -> str:
    """The text of the figure of that key; empty where the case has none."""
    return next((figure_text(figure) for figure in case.figures if figure.key == key), "")


def case_sentence(case: Case) -> str:
    """What was seen of a case, and what it means."""
    return f"{case.label}: {case.sentence} ({case.seen.value})."


def verdict(findings: Findings) -> str:
    """What all cases together mean, in one sentence."""
    labels = {seen: [case.label for case in findings.cases if case.seen is seen] for seen in Seen}
    broken, missed = labels[Seen.BROKEN], labels[Seen.MISSED]
    if broken:
        also = f"; {_enumerated(missed)} did not go wrong, so the rest proves nothing" if missed else ""
        return f"A LOCK BROKE ITS PROMISE: {_enumerated(broken)}{also}."
    if missed:
        return f"VOID: {_enumerated(missed)} did not go wrong, so the experiment proves nothing."
    parts = [
        f"what is wrong was caught ({_listed(labels[Seen.SHOWN])})" if labels[Seen.SHOWN] else "",
        f"what is right held ({_listed(labels[Seen.HELD])})" if labels[Seen.HELD] else "",
        f"wrong without a broken promise: {_listed(labels[Seen.WENT_WRONG])}" if labels[Seen.WENT_WRONG] else "",
    ]
    return f"As expected: {'; '.join(filter(None, parts))}."


def _listed(labels: Sequence[str]) -> str:
    return _enumerated(labels) if len(labels) <= MOST_LISTED else plural(len(labels), "case")


def _enumerated(labels: Sequence[str]) -> str:
    """`labels` one after another; with semicolons between them where one has a comma of its own."""
    return ("; " if any("," in label for label in labels) else ", ").join(labels)


def left_out_lines(findings: Findings) -> list[str]:
    """One line for each reason, with the locks that it keeps out."""
    reasons: dict[str, list[str]] = {}
    for one in findings.left_out:
        reasons.setdefault(one.reason, []).append(one.strategy)
    return [f"Left out: {', '.join(locks)}: {_of_each(reason, len(locks))}." for reason, locks in reasons.items()]


def _of_each(reason: str, locks: int) -> str:
    """The clause about one lock as one about so many."""
    return f"each {reason.removeprefix('it ')}" if locks > 1 and reason.startswith("it ") else reason


def line(findings: Findings) -> str:
    """One line for a list of experiments."""
    return f"{findings.name:<{LONGEST_NAME}}  {format_ns(findings.seconds * 1e9):>7}  {verdict(findings)}"


def to_json(findings: Findings) -> dict[str, Any]:
    """All of it, as plain data."""
    return {
        "experiment": findings.name,
        "exit_code": findings.exit.value,
        "verdict": verdict(findings),
        "void": findings.is_void,
        "settings": findings.settings,
        "servers": list(findings.servers),
        "seconds": round(findings.seconds, 3),
        "cases": [_case_json(case) for case in findings.cases],
        "left_out": [asdict(one) for one in findings.left_out],
        "learn": findings.learn,
    }


def log_text(found: Iterable[Findings]) -> str:
    """CSV: a row for each client of each case, under a line of column names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, LOG_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for findings in found:
        for case in findings.cases:
            for client in case.clients:
                row = {name: _log_value(value) for name, value in asdict(client).items()}
                writer.writerow({**row, "experiment": findings.name, "case": case.label})
    return text.getvalue()


def _log_value(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _case_json(case: Case) -> dict[str, Any]:
    return {
        "case": case.label,
        "strategy": case.strategy,
        "expected": case.expected.value,
        "went_wrong": case.went_wrong,
        "seen": case.seen.name.lower(),
        "sentence": case.sentence,
        "figures": {figure.key: figure.value for figure in case.figures},
        "clients": len(case.clients),
    }
