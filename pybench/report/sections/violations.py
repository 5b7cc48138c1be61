"""Every kind of violation that was seen: the first few of each cell, as a sentence and a drawing."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from pybench.matrix.conditions import say_conditions
from pybench.report.html import fill
from pybench.report.section import Section
from pybench.report.view import CellView, View
from pybench.report.violation_drawing import draw

SHOWN_PER_CELL = 3
# Cells that stand open, and cells that are shown at all: the rest is in `violations.jsonl`.
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
    """The violations of a cell: `total` counts all, `kept` those that the record has in full."""

    cell: CellView
    where: str
    total: int
    kept: int
    shown: list[Shown]


def render(view: View) -> Section | None:
    """The violations, grouped by cell; None when nothing was seen and no cell can have hidden any."""
    if not view.cells:
        return None
    found = groups(view)
    html = fill(
        "violations.html",
        groups=found[:SHOWN_CELLS],
        left_out=len(found) - SHOWN_CELLS,
        open=OPEN_CELLS,
        cells=len(view.cells),
    )
    return Section("violations", "Violations", html)


def groups(view: View) -> list[Group]:
    """Cells with violations: those whose strategy is not `none` first, for they surprise; then as the run has them."""
    recorded = view.run.violations
    found = []
    for cell in sorted(view.cells, key=lambda cell: cell.series.strategy == "none"):
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
