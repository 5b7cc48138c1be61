"""The findings of an experiment for a terminal: what it did, a box with figures, what was seen, and what to learn."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pybench.cli.output import data_console, printed, takes_styles, width
from pybench.lab import telling
from pybench.lab.findings import Seen

if TYPE_CHECKING:
    from rich.console import Console

    from pybench.lab.findings import Case, Findings

STYLES = {Seen.BROKEN: "bold red", Seen.MISSED: "bold red", Seen.SHOWN: "yellow", Seen.HELD: "green"}
BORDERS = 3
"""Columns that a border and its padding take beside a text."""


def findings_text(findings: Findings) -> str:
    """All that `pybench lab NAME` prints to stdout."""
    console = data_console()
    _say(console, f"{findings.name}: {findings.summary}", style="bold")
    for step in findings.steps:
        _say(console, step, indent="  ")
    _say(console, "")
    for cases in _fitting(findings.cases):
        _print_box(console, cases)
    _say(console, "")
    for case in findings.cases:
        _say(console, telling.case_sentence(case), style=STYLES.get(case.seen, ""), indent="- ", later="  ")
    for line in telling.left_out_lines(findings):
        _say(console, line, style="dim")
    _say(console, "")
    _say(console, telling.verdict(findings), style="bold")
    _say(console, f"To learn: {findings.learn}")
    if findings.servers:
        _say(console, f"Servers: {', '.join(findings.servers)}", style="dim")
    return printed(console)


def _fitting(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """The cases in groups, each as wide as fits beside the names of the figures."""
    first = max((len(label) for _, label in telling.headings(cases)), default=0) + BORDERS + 1
    group: list[Case] = []
    used = first
    for case in cases:
        needed = max([len(case.label), *(len(telling.figure_text(one)) for one in case.figures)]) + BORDERS
        if group and used + needed > width():
            yield group
            group, used = [], first
        group.append(case)
        used += needed
    if group:
        yield group


def _print_box(console: Console, cases: Sequence[Case]) -> None:
    from rich import box
    from rich.table import Table

    is_styled = takes_styles(console)
    table = Table(box=box.ROUNDED if is_styled else box.ASCII, border_style="dim", header_style="")
    table.add_column("")
    for case in cases:
        table.add_column(case.label, justify="right", header_style=STYLES.get(case.seen, ""), overflow="fold")
    for key, label in telling.headings(cases):
        table.add_row(label, *(telling.cell(case, key) for case in cases))
    console.print(table, width=min(width(), console.width))


def _say(console: Console, text: str, *, style: str = "", indent: str = "", later: str | None = None) -> None:
    lines = textwrap.wrap(
        text,
        width(),
        initial_indent=indent,
        subsequent_indent=indent if later is None else later,
        break_on_hyphens=False,
        break_long_words=False,
    )
    for line in lines or [""]:
        console.print(line, style=style, soft_wrap=True)
