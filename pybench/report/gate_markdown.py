"""The answer of a gate as Markdown, for a pull request or the summary of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.analysis.between_runs.gate_answer import Outcome
from pybench.numbers import plural
from pybench.report import gate_words
from pybench.report.changes_markdown import SHOWN_ROWS, differences
from pybench.report.changes_words import about
from pybench.report.job_summary import thresholds
from pybench.report.markdown import plain, table_row

if TYPE_CHECKING:
    from pybench.analysis.between_runs.gate_answer import GateAnswer, GateCell
    from pybench.records import Run

SYMBOLS = {Outcome.REGRESSION: "✕", Outcome.PASS: "✓", Outcome.UNKNOWN: "?"}


def build(answer: GateAnswer, base: Run, head: Run) -> str:
    """The whole file."""
    parts = [f"### {SYMBOLS[answer.outcome]} {plain(answer.headline[0].upper() + answer.headline[1:])}"]
    if answer.regressions:
        parts.append("\n".join(f"- **{plain(gate_words.sentence(one))}**" for one in answer.regressions))
    if answer.cells:
        parts.append(_table(answer))
    if len(answer.cells) > SHOWN_ROWS:
        parts.append(f"{plural(len(answer.cells) - SHOWN_ROWS, 'further cell')} not shown.")
    parts += thresholds(head)
    parts.append(f"Base: {plain(about(base))}.\nHead: {plain(about(head))}.")
    parts += differences(answer.changes, ("base", "head"))
    parts.append(plain(" ".join(gate_words.notes(answer))))
    return "\n\n".join(filter(None, parts)) + "\n"


def undecided(name: str, reason: str) -> str:
    """A gate without an answer."""
    return f"### {SYMBOLS[Outcome.UNKNOWN]} {plain(name)}: {plain(reason)}\n"


def _table(answer: GateAnswer) -> str:
    titles = ["lock", "load", "result", "by", "head / base", "confirming round", "slower by at most", "noise"]
    lines = [table_row([*titles, "base", "head"]), table_row([*[":--"] * 4, *["--:"] * 6])]
    # Cells that fail come first, for a long table is cut.
    ordered = sorted(answer.cells, key=lambda one: not one.is_regression)
    lines += [table_row([plain(text) for text in _row(one)]) for one in ordered[:SHOWN_ROWS]]
    return "\n".join(lines)


def _row(one: GateCell) -> list[str]:
    return [
        one.change.lock,
        one.change.load,
        one.word,
        gate_words.title(one),
        gate_words.interval(one.first),
        gate_words.interval(one.second),
        gate_words.excluded(one.first),
        gate_words.noise(one.first),
        *gate_words.values(one),
    ]
