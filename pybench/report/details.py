"""Which cells of a run are shown in detail: charts of single clients, commands and servers."""

from __future__ import annotations

from collections.abc import Container

import pandas as pd

from pybench.matrix.conditions import say_conditions
from pybench.report.contests import hardest_load
from pybench.report.view import CellView, View

MOST_CELLS = 50
"""A run with more cells shows only those of one load in detail, so that its page stays small."""


def detailed(view: View) -> list[CellView]:
    """All cells of `view`, or of many cells those at the load that the answer shows, as far as they fit."""
    if len(view.cells) <= MOST_CELLS:
        return list(view.cells)
    load = hardest_load(view)
    ids = {one.cell for one in load.standings} if load is not None else {cell.id for cell in view.cells}
    return [cell for cell in view.cells if cell.id in ids][:MOST_CELLS]


def only_some(view: View) -> str:
    """A sentence to append where `detailed` leaves cells out; empty otherwise."""
    shown = len(detailed(view))
    return f" Of {len(view.cells):,} cells, the {shown} of one load are shown." if shown < len(view.cells) else ""


def panels(view: View, ids: Container[str]) -> list[tuple[str, list[CellView]]]:
    """The cells of each chart, those with these ids, with the title of the chart in words."""
    shown = ((conditions, [cell for cell in cells if cell.id in ids]) for conditions, cells in view.panels())
    return [(say_conditions(conditions), cells) for conditions, cells in shown if cells]


def of_complete_trials(view: View, rows: pd.DataFrame) -> pd.DataFrame:
    """Those `rows` of single clients, servers or steps that belong to a complete trial."""
    trials = view.run.trials
    return rows.merge(trials.loc[trials["status"] == "complete", ["cell", "trial"]], on=["cell", "trial"])
