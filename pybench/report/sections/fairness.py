"""How evenly clients were served: Jain's index, and the longest wait."""

from __future__ import annotations

from pybench.analysis.comparison.entrants import offered_clients
from pybench.columns import COLUMNS
from pybench.matrix.conditions import say_conditions
from pybench.report.charts.curves import Measure, over_trials
from pybench.report.charts.grid import Charts, bars, charts_section, measure_figures, measure_table
from pybench.report.section import Section
from pybench.report.trial_figures import INVERSIONS
from pybench.report.view import View

JAIN = over_trials(Measure("jain", "jain", "Jain's index", "index, 0 to 1", top=1.0))
LONGEST_WAIT = over_trials(Measure("wait", "longest_wait_us", "longest wait", "wait", scale="log"))
TABLE_ONLY = [
    Measure("spread", "wait_std_us", "wait, standard deviation", "wait"),
    Measure("streak", "longest_streak", "longest streak of one client", "grants"),
    Measure("overtakes", "overtakes", "overtakes", "overtakes"),
]
QUEUES_ONLY = Measure("inversions", INVERSIONS, "FIFO inversions, warm-up too", "inversions")


def render(view: View) -> Section:
    """Jain's index and the longest wait of every cell."""
    shared = [cell for cell in view.cells if not cell.unsafe and cell.number("jain") is not None]
    least = min(shared, key=lambda cell: cell.number("jain") or 0.0, default=None)
    lede = "Jain's index over clients is 1 when all got the same number of grants, and 1/n when one of n got them all."
    if least is not None and (least.number("jain") or 0) < 0.95:
        where = say_conditions(least.conditions)
        lede += f" The lowest index is {JAIN.text(least.number('jain'))}, of {least.series.label}"
        lede += f"{f' with {where}' if where else ''}."
    if any(offered_clients(cell.row) < cell.row["concurrency"] for cell in view.cells):
        lede += " With stages, clients that come late get fewer grants, which lowers the index of every lock."
    lede += bars(view)
    lede += " The point of a longest wait is the longest of all trials." if bars(view) else ""
    lede += _order(view)
    measures = [JAIN, LONGEST_WAIT]
    # Most runs have no lock with a queue, so that the column would be empty.
    behind = TABLE_ONLY + [QUEUES_ONLY] * any(cell.number(INVERSIONS) is not None for cell in view.cells)
    charts = Charts(
        id="fairness",
        title="Fairness",
        lede=lede,
        figures=measure_figures(view, measures, "fairness"),
        columns=2,
        tables=[measure_table(view, measures + behind, "Fairness")],
    )
    return charts_section(charts)


def _order(view: View) -> str:
    """How often each lock with a queue served out of order, in its worst cell, as a sentence to append."""
    most: dict[str, float] = {}
    for cell in view.cells:
        inversions = cell.number(INVERSIONS)
        if inversions is not None:
            most[cell.series.label] = max(inversions, most.get(cell.series.label, 0.0))
    if not most:
        return ""
    text = COLUMNS["fifo_inversions"].format.text
    counted = ", ".join(f"{label} {text(inversions)}" for label, inversions in most.items())
    return (
        " A FIFO inversion is a grant that passes over a client whose place in the queue is earlier. Inversions per "
        f"trial, in the cell with the most: {counted}."
    )
