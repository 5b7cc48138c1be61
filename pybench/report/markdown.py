"""The report for a pull request: the answer, the ranking, the verdicts and the command, on one screen."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pybench.analysis.quantile_text import POOLED_MEANS, is_pooled, quantile_text
from pybench.columns import COLUMNS
from pybench.matrix.conditions import say_conditions
from pybench.numbers import plural
from pybench.records import Run
from pybench.report import run_facts
from pybench.report.cautions.of_run import cautions
from pybench.report.heat import AXES, Box, HeatMeasure, column_title, first_measure, heat_maps, scales_of
from pybench.report.html import VERDICT_SYMBOLS
from pybench.report.section import DataTable
from pybench.report.sections import faults, guarded, nodes
from pybench.report.sections.answer import clauses
from pybench.report.sections.limit import limit_tables
from pybench.report.sections.ranking import BOUND, LIMIT, PAST_LEASE, QUANTILES, Entry, LoadEntries, by_load, columns_of
from pybench.report.verdict_reasons import unsafe_and_evidence
from pybench.report.view import View, make_view

COLUMNS_SHOWN = (
    LIMIT,
    BOUND,
    ("p50", "acquire_p50_us"),
    ("p99", "acquire_p99_us"),
    ("p99.9", "acquire_p999_us"),
    ("longest wait", "longest_wait_us"),
    ("Jain's index", "jain"),
    ("commands per grant", "commands_per_grant"),
    PAST_LEASE,
)
"""Of the columns of the report's table, those that are few enough for a pull request."""
# Rows of the tables: with more, the report itself is the place to look.
SHOWN_ROWS = 30
SHOWN_MAPS = 6


def build(run: Run, view: View | None = None) -> str:
    """The whole of `report.md`; `view` is that of `run`, where the caller has it."""
    view = make_view(run) if view is None else view
    manifest = run.manifest
    about = ", ".join(filter(None, [run_facts.server_labels(manifest), run_facts.when(manifest)]))
    headline, others = clauses(view)
    parts = [f"### {plain(run_facts.run_name(manifest))}: {plain(headline)}"]
    parts += [f"> **{caution.title}.** {plain(caution.text)}" for caution in cautions(view)]
    unsafe, evidence = unsafe_and_evidence(view)
    points = [f"- ✕ **UNSAFE** {plain(remark.sentence)}." for remark in unsafe]
    points += [f"- {plain(clause)}" for clause in others]
    points += [f"- {plain(f'{remark.subject}, as expected: {remark.reason}.')}" for remark in evidence]
    points += [f"- {plain(remark)}" for remark in nodes.remarks(view)]
    if points:
        parts.append("\n".join(points))
    if view.cells:
        parts += _ranking(view, by_load(view))
        parts += _heat_maps(view)
    further = [guarded.figures_table(view), faults.figures_table(view)]
    parts += [_data_table(table) for table in [*limit_tables(view), *filter(None, further)]]
    parts += [plain(sentence) for _, sentence in guarded.said(view)]
    parts.append(_method(run, about))
    return "\n\n".join(parts) + "\n"


def _ranking(view: View, loads: Sequence[LoadEntries]) -> list[str]:
    """A table for each load, under its name; of many cells those of the first loads."""
    parts, room = [], SHOWN_ROWS
    columns = [column for column in COLUMNS_SHOWN if column in columns_of(view)]
    titles = ["#", "lock", "verdict", "safe grants/s", *(title for title, _ in columns), "why"]
    right = [True, False, False, *[True] * (len(columns) + 1), False]
    for load in loads:
        if room <= 0:
            break
        lines = [table_row(titles), table_row(["--:" if numeric else ":--" for numeric in right])]
        lines += [table_row(_cells(entry, columns)) for entry in load.entries[:room]]
        room -= len(load.entries)
        parts += [f"**{plain(load.text)}**"] if load.text else []
        parts.append("\n".join(lines))
    left = sum(len(load.entries) for load in loads) - SHOWN_ROWS
    if left > 0:
        parts.append(f"{plural(left, 'further cell')} in the report.")
    if any(is_pooled(cell.row, column) for cell in view.cells for _, column in QUANTILES):
        parts.append(plain(f"{POOLED_MEANS}."))
    return parts


