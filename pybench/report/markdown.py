"""The report for a pull request: the answer, the ranking, the verdicts and how to repeat them, on one screen."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pybench.analysis.quantile_text import POOLED_MEANS, is_pooled, quantile_text
from pybench.analysis.verdicts import Verdict
from pybench.numbers import format_count, format_ratio, format_us, plural
from pybench.records import Run
from pybench.report import run_facts
from pybench.report.cautions.of_run import cautions
from pybench.report.html import VERDICT_SYMBOLS
from pybench.report.sections.answer import clauses
from pybench.report.sections.ranking import PAST_LEASE, Entry, LoadEntries, by_load, figures_of
from pybench.report.verdict_reasons import remarks
from pybench.report.view import CellView, View, make_view

QUANTILES = ("acquire_p50_us", "acquire_p99_us", "acquire_p999_us")
TITLES = ("safe grants/s", "p50", "p99", "p99.9", "longest wait", "Jain", "commands/grant", "verdict")
# Rows of the tables: with more, the report itself is the place to look.
SHOWN_ROWS = 30


def build(run: Run) -> str:
    """The whole of `report.md`."""
    view = make_view(run)
    manifest = run.manifest
    about = ", ".join(filter(None, [run_facts.server_labels(manifest), run_facts.when(manifest)]))
    headline, others = clauses(view)
    parts = [f"### {_plain(run_facts.run_name(manifest))}: {_plain(headline)}"]
    parts += [f"> **{caution.title}.** {_plain(caution.text)}" for caution in cautions(view)]
    points = [f"- {_plain(clause)}" for clause in others]
    points += [
        f"- ✕ **UNSAFE** {_plain(remark.subject)}: {_plain(remark.reason)}"
        for remark in remarks(view)
        if remark.verdict == Verdict.UNSAFE
    ]
    if points:
        parts.append("\n".join(points))
    if view.cells:
        parts += _ranking(view, by_load(view))
    parts.append(_method(run, about))
    return "\n\n".join(parts) + "\n"


def _ranking(view: View, loads: Sequence[LoadEntries]) -> list[str]:
    """A table for each load, under its name; of many cells those of the first loads."""
    parts, room = [], SHOWN_ROWS
    outlived = PAST_LEASE in figures_of(view)
    for load in loads:
        if room <= 0:
            break
        titles = ["#", "lock", *TITLES[:-1], *([PAST_LEASE[0]] if outlived else []), TITLES[-1]]
        right = [True, False, *[True] * (len(titles) - 3), False]
        lines = [_row(titles), _row(["--:" if numeric else ":--" for numeric in right])]
        lines += [_row(_cells(entry, outlived=outlived)) for entry in load.entries[:room]]
        room -= len(load.entries)
        parts += [f"**{_plain(load.text)}**"] if load.text else []
        parts.append("\n".join(lines))
    left = sum(len(load.entries) for load in loads) - SHOWN_ROWS
    if left > 0:
        parts.append(f"{plural(left, 'further cell')} in the report.")
    if any(is_pooled(cell.row, column) for cell in view.cells for column in QUANTILES):
        parts.append(_plain(f"{POOLED_MEANS}."))
    return parts


def _cells(entry: Entry, *, outlived: bool) -> list[str]:
    cell = entry.cell
    name = _plain(entry.name)
    rate = format_count(cell.number("safe_grants_per_s"))
    unsafe = f"0 (~~{format_count(cell.number('grants_per_s'))}~~ unsafe)"
    figure = unsafe if cell.unsafe else f"{rate}{_interval(cell)}"
    return [
        entry.place or "-",
        f"~~{name}~~" if cell.unsafe else name,
        f"**{figure}**" if entry.is_first else figure,
        *(_plain(quantile_text(cell.row, column)) for column in QUANTILES),
        format_us(cell.number("longest_wait_us")),
        format_ratio(cell.number("jain")),
        format_ratio(cell.number("commands_per_grant")),
        *([PAST_LEASE[2](cell.number(PAST_LEASE[1]))] if outlived else []),
        f"{VERDICT_SYMBOLS[cell.verdict]} {cell.verdict}{', late' if entry.is_late else ''}: {_plain(entry.reason)}",
    ]


def _interval(cell: CellView) -> str:
    low, high = cell.number("grants_per_s_low"), cell.number("grants_per_s_high")
    if cell.verdict != "SAFE" or low is None or high is None:
        return ""
    return f" ({format_count(low)} to {format_count(high)})"


def _method(run: Run, about: str) -> str:
    command = run_facts.command_line(run.manifest)
    controls = run_facts.control_rows(run.manifest)
    several = len({backend for backend, _, _ in controls}) > 1
    control = "; ".join(
        f"control{f' on {backend}' if several else ''} {'caught' if caught else 'NOT caught'}: {found}"
        for backend, caught, found in controls
    )
    seed = f"seed {run_facts.say(run.manifest.get('seed'))}"
    line = "Measured on " + ", ".join(_plain(part) for part in filter(None, [about, seed, control])) + "."
    return f"{line}\n\n```sh\n{command}\n```" if command and "```" not in command else line


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _plain(text: str) -> str:
    """`text` that Markdown shows as it is, in a table too."""
    return re.sub(r"([\\`*_{}\[\]<>|~#])", r"\\\1", text).replace("\n", " ")
