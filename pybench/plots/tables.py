"""The figures of a picture as a table for reading, beside the verdict of each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from pybench.analysis import assumptions
from pybench.analysis.comparison.entrants import BASE_LINE
from pybench.matrix.conditions import axis_title, condition_value
from pybench.numbers import plural
from pybench.plots import measures, picture
from pybench.plots.selection import chosen
from pybench.report import changes_words
from pybench.report.view import make_view

if TYPE_CHECKING:
    from pybench.records import Run


def about(run: Run) -> str:
    """The run in one sentence: its size, its servers, and when it was measured."""
    locks = run.summary[["strategy", "args"]].drop_duplicates()
    trials = f"{plural(int(run.summary['trials'].min()), 'trial')} of each"
    return f"{plural(len(run.summary), 'cell')} of {plural(len(locks), 'lock')}, {trials}: {changes_words.about(run)}."


def names(run: Run, where: str | None = None) -> dict[str, str]:
    """The id of each cell with its name in pictures: the lock, and the conditions in which these cells differ."""
    selection = chosen(run, where)
    return {cell.id: selection.name(cell) for cell in selection.cells}


def say(run: Run, column: str, cell: str) -> str:
    """A figure of a cell in words, with its unit, and with its verdict where it is not SAFE."""
    (view,) = chosen(run, f"cell == {cell!r}").cells
    text = measures.value_of(view, measures.measure_of(column)).text
    return text if view.verdict == "SAFE" else f"{text} ({view.verdict})"


def caveats(run: Run) -> dict[str, str]:
    """Each lock with the events after which two clients may hold it, although it was SAFE in the run."""
    found = {}
    for cell in make_view(run).cells:
        known = assumptions.entry_of(cell.row)
        if known is not None and cell.series.strategy != BASE_LINE:
            found[cell.series.label] = assumptions.would_not_survive(*known)
    return {label: text for label, text in found.items() if text}


def table(run: Run, *columns: str, where: str | None = None) -> pd.DataFrame:
    """Columns of the summary as texts with units: a row for each cell, with its lock and its verdict."""
    selection = chosen(run, where)
    shown = [measures.measure_of(column) for column in columns]
    rows = []
    for cell in selection.cells:
        row = {"lock": cell.series.label}
        row |= {axis_title(axis): condition_value(axis, cell.condition(axis)) for axis in selection.axes}
        row["verdict"] = picture.verdict_text(cell)
        row |= {measure.title: measures.value_of(cell, measure).text for measure in shown}
        rows.append(row)
    return pd.DataFrame(rows).set_index("lock")