def _data_table(table: DataTable) -> str:
    """A table of figures, under its caption; of many rows the first."""
    aligned = [":--", ":--", *["--:"] * len(table.columns)]
    lines = [f"**{plain(table.caption)}**", "", table_row(["lock", "load", *table.columns]), table_row(aligned)]
    shown = ((row.label, row.where, *(one.text for one in row.figures)) for row in table.rows[:SHOWN_ROWS])
    lines += [table_row([plain(text) for text in texts]) for texts in shown]
    if len(table.rows) > SHOWN_ROWS:
        lines += ["", f"{plural(len(table.rows) - SHOWN_ROWS, 'further row')} in the report."]
    return "\n".join(lines)


def _cells(entry: Entry, columns: Sequence[tuple[str, str]]) -> list[str]:
    cell = entry.cell
    name = plain(entry.name)
    return [
        entry.place or "-",
        f"~~{name}~~" if cell.breaks_exclusion else name,
        f"{VERDICT_SYMBOLS[cell.verdict]} {cell.verdict}{', generator was late' if entry.is_late else ''}",
        _figure(entry, "safe_grants_per_s") + _granted(entry),
        *(_figure(entry, column) for _, column in columns),
        plain(entry.reason),
    ]


def _figure(entry: Entry, column: str) -> str:
    is_quantile = column in {name for _, name in QUANTILES}
    row, text = entry.cell.row, COLUMNS[column].format.text(entry.cell.number(column))
    text = plain(quantile_text(row, column) if is_quantile else text)
    return f"**{text}**" if column == entry.bold else text


def _granted(entry: Entry) -> str:
    """The interval of the safe grants/s; of a cell that is not safe, its grants/s."""
    if entry.interval:
        return f" ({entry.interval})"
    return f" (of {entry.granted} granted)" if entry.cell.verdict != "SAFE" else ""


def _heat_maps(view: View) -> list[str]:
    """The heat maps as tables, folded up; of many the first ones."""
    scales = scales_of(view) if view.measured else []
    found = [(axis, one) for axis in AXES if scales for one in heat_maps(view, axis, scales)]
    if not found:
        return []
    measure = first_measure(view, scales)
    parts = [f"<details><summary>Heat maps: {measure.title}</summary>"]
    for axis, one in found[:SHOWN_MAPS]:
        where = ", ".join(filter(None, [f"over {column_title(axis)}", say_conditions(one.conditions)]))
        rows = [["lock", *one.columns], [":--", *["--:"] * len(one.columns)]]
        rows += [[plain(line.label), *(_box(box, measure) for box in boxes)] for line, boxes in one.rows]
        parts += [f"**{plain(where)}**", "\n".join(table_row(row) for row in rows)]
    if len(found) > SHOWN_MAPS:
        parts.append(f"{plural(len(found) - SHOWN_MAPS, 'further map')} in the report.")
    return [*parts, "</details>"]


def _box(box: Box | None, measure: HeatMeasure) -> str:
    if box is None:
        return "-"
    texts = [one.text for one in box.figures if one.key == measure.key]
    text = plain(" ".join(filter(None, [*texts, f"({box.words})" if texts and box.words else box.words])))
    return f"**{text}**" if any(one.is_bold for one in box.figures if one.key == measure.key) else text


def _method(run: Run, about: str) -> str:
    command = run_facts.command_line(run.manifest)
    controls = run_facts.control_rows(run.manifest)
    several = len({where for where, _, _ in controls}) > 1
    control = "; ".join(
        f"control{f' on {where}' if several else ''} {'caught' if caught else 'NOT caught'}: {found}"
        for where, caught, found in controls
    )
    seed = f"seed {run_facts.say(run.manifest.get('seed'))}"
    line = "Measured on " + ", ".join(plain(part) for part in filter(None, [about, seed, control])) + "."
    return f"{line}\n\n```sh\n{command}\n```" if command and "```" not in command else line


def table_row(texts: Sequence[str]) -> str:
    """A row of a table; the texts are Markdown already."""
    return f"| {' | '.join(texts)} |"


def plain(text: str) -> str:
    """`text` that Markdown shows as it is, in a table too."""
    return re.sub(r"([\\`*_{}\[\]<>|~#])", r"\\\1", text).replace("\n", " ")
