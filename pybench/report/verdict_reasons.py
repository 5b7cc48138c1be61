"""Why a cell, or the cells of a strategy, have their verdict: in words, from what their trials counted."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from pybench.analysis.assumptions import NOT_CONTENDED, badges
from pybench.analysis.verdicts import Verdict, controls_caught, counts_of, judge_cell, terms_of
from pybench.matrix.conditions import say_conditions
from pybench.report.view import CellView, View
from pybench.strategies import Exclusion


def reasons(view: View) -> dict[str, str]:
    """The reason for the verdict of each cell, by the cell's id: "0 violations in 51,204 contended grants, ..."."""
    groups = dict(iter(view.run.trials.groupby("cell", sort=False)))
    caught = controls_caught(view.run.manifest["control"])
    return {
        cell.id: _reason(groups[cell.id], caught=caught) + _stands_on(cell) + _elsewhere(view, cell)
        for cell in view.cells
    }


@dataclass(frozen=True, slots=True)
class Remark:
    """Why cells of one strategy are not safe. `where` is empty when the strategy has no other cell."""

    verdict: str
    label: str
    where: str
    """Which cells: "in 4 of 6 cells", "with 16 clients, 1 key"."""
    reason: str

    @property
    def subject(self) -> str:
        """The strategy and where: "none in 4 of 6 cells"."""
        return f"{self.label} {self.where}" if self.where else self.label


def remarks(view: View) -> list[Remark]:
    """One for all cells of a strategy that are unsafe, or undecided, for the same reason; what is unsafe first."""
    alike: dict[tuple[str, str, str], list[CellView]] = {}
    for cell in view.cells:
        if cell.verdict in (Verdict.UNSAFE, Verdict.UNDECIDED):
            reason = _reason(_trials(view, [cell]))
            # Cells differ in what was counted, and are alike in what it means.
            meaning = reason.partition("; ")[2] if cell.unsafe else reason
            alike.setdefault((cell.verdict, cell.series.label, meaning), []).append(cell)
    found = [
        Remark(verdict, label, _where(view, cells), _shared_reason(view, cells) + _elsewhere(view, cells[0]))
        for (verdict, label, _), cells in alike.items()
    ]
    return sorted(found, key=lambda remark: remark.verdict != Verdict.UNSAFE)


def _shared_reason(view: View, cells: list[CellView]) -> str:
    """The violations of unsafe cells together; undecided ones have the same reason each, and no other together."""
    return _reason(_trials(view, cells if cells[0].unsafe else cells[:1]))


def _where(view: View, cells: list[CellView]) -> str:
    of = sum(cell.series == cells[0].series for cell in view.cells)
    if of == 1:
        return ""
    return f"with {say_conditions(cells[0].conditions)}" if len(cells) == 1 else f"in {len(cells)} of {of} cells"


def _trials(view: View, cells: list[CellView]) -> pd.DataFrame:
    trials = view.run.trials
    return trials[trials["cell"].isin([cell.id for cell in cells])]


def _reason(trials: pd.DataFrame, *, caught: bool = True) -> str:
    totals = counts_of(trials)
    terms = terms_of(trials)
    judgement = judge_cell(trials, control_caught=caught)
    if judgement.verdict is not Verdict.UNSAFE:
        cut_off = totals["grants"] == 0 and (trials["status"] != "complete").all()
        return "it was interrupted before it was granted anything" if caught and cut_off else judgement.reason
    if judgement.promise_broken:
        return f"{judgement.reason}; this breaks what it promises"
    if terms.exclusion is Exclusion.NOTHING:
        return f"{judgement.reason}; it promises nothing"
    return f"{judgement.reason}; outside of what it promises"


def _stands_on(cell: CellView) -> str:
    """What SAFE stands on; that nothing was contended stands in the reason itself."""
    return "".join(f"; {badge}" for badge in badges(cell.row) if badge != NOT_CONTENDED)


def _elsewhere(view: View, cell: CellView) -> str:
    return "; unsafe at another load" if cell.series.label in view.unsafe_series and not cell.unsafe else ""
