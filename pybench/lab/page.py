"""The findings of experiments as one page that loads nothing, with a table of contents where there are several."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pybench import _core
from pybench.exits import Exit, first
from pybench.lab import telling
from pybench.lab.findings import Findings, Seen
from pybench.report.html import asset, fill
from pybench.report.page import policy

STYLES = ("assets/page.css", "assets/lab.css")
TONES = {Seen.BROKEN: "unsafe", Seen.MISSED: "unsafe", Seen.SHOWN: "undecided", Seen.HELD: "safe"}


def page(found: Sequence[Findings], skipped: Sequence[tuple[str, str]] = ()) -> str:
    """The whole page. `skipped` are the names of experiments that did not run, with the reason."""
    return str(
        fill(
            "lab.html",
            experiments=[_experiment(one) for one in found],
            skipped=skipped,
            headline=_headline(found),
            style=Markup("".join(asset(path) for path in STYLES)),
            policy=policy([]),
            version=_core.version,
        )
    )


def _headline(found: Sequence[Findings]) -> str:
    if len(found) == 1:
        return telling.verdict(found[0])
    code = first({one.exit for one in found})
    if code is Exit.OK:
        return f"All {len(found)} experiments saw what was expected"
    wrong = [one.name for one in found if one.exit is not Exit.OK]
    return f"Not as expected: {', '.join(wrong)}"


def _experiment(findings: Findings) -> dict[str, object]:
    headings = telling.headings(findings.cases)
    return {
        "findings": findings,
        "verdict": telling.verdict(findings),
        "is_good": findings.exit is Exit.OK,
        "labels": [label for _, label in headings],
        "rows": [
            {
                "case": case,
                "tone": TONES.get(case.seen, "expected"),
                "cells": [telling.cell(case, key) for key, _ in headings],
            }
            for case in findings.cases
        ],
        "left_out": telling.left_out_lines(findings),
    }
