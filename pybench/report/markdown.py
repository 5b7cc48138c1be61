"""The report for a pull request: the answer, the ranking, the verdicts and how to repeat them, on one screen."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pybench.conditions import axis_title
from pybench.numbers import format_count, format_ratio, format_us, plural
from pybench.records import Run
from pybench.report import facts
from pybench.report.cautions import cautions
from pybench.report.html import VERDICT_SYMBOLS
from pybench.report.reasons import remarks
from pybench.report.sections.answer import clauses
from pybench.report.sections.ranking import Entry, entries
from pybench.report.view import CellView, View, make_view
from pybench.verdicts import Verdict

# Rows of the table: with more, the report itself is the place to look.
SHOWN_ROWS = 30


def build(run: Run) -> str:
    """The whole of `report.md`."""
    view = make_view(run)
    manifest = run.manifest
    about = ", ".join(filter(None, [facts.server_labels(manifest), facts.when(manifest)]))
    headline, others = clauses(view)
    parts = [f"### {_plain(facts.run_name(manifest))}: {_plain(headline)}"]
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
        parts.append(_ranking(view, entries(view)))
    parts.append(_method(run, about))
    return "\n\n".join(parts) + "\n"


def _ranking(view: View, ranked: Sequence[Entry]) -> str:
    axes = [_plain(axis_title(axis)) for axis in view.axes]
    titles = ["strategy", *axes, "safe grants/s", "p50", "p99", "p99.9", "commands/grant", "Jain", "verdict"]
    right = [False, *(True for _ in axes), *[True] * 6, False]
    lines = [_row(titles), _row(["--:" if numeric else ":--" for numeric in right])]
    lines += [_row(_cells(entry)) for entry in ranked[:SHOWN_ROWS]]
    if len(ranked) > SHOWN_ROWS:
        lines.append(f"\n{plural(len(ranked) - SHOWN_ROWS, 'further cell')} in the report.")
    return "\n".join(lines)


def _cells(entry: Entry) -> list[str]:
    cell = entry.cell
    name = _plain(cell.series.label)
    rate = format_count(cell.number("grants_per_s" if cell.unsafe else "safe_grants_per_s"))
    return [
        f"~~{name}~~" if cell.unsafe else name,
        *(f"{value:,}" if isinstance(value, int) else _plain(str(value)) for _, value in cell.conditions),
        f"~~{rate}~~" if cell.unsafe else f"{rate}{_interval(cell)}",
        *(format_us(cell.number(f"acquire_{quantile}_us")) for quantile in ("p50", "p99", "p999")),
        format_ratio(cell.number("commands_per_grant")),
        format_ratio(cell.number("jain")),
        f"{VERDICT_SYMBOLS[cell.verdict]} {cell.verdict}: {_plain(entry.reason)}",
    ]


def _interval(cell: CellView) -> str:
    low, high = cell.number("grants_per_s_low"), cell.number("grants_per_s_high")
    if cell.verdict != "SAFE" or low is None or high is None:
        return ""
    return f" ({format_count(low)} to {format_count(high)})"


def _method(run: Run, about: str) -> str:
    command = facts.command_line(run.manifest)
    controls = facts.control_rows(run.manifest)
    control = "; ".join(f"control {'caught' if caught else 'NOT caught'}: {found}" for _, caught, found in controls)
    seed = f"seed {facts.say(run.manifest.get('seed'))}"
    line = "Measured on " + ", ".join(_plain(part) for part in filter(None, [about, seed, control])) + "."
    return f"{line}\n\n```sh\n{command}\n```" if command and "```" not in command else line


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _plain(text: str) -> str:
    """`text` that Markdown shows as it is, in a table too."""
    return re.sub(r"([\\`*_{}\[\]<>|~#])", r"\\\1", text).replace("\n", " ")
