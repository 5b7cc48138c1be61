"""Why a cell, or the cells of a lock, have their verdict: in words, from what their trials counted.

Overlaps of a lock that promises nothing are no fault of it. They prove that the checker detects overlaps, and say so.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from pybench.analysis.assumptions import HEALTHY, NOT_CONTENDED, badges, entry_of, servers_of
from pybench.analysis.comparison.entrants import BASE_LINE
from pybench.analysis.fault_promises import unpromised
from pybench.analysis.verdicts import Verdict, controls_caught, counts_of, judge_cell, terms_of
from pybench.matrix.conditions import say_conditions
from pybench.report.rules import promises_nothing
from pybench.report.view import CellView, View
from pybench.strategies import Lease


def reasons(view: View) -> dict[str, str]:
    """The reason for the verdict of each cell, by its id: "0 violations in 51,204 contended grants"."""
    caught = controls_caught(view.run.manifest["control"])
    return {
        cell.id: _reason(view.trials_by_cell[cell.id], caught=caught) + _stands_on(cell) + _elsewhere(view, cell)
        for cell in view.cells
    }


@dataclass(frozen=True, slots=True)
class Remark:
    """Why cells of one lock are not safe. `where` is empty when the lock has no other cell."""

    verdict: str
    label: str
    where: str
    """Which cells: "in 4 of 6 cells", "with 16 clients, 1 key"."""
    reason: str
    is_evidence: bool = False
    """Whether the lock promises nothing, so that its violations show that the checker works, and no fault."""

    @property
    def subject(self) -> str:
        """The lock and where: "naive in 4 of 6 cells"."""
        return f"{self.label} {self.where}" if self.where else self.label

    @property
    def sentence(self) -> str:
        """The whole remark: "naive in 4 of 6 cells: 12 double grants; this breaks its promise"."""
        return f"{self.subject}: {self.reason}"


def remarks(view: View) -> list[Remark]:
    """One for all cells of a lock that are unsafe, or undecided, for the same reason; broken promises first."""
    alike: dict[tuple[str, str, str], list[CellView]] = {}
    for cell in view.cells:
        if cell.verdict in (Verdict.UNSAFE, Verdict.UNDECIDED):
            reason = _reason(_trials(view, [cell]))
            # Cells of one remark have different counts, and the same meaning after the semicolon.
            meaning = reason.partition("; ")[2] if cell.unsafe else reason
            alike.setdefault((cell.verdict, cell.series.label, meaning), []).append(cell)
    found = [
        Remark(
            verdict,
            label,
            _where(view, cells),
            _shared_reason(view, cells) + _elsewhere(view, cells[0]),
            is_evidence=_is_evidence(view, cells),
        )
        for (verdict, label, _), cells in alike.items()
    ]
    return sorted(found, key=lambda remark: (remark.is_evidence, remark.verdict != Verdict.UNSAFE))


def unsafe_and_evidence(view: View) -> tuple[list[Remark], list[Remark]]:
    """The remarks about unsafe locks that promise exclusion, and those that show that the checker works."""
    unsafe = [remark for remark in remarks(view) if remark.verdict == Verdict.UNSAFE]
    return [one for one in unsafe if not one.is_evidence], [one for one in unsafe if one.is_evidence]


def _is_evidence(view: View, cells: list[CellView]) -> bool:
    unexpected = any(cell.breaks_exclusion for cell in cells) or bool(_trials(view, cells)["promise_broken"].any())
    return cells[0].unsafe and not unexpected


def _shared_reason(view: View, cells: list[CellView]) -> str:
    """The violations of unsafe cells added up; undecided cells of one remark all have the same reason."""
    if not cells[0].unsafe:
        return _reason(_trials(view, cells[:1]))
    reason = _reason(_trials(view, cells))
    # A reason names the faults of the first cell. Those of the others may be different; the table names all.
    told = servers_of(cells[0].row)
    alike = all(servers_of(cell.row) == told for cell in cells)
    return reason if alike else reason.replace(f", {told}", "", 1)


def _where(view: View, cells: list[CellView]) -> str:
    of = sum(cell.series == cells[0].series for cell in view.cells)
    if of == 1:
        return ""
    return f"with {say_conditions(cells[0].conditions)}" if len(cells) == 1 else f"in {len(cells)} of {of} cells"


def _trials(view: View, cells: list[CellView]) -> pd.DataFrame:
    found = [view.trials_by_cell[cell.id] for cell in cells]
    return found[0] if len(found) == 1 else pd.concat(found)


def _reason(trials: pd.DataFrame, *, caught: bool = True) -> str:
    totals = counts_of(trials)
    judgement = judge_cell(trials, control_caught=caught, counts=totals)
    if judgement.verdict is not Verdict.UNSAFE:
        cut_off = totals["grants"] == 0 and (trials["status"] != "complete").all()
        return "it was interrupted before it was granted anything" if caught and cut_off else judgement.reason
    if judgement.promise_broken:
        return f"{judgement.reason}; this breaks its promise"
    row = {"strategy": trials["strategy"].iloc[0], "args": trials["args"].iloc[0]}
    if row["strategy"] == BASE_LINE:
        return f"{judgement.reason}; {BASE_LINE} takes no lock, so this shows that the checker detects overlaps"
    if promises_nothing(row):
        return f"{judgement.reason}; this lock promises no exclusion, so overlaps break no promise"
    if excuse := terms_of(trials).under.excuse:
        return f"{judgement.reason}; {excuse}, so this breaks no promise"
    if totals["lease_overruns"] and not totals["double_grants_after_overrun"]:
        known = entry_of(row)
        has_lease = known is None or known[0].lease is not Lease.NONE
        late = "work outlived the ttl" if has_lease else "holders worked on after they had lost their session"
        return f"{judgement.reason}; {late}, which is not a fault of the lock"
    return f"{judgement.reason}; the lock does not promise to prevent this"


def _stands_on(cell: CellView) -> str:
    """What SAFE depends on. The reason itself names faults, and says where no grant was contended."""
    told = {NOT_CONTENDED} | ({servers} if (servers := servers_of(cell.row)) != HEALTHY else set())
    found = badges(cell.row)
    untold = [badge for badge in found if badge not in told]
    return "".join(f"; {one}" for one in (*untold, unpromised(cell.row) if found else "") if one)


def _elsewhere(view: View, cell: CellView) -> str:
    return "; unsafe at another load" if cell.series.label in view.unsafe_series and not cell.unsafe else ""
