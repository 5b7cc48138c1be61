"""Why a cell, or a strategy over all its cells, has its verdict: in words, from what its trials counted."""

from __future__ import annotations

import pandas as pd

from pybench.report.view import CellView, Series, View
from pybench.strategies import Exclusion
from pybench.verdicts import Verdict, controls_caught, judge

_COUNTS = ("grants", "contended_grants", "double_grants", "double_grants_after_overrun", "lease_overruns")


def reasons(view: View) -> dict[str, str]:
    """The reason for the verdict of each cell, by the cell's id: "0 violations in 51,204 contended grants, ..."."""
    groups = dict(iter(view.run.trials.groupby("cell", sort=False)))
    caught = controls_caught(view.run.manifest["control"])
    return {cell.id: _reason(groups[cell.id], caught=caught) + _elsewhere(view, cell) for cell in view.cells}


def series_reason(view: View, series: Series) -> str:
    """What was seen of a strategy over all its cells."""
    cells = [cell.id for cell in view.cells if cell.series == series]
    trials = view.run.trials
    return _reason(trials[trials["cell"].isin(cells)], caught=controls_caught(view.run.manifest["control"]))


def _reason(trials: pd.DataFrame, *, caught: bool) -> str:
    totals = {column: int(trials[column].sum()) for column in _COUNTS}
    exclusion = Exclusion(str(trials["exclusion"].iloc[0]))
    judgement = judge(totals, exclusion, control_caught=caught)
    if judgement.verdict is not Verdict.UNSAFE:
        return judgement.reason
    if judgement.promise_broken:
        return f"{judgement.reason}; this breaks what it promises"
    if exclusion is Exclusion.NOTHING:
        return f"{judgement.reason}; it promises nothing"
    return f"{judgement.reason}; outside of what it promises"


def _elsewhere(view: View, cell: CellView) -> str:
    return "; unsafe at another load" if cell.series.label in view.unsafe_series and not cell.unsafe else ""
