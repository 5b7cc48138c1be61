"""The comparison of two runs as a page: the answer, what differs, a table, and the charts of both runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from pybench.numbers import NOT_AVAILABLE
from pybench.report import run_facts
from pybench.report.both_runs import SIDES, both
from pybench.report.changes_words import about, cell_effect, notes, ratio_text, turn_sentence, written
from pybench.report.html import fill
from pybench.report.page import Head, assemble, rendered_charts
from pybench.report.section import Section

if TYPE_CHECKING:
    from pybench.analysis.between_runs import CellChange, RunChanges
    from pybench.records import Run
    from pybench.report.view import View


def build(changes: RunChanges, old: Run, new: Run) -> str:
    """The whole page."""
    view = both(changes, old, new)
    answer = Markup(fill("changes.html", changes=changes, turns=[(one, turn_sentence(one)) for one in changes.turns]))
    return assemble(
        view,
        Head(f"{run_facts.run_name(new.manifest)}, compared", run_facts.when(new.manifest), ""),
        Section("answer", "What changed", answer),
        before=[settings(changes, old, new), Section("cells", "Cell by cell", table(changes, view), nav="Cells")],
        charts=rendered_charts(view),
        after=[],
    )


def settings(changes: RunChanges, old: Run, new: Run, names: tuple[str, str] = SIDES) -> Section:
    """The two runs, and what differs between them."""
    filled = fill("changes_settings.html", changes=changes, old=about(old), new=about(new), names=names)
    return Section("settings", "The two runs", Markup(filled), nav="Runs")


def table(changes: RunChanges, view: View) -> Markup:
    """All figures of each cell. `view` is that of both runs, whose filter hides rows too."""
    indexes = cell_indexes(view)
    return Markup(
        fill(
            "changes_table.html",
            rows=[_row(one) | {"cells": indexes.get(one.new_cell, [])} for one in changes.cells],
            titles=[figure.title for figure in changes.figures],
            has_loads=any(one.load for one in changes.cells),
            notes=notes(changes),
        )
    )


def cell_indexes(view: View) -> dict[str, list[int]]:
    """Where each cell of the new run stands in a view of both runs, on either side."""
    indexes: dict[str, list[int]] = {}
    for cell in view.cells:
        # An id in both runs is that of the new run behind the name of its side.
        indexes.setdefault(cell.id.partition(": ")[2], []).append(cell.index)
    return indexes


def _row(one: CellChange) -> dict[str, object]:
    return {
        "change": one,
        "effect": cell_effect(one),
        "tone": "" if one.effect is None else one.effect.name.lower(),
        "figures": [
            {
                "values": f"{old} → {new}",
                "ratio": ratio_text(change),
                # A figure that neither run has is n/a, and nothing more.
                "effect": "" if old == new == NOT_AVAILABLE else change.effect.value,
                "sort": "" if change.ratio is None else change.ratio.value,
                "tone": change.effect.name.lower(),
            }
            for change in one.figures
            for old, new in [(written(change, change.old), written(change, change.new))]
        ],
    }
