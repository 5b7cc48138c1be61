"""The comparison of two runs for a terminal: the answer, what differs, changed verdicts, and a line a cell.

Columns that do not fit are dropped from the right and named below the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pybench.analysis.between_runs import Effect, Turn
from pybench.analysis.between_runs.figures import THROUGHPUT
from pybench.cli.fitted_table import Column, print_with_notes, say
from pybench.cli.output import data_console, printed
from pybench.numbers import NOT_AVAILABLE
from pybench.report.changes_words import about, cell_effect, notes, ratio_text, short_ratio, turn_sentence, written

if TYPE_CHECKING:
    from rich.console import Console

    from pybench.analysis.between_runs import CellChange, RunChanges
    from pybench.records import Run

_STYLES = {Effect.FASTER: "green", Effect.SLOWER: "red", Effect.UNKNOWN: "dim", None: "dim"}


def changes_text(changes: RunChanges, old: Run, new: Run) -> str:
    """The whole of what `pybench compare` prints to stdout."""
    console = data_console()
    say(console, f"old: {about(old)}")
    say(console, f"new: {about(new)}")
    say_differences(console, changes)
    say(console, "")
    say(console, changes.headline, style="bold")
    for turned in changes.turns:
        say(console, f"- {turn_sentence(turned)}", style="red" if turned.turn is Turn.REGRESSION else "")
    columns = _columns(changes) if changes.cells else []
    print_with_notes(console, changes.cells, columns, lambda one: _STYLES.get(one.effect, ""), notes(changes))
    return printed(console)


def say_differences(console: Console, changes: RunChanges) -> None:
    """Print what differs between the runs besides their figures."""
    if changes.differences:
        say(console, "differs:")
    for difference in changes.differences:
        say(console, f"  {difference.text}", indent="      ")


def _columns(changes: RunChanges) -> list[Column[CellChange]]:
    def figure(column: str, text: Callable[[Any], str]) -> Callable[[CellChange], str]:
        def of(one: CellChange) -> str:
            change = one.figure(column)
            return NOT_AVAILABLE if change is None else text(change)

        return of

    has_loads = any(one.load for one in changes.cells)
    first = THROUGHPUT
    return [
        Column("lock", lambda one: one.lock, left=True, is_kept=True),
        *([Column("load", lambda one: one.load, left=True, is_kept=True)] if has_loads else []),
        Column("effect", cell_effect, left=True, is_kept=True),
        Column("old grants/s", figure(first, lambda change: written(change, change.old))),
        Column("new grants/s", figure(first, lambda change: written(change, change.new))),
        Column("ratio [interval]", figure(first, ratio_text)),
        *(
            Column(one.title, figure(one.column, short_ratio), left=True)
            for one in changes.figures
            if one.column != first
        ),
    ]
