"""The comparison of two runs as a page: the answer, what differs, a table, and the charts of both runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from pybench.report import run_facts
from pybench.report.both_runs import SIDES, both
from pybench.report.changes_words import about, cell_effect, notes, ratio_text, turn_sentence, written
from pybench.report.html import fill
from pybench.report.page import Head, assemble, rendered_charts
from pybench.report.section import Section

if TYPE_CHECKING:
    from pybench.analysis.between_runs import CellChange, RunChanges
    from pybench.records import Run


def build(changes: RunChanges, old: Run, new: Run) -> str:
    """The whole page."""
    view = both(changes, old, new)
    answer = Markup(fill("changes.html", changes=changes, turns=[(one, turn_sentence(one)) for one in changes.turns]))
    return assemble(
        view,
        Head(f"{run_facts.run_name(new.manifest)}, compared", run_facts.when(new.manifest), ""),
        Section("answer", "What changed", answer),
        before=[settings(changes, old, new), Section("cells", "Cell by cell", table(changes), nav="Cells")],
        charts=rendered_charts(view),
        after=[],
    )


def settings(changes: RunChanges, old: Run, new: Run, names: tuple[str, str] = SIDES) -> Section:
    """The two runs, and what differs between them."""
    filled = fill("changes_settings.html", changes=changes, old=about(old), new=about(new), names=names)
    return Section("settings", "The two runs", Markup(filled), nav="Runs")


def table(changes: RunChanges) -> Markup:
    """All figures of each cell."""
    return Markup(
        fill(
            "changes_table.html",
            rows=[_row(one) for one in changes.cells],
            titles=[figure.title for figure in changes.figures],
            has_loads=any(one.load for one in changes.cells),
            notes=notes(changes),
        )
    )


def _row(one: CellChange) -> dict[str, object]:
    return {
        "change": one,
        "effect": cell_effect(one),
        "tone": "" if one.effect is None else one.effect.name.lower(),
        "figures": [
            {
                "values": f"{written(change, change.old)} → {written(change, change.new)}",
                "ratio": ratio_text(change),
                "effect": change.effect.value,
                "sort": "" if change.ratio is None else change.ratio.value,
                "tone": change.effect.name.lower(),
            }
            for change in one.figures
        ],
    }
