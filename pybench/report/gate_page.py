"""The answer of a gate as a page: the answer, each cell, what differs, and the charts of both sides side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from pybench.analysis.gating import Finding
from pybench.report import changes_page, gate_words, run_facts
from pybench.report.both_runs import both
from pybench.report.html import fill
from pybench.report.page import Head, assemble, rendered_charts
from pybench.report.section import Section

if TYPE_CHECKING:
    from pybench.analysis.between_runs.gate_answer import GateAnswer, GateCell
    from pybench.analysis.gating import Judged
    from pybench.records import Run

NAMES = ("base", "head")
TITLES = ("head / base", "confirming round", "slower by at most", "noise", "base", "head")


def build(answer: GateAnswer, base: Run, head: Run) -> str:
    """The whole page."""
    changes = answer.changes
    view = both(changes, base, head, NAMES)
    sentences = [gate_words.sentence(one) for one in answer.regressions]
    first = Section("answer", "The answer", Markup(fill("gate.html", answer=answer, sentences=sentences)))
    indexes = changes_page.cell_indexes(view)
    cells = Markup(
        fill(
            "gate_table.html",
            rows=[_row(one) | {"cells": indexes.get(one.change.new_cell, [])} for one in answer.cells],
            titles=TITLES,
            has_loads=any(one.change.load for one in answer.cells),
            notes=gate_words.notes(answer),
        )
    )
    return assemble(
        view,
        Head(f"{run_facts.run_name(head.manifest)}, gated", run_facts.when(head.manifest), ""),
        first,
        before=[
            Section("gate", "Cell by cell", cells, nav="Gate"),
            changes_page.settings(changes, base, head, NAMES),
            Section("cells", "All figures", changes_page.table(changes, view), nav="Figures"),
        ],
        charts=rendered_charts(view),
        after=[],
    )


def _row(one: GateCell) -> dict[str, object]:
    change = one.change.figure(one.change.deciding)
    base, head = gate_words.values(one)
    title = gate_words.title(one)
    return {
        "change": one.change,
        "result": one.word,
        "tone": _tone(one),
        "figures": [
            (gate_words.interval(one.first), _ratio(one.first)),
            (gate_words.interval(one.second), _ratio(one.second)),
            (gate_words.excluded(one.first), "" if one.first is None else one.first.excluded),
            (gate_words.noise(one.first), "" if one.first is None else one.first.noise),
            (f"{base} {title}", "" if change is None else change.old),
            (f"{head} {title}", "" if change is None else change.new),
        ],
    }


def _ratio(judged: Judged | None) -> float | str:
    return "" if judged is None else judged.ratio.value


def _tone(one: GateCell) -> str:
    if one.is_regression:
        return "slower"
    return {Finding.FASTER: "faster", Finding.SAME: "same"}.get(one.finding or Finding.UNKNOWN, "unknown")
