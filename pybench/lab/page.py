"""The findings of experiments as one page that loads nothing, with a table of contents where there are several."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pybench import _core
from pybench.exits import Exit
from pybench.lab import telling
from pybench.lab.findings import Findings, NotRun, Seen
from pybench.numbers import plural
from pybench.report.html import asset, fill
from pybench.report.page import policy

STYLES = ("assets/page.css", "assets/lab.css")
TONES = {Seen.BROKEN: "unsafe", Seen.MISSED: "unsafe", Seen.SHOWN: "undecided", Seen.HELD: "safe"}


def page(found: Sequence[Findings], not_run: Sequence[NotRun] = ()) -> str:
    """The whole page, with the experiments that did not run."""
    return str(
        fill(
            "lab.html",
            experiments=[_experiment(one) for one in found],
            not_run=not_run,
            headline=_headline(found, not_run),
            style=Markup("".join(asset(path) for path in STYLES)),
            policy=policy([]),
            version=_core.version,
        )
    )


def _headline(found: Sequence[Findings], not_run: Sequence[NotRun]) -> str:
    if len(found) == 1 and not not_run:
        return telling.verdict(found[0])
    wrong = [one.name for one in found if one.exit is not Exit.OK]
    clauses = [
        f"Not as expected: {', '.join(wrong)}" if wrong else "",
        f"{plural(len(found), 'experiment')} saw what was expected" if found and not wrong else "",
        *(f"{how}: {', '.join(names)}" for how, names in _by_how(not_run).items()),
    ]
    text = "; ".join(filter(None, clauses))
    return f"{text[:1].upper()}{text[1:]}"


def _by_how(not_run: Sequence[NotRun]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for one in not_run:
        names.setdefault(one.how, []).append(one.name)
    return names


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
