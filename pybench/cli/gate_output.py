"""The answer of a gate as the user asked for it: terminal or JSON, and files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.analysis.between_runs.changes import BASE
from pybench.analysis.between_runs.gate_answer import Outcome
from pybench.cli.compare import figure_object, write_page_of_two
from pybench.cli.job_summary import append, require_summary
from pybench.cli.output import data, data_json, require_files, say, write_file
from pybench.exits import Exit
from pybench.gate.order import HEAD

if TYPE_CHECKING:
    from pybench.analysis.between_runs.gate_answer import GateAnswer, GateCell
    from pybench.analysis.gating import Judged
    from pybench.gate.job import GateOutcome
    from pybench.records import Run

NO_BASE = "can't tell: base and head are the same, so there is nothing to compare"
NOTHING = "can't tell: the job ended before every side had a trial"


@dataclass(frozen=True, slots=True)
class Outputs:
    """What is written where."""

    md: Path | None
    html: Path | None
    junit: Path | None
    summary: bool
    as_json: bool

    def require(self) -> None:
        """Check before anything is measured that all files can be written. Raises InputError, RecordError."""
        require_files(md=self.md, html=self.html, junit=self.junit)
        require_summary(asked=self.summary)

    def write_undecided(self, name: str, reason: str = NO_BASE, code: Exit = Exit.UNDECIDED) -> None:
        """Write what was asked for, except a page, for a gate without an answer. Raises RecordError."""
        from pybench.report.exports import gate_junit
        from pybench.report.gate_markdown import undecided

        if self.as_json:
            data_json(_object(None, {}, code, reason))
        text = undecided(name, reason)
        if self.md is not None:
            write_file(self.md, text)
        if self.junit is not None:
            write_file(self.junit, gate_junit.build(None, None, name, reason))
        if self.summary:
            append(text)

    def write(self, outcome: GateOutcome, name: str) -> None:
        """Write everything that was asked for. Raises RecordError, and InputError where stdout cannot be written."""
        from pybench.cli.gate_table import gate_text
        from pybench.report import gate_markdown, gate_page
        from pybench.report.exports import gate_junit

        answer = outcome.answer
        if answer is None:
            reason = NOTHING if outcome.error is None else outcome.error.message
            if outcome.error is None:
                say(reason)
            self.write_undecided(name, reason, outcome.exit)
            return
        base, head = outcome.runs[BASE], outcome.runs[HEAD]
        if self.as_json:
            data_json(_object(answer, outcome.runs, outcome.exit, answer.headline))
        else:
            data(gate_text(answer, base, head))
        if self.md is not None:
            write_file(self.md, gate_markdown.build(answer, base, head))
        if self.html is not None:
            write_page_of_two(self.html, partial(gate_page.build, answer, base, head), len(answer.cells))
        if self.junit is not None:
            write_file(self.junit, gate_junit.build(answer, head, name, answer.headline))
        if self.summary:
            append(gate_markdown.build(answer, base, head))


def _object(answer: GateAnswer | None, runs: dict[str, Run], code: Exit, headline: str) -> dict[str, Any]:
    """A gate as `--json` prints it; ratios are the head's figure divided by the base's, n/a is None."""
    from pybench.records.schema import SCHEMA

    return {
        "schema": SCHEMA,
        "outcome": (Outcome.UNKNOWN if answer is None else answer.outcome).value,
        "headline": headline,
        "exit_code": code.value,
        "runs": {name: str(run.path) for name, run in runs.items()},
        "thresholds": [
            {"threshold": one.threshold.text, "cell": one.cell, "figure": one.figure, "passed": one.passed}
            for one in (runs[HEAD].thresholds if HEAD in runs else ())
        ],
        "differences": [
            {"what": one.what, "base": one.old, "head": one.new}
            for one in (answer.changes.differences if answer is not None else ())
        ],
        "cells": [_cell(one) for one in (answer.cells if answer is not None else ())],
    }


def _cell(one: GateCell) -> dict[str, Any]:
    change = one.change
    return {
        "lock": change.lock,
        "load": change.load,
        "base_cell": change.old_cell,
        "head_cell": change.new_cell,
        "base_verdict": change.old_verdict.value,
        "head_verdict": change.new_verdict.value,
        "result": one.word,
        "is_regression": one.is_regression,
        "decided_by": change.deciding,
        "first_round": _judged(one.first),
        "confirming_round": _judged(one.second),
        "figures": {figure.figure.column: figure_object(figure) for figure in change.figures},
    }


def _judged(judged: Judged | None) -> dict[str, Any] | None:
    if judged is None:
        return None
    ratio = judged.ratio
    return {
        "finding": judged.finding.value,
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "confidence": ratio.confidence,
        "blocks": ratio.blocks,
        "noise": judged.noise,
        "limit": judged.limit,
        "excluded_slowdown": judged.excluded,
        "least_slowdown": judged.least,
    }
