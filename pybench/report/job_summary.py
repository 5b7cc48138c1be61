"""A run as the summary of a CI job: the report for a pull request, and every missed threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.numbers import plural
from pybench.report import markdown
from pybench.report.exports.junit import threshold_sentence

if TYPE_CHECKING:
    from pybench.records import Run
    from pybench.report.view import View

SHOWN = 20


def build(view: View) -> str:
    """The whole summary."""
    return "\n\n".join([markdown.build(view.run, view).rstrip(), *thresholds(view.run)]) + "\n"


def thresholds(run: Run) -> list[str]:
    """The thresholds of a run as Markdown: those that were missed, and how many were met; nothing without any."""
    results = run.thresholds
    if not results:
        return []
    missed = [result for result in results if not result.passed]
    told = [f"{threshold_sentence(one)} at {one.cell or 'no cell'}" for one in missed]
    lines = [f"- ✕ **{markdown.plain(text)}**" for text in told]
    more = [f"- and {plural(len(missed) - SHOWN, 'more')}"] if len(missed) > SHOWN else []
    met = len(results) - len(missed)
    head = f"Thresholds: {met:,} met, {len(missed):,} missed."
    return ["\n".join([head, "", *lines[:SHOWN], *more]) if missed else head]
