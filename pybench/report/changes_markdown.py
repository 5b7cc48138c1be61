"""The comparison of two runs as Markdown, for a pull request or the summary of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.analysis.between_runs.figures import THROUGHPUT
from pybench.numbers import NOT_AVAILABLE, plural
from pybench.report.changes_words import about, cell_effect, notes, ratio_text, short_ratio, turn_sentence, written
from pybench.report.markdown import plain, table_row

if TYPE_CHECKING:
    from pybench.analysis.between_runs import CellChange, RunChanges
    from pybench.records import Run

SHOWN_ROWS = 50


def build(changes: RunChanges, old: Run, new: Run) -> str:
    """The whole file."""
    parts = [f"### {plain(changes.headline[0].upper() + changes.headline[1:])}"]
    if changes.turns:
        parts.append("\n".join(f"- **{plain(turn_sentence(one))}**" for one in changes.turns))
    parts.append(f"Old: {plain(about(old))}.\nNew: {plain(about(new))}.")
    parts += differences(changes)
    if changes.cells:
        parts.append(_table(changes))
    if len(changes.cells) > SHOWN_ROWS:
        parts.append(f"{plural(len(changes.cells) - SHOWN_ROWS, 'further cell')} not shown.")
    parts.append(plain(" ".join(notes(changes))))
    return "\n\n".join(filter(None, parts)) + "\n"


def differences(changes: RunChanges, names: tuple[str, str] = ("old", "new")) -> list[str]:
    """What differs between the runs besides their figures, as a table; nothing where nothing does."""
    if not changes.differences:
        return []
    rows = [table_row(["differs", *names]), table_row([":--"] * 3)]
    rows += [table_row([plain(one.what), plain(one.old), plain(one.new)]) for one in changes.differences]
    return ["\n".join(rows)]


def _table(changes: RunChanges) -> str:
    others = [figure for figure in changes.figures if figure.column != THROUGHPUT]
    titles = ["lock", "load", "effect", "old grants/s", "new grants/s", "ratio", *(one.title for one in others)]
    aligned = [":--", ":--", ":--", "--:", "--:", "--:", *["--:"] * len(others)]
    lines = [table_row(titles), table_row(aligned)]
    for one in changes.cells[:SHOWN_ROWS]:
        further = [plain(short_ratio(one.figure(figure.column))) for figure in others]
        which = [plain(text) for text in (one.lock, one.load, cell_effect(one))]
        lines.append(table_row([*which, *_throughput(one), *further]))
    return "\n".join(lines)


def _throughput(one: CellChange) -> list[str]:
    change = one.figure(THROUGHPUT)
    if change is None:
        return [NOT_AVAILABLE] * 3
    return [plain(text) for text in (written(change, change.old), written(change, change.new), ratio_text(change))]
