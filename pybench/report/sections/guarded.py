"""The guarded resources of a run: what the works left in them, beside what their holders believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.analysis.guard_words import belief_and_effects
from pybench.analysis.verdicts import COUNTS, Counts, terms_of
from pybench.columns import EFFECT_COLUMNS
from pybench.formats import Format
from pybench.matrix.guards import recorded_guard
from pybench.numbers import plural
from pybench.report.charts.grid import cell_table, datum
from pybench.report.html import fill
from pybench.report.section import DataTable, Datum, Section
from pybench.report.view import CellView, View

if TYPE_CHECKING:
    import pandas as pd

TITLES = {
    "acknowledged_writes": "writes",
    "lost_updates": "lost updates",
    "oversold": "oversold",
    "sum_error": "wrong sum",
    "sold_out": "sold out",
    "stale_writes": "stale, refused",
    "stale_writes_accepted": "stale, accepted",
    "refused_writes": "refused by constraint",
    "unknown_writes": "without a reply",
    "abandoned_works": "abandoned",
}
ALWAYS = ("acknowledged_writes", "lost_updates")
NOTE = (
    "Sums over all trials, warm-up included. Writes: acknowledged ones. Lost updates: acknowledged writes that the "
    "final values lack. Oversold: how far stocks are below 0. Sold out: works that found nothing left. Stale: writes "
    "whose fence was lower than one before. Abandoned: works that wrote nothing, because of an error, a missing reply "
    "or the end of the lease. A key with a write without a reply is judged only as far as that write allows."
)


def render(view: View) -> Section | None:
    """A row for each cell with guarded works; None in a run without any."""
    table = figures_table(view)
    if table is None:
        return None
    guards = dict.fromkeys(str(cell.row["guard"]) for cell in view.cells if has_guard(cell))
    kinds = next(iter(guards)) if len(guards) == 1 else plural(len(guards), "kind")
    lede = (
        f"Each work read, thought and wrote a shared resource while its client held the lock ({kinds}). The values "
        "that the works left are judged beside the beliefs of the holders."
    )
    return Section(
        "guard", "The guarded work", fill("guarded.html", lede=lede, table=table, said=said(view), note=NOTE)
    )


def has_guard(cell: CellView) -> bool:
    """Whether the works of `cell` were guarded."""
    return bool(recorded_guard(cell.row.get("guard")))


def figures_table(view: View) -> DataTable | None:
    """The effects in the cells with a guard; None without any."""
    found = {cell.id: _sums(_trials(view, cell)) for cell in view.cells if has_guard(cell)}
    if not found:
        return None
    names = [name for name in TITLES if name in ALWAYS or any(sums.get(name) for sums in found.values())]

    def figures(cell: CellView) -> list[Datum] | None:
        sums = found.get(cell.id)
        return None if sums is None else [datum(sums.get(name), Format.COUNT.text) for name in names]

    return cell_table(view, "What the guarded works left", [TITLES[name] for name in names], figures)


def said(view: View) -> list[tuple[int, str]]:
    """A sentence for each cell whose beliefs and effects disagree, with the index of the cell."""
    sentences = []
    for cell in view.cells:
        if has_guard(cell):
            trials = _trials(view, cell)
            terms = terms_of(trials)
            clause = "" if terms.by_effects else belief_and_effects(_sums(trials), terms.guard)
            if clause:
                sentences.append((cell.index, f"{cell.name}: {clause}."))
    return sentences


def _trials(view: View, cell: CellView) -> pd.DataFrame:
    trials = view.run.trials
    return trials[trials["cell"] == cell.id]


def _sums(trials: pd.DataFrame) -> Counts:
    """The counts of a cell; None where no trial knows the count, and where a final value is missing in any trial."""
    names = [name for name in (*COUNTS, *EFFECT_COLUMNS) if name in trials]
    sums = {name: None if trials[name].isna().all() else int(trials[name].sum()) for name in names}
    return {**sums, "final_value": None if trials["final_value"].isna().any() else sums["final_value"]}
