"""The answer of a gate for a terminal: the sides, what differs, the answer, and a line a cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pybench.analysis.gating import Finding
from pybench.cli.changes_table import say_differences
from pybench.cli.fitted_table import Column, print_with_notes, say
from pybench.cli.output import data_console, printed
from pybench.report.changes_words import about, short_ratio
from pybench.report.gate_words import excluded, interval, noise, notes, sentence, title, values

if TYPE_CHECKING:
    from pybench.analysis.between_runs.gate_answer import GateAnswer, GateCell
    from pybench.records import Run


def gate_text(answer: GateAnswer, base: Run, head: Run) -> str:
    """The whole of what `pybench gate` prints to stdout."""
    console = data_console()
    say(console, f"base: {about(base)}")
    say(console, f"head: {about(head)}")
    say_differences(console, answer.changes)
    say(console, "")
    say(console, answer.headline, style="bold")
    for one in answer.regressions:
        say(console, f"- {sentence(one)}", style="red")
    columns = _columns(answer) if answer.cells else []
    print_with_notes(console, answer.cells, columns, _style, notes(answer))
    return printed(console)


def _columns(answer: GateAnswer) -> list[Column[GateCell]]:
    cells = answer.cells
    titles = list(dict.fromkeys(title(one) for one in cells))
    figure = titles[0] if len(titles) == 1 else "figure"
    return [
        Column("lock", lambda one: one.change.lock, left=True, is_kept=True),
        *([Column("load", _load, left=True, is_kept=True)] if any(_load(one) for one in cells) else []),
        Column("result", lambda one: one.word, left=True, is_kept=True),
        *([Column("by", title, left=True)] if len(titles) > 1 else []),
        Column("head / base", lambda one: interval(one.first)),
        Column("slower by at most", lambda one: excluded(one.first)),
        *([Column("confirming round", lambda one: interval(one.second))] if any(one.second for one in cells) else []),
        Column("noise", lambda one: noise(one.first)),
        Column(f"base {figure}", lambda one: values(one)[0]),
        Column(f"head {figure}", lambda one: values(one)[1]),
        *(Column(of.title, _ratio(of.column), left=True) for of in answer.changes.figures if titles != [of.title]),
    ]


def _ratio(column: str) -> Callable[[GateCell], str]:
    return lambda one: short_ratio(one.change.figure(column))


def _load(one: GateCell) -> str:
    return one.change.load


def _style(one: GateCell) -> str:
    if one.is_regression:
        return "red"
    return {Finding.FASTER: "green", Finding.SAME: ""}.get(one.finding or Finding.UNKNOWN, "dim")
