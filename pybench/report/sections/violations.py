"""The violations: the first few of each cell, each as a sentence and a drawing.

Violations of locks that promise nothing come last, as evidence that the checker works.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from pybench.matrix.conditions import say_conditions
from pybench.report.html import fill
from pybench.report.rules import promises_nothing
from pybench.report.section import Section
from pybench.report.view import CellView, View
from pybench.report.violation_drawing import draw

SHOWN_PER_CELL = 3
# Cells that are unfolded, and cells that are shown at all: `violations.jsonl` has the others.
OPEN_CELLS = 1
SHOWN_CELLS = 40


@dataclass(frozen=True, slots=True)
class Shown:
    """One violation."""

    trial: int
    sentence: str
    drawing: Markup


@dataclass(frozen=True, slots=True)
class Group:
    """The violations of a cell: `total` counts all, `kept` those that the record holds in full."""

    cell: CellView
    where: str
    total: int
    kept: int
    shown: list[Shown]


def render(view: View) -> Section | None:
    """The violations, grouped by cell; None in a run without cells."""
    if not view.cells:
        return None
    found = groups(view)
    shown = found[:SHOWN_CELLS]
    html = fill(
        "violations.html",
        broken=[group for group in shown if group.cell.breaks_exclusion],
        evidence=[group for group in shown if not group.cell.breaks_exclusion],
        left_out=len(found) - SHOWN_CELLS,
        open=OPEN_CELLS,
        cells=sum(not promises_nothing(cell.row) for cell in view.cells),
    )
    return Section("violations", "Violations", html)


def groups(view: View) -> list[Group]:
    """Cells with violations: those of locks that promise exclusion first, then in the order of the run."""
    recorded = view.run.violations
    found = []
    for cell in sorted(view.cells, key=lambda cell: promises_nothing(cell.row)):
        total = int(cell.number("violations") or 0)
        if not total:
            continue
        rows = [
            {str(name): value for name, value in row.items()}
            for row in recorded[recorded["cell"] == cell.id].to_dict("records")
        ]
        shown = [Shown(int(row["trial"]), str(row["sentence"]), Markup(draw(row))) for row in rows[:SHOWN_PER_CELL]]
        found.append(Group(cell, say_conditions(cell.conditions), total, len(rows), shown))
    return found
