"""Why a cell has its verdict, in words, from what its trials counted."""

from __future__ import annotations

import pandas as pd

from pybench.strategies import Exclusion
from pybench.verdicts import controls_caught, judge
from pybench.report.view import CellView, View

_COUNTS = ("grants", "contended_grants", "double_grants", "double_grants_after_overrun", "lease_overruns")


def reasons(view: View) -> dict[str, str]:
    """The reason for the verdict of each cell, by the cell's id: "0 violations in 51,204 contended grants, ..."."""
    caught = controls_caught(view.run.manifest["control"])
    return {cell.id: _reason(cell, view.run.trials, caught=caught) for cell in view.cells}


def _reason(cell: CellView, trials: pd.DataFrame, *, caught: bool) -> str:
    rows = trials[trials["cell"] == cell.id]
    totals = {column: int(rows[column].sum()) for column in _COUNTS}
    exclusion = Exclusion(str(rows["exclusion"].iloc[0]))
    judgement = judge(totals, exclusion, control_caught=caught)
    if not cell.unsafe:
        return judgement.reason
    match exclusion:
        case Exclusion.NOTHING:
            return f"{judgement.reason}; it promises nothing"
        case _ if judgement.promise_broken:
            return f"{judgement.reason}; this breaks what it promises"
        case _:
            return f"{judgement.reason}; outside of what it promises"
