"""What changed from one run to another: verdicts, then figures, and what else differs between the runs.

Promises: a lock that became unsafe is a regression, whatever its speed. Figures of a cell that is unsafe or void in
either run are not compared.
Does not do: an exit code; the answer is for people, and a gate measures both sides in one job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from pybench.analysis.between_runs.figures import (
    FIGURES,
    LIMIT,
    RESPONSE,
    THROUGHPUT,
    ComparedFigure,
    Effect,
    FigureChange,
    change_figures,
)
from pybench.analysis.between_runs.matching import Row, match_cells
from pybench.analysis.between_runs.settings import Difference, differences
from pybench.analysis.comparison.claims import axis_value
from pybench.analysis.comparison.entrants import load_axes, lock_labels, lock_name, set_by_stages
from pybench.analysis.stats import number
from pybench.analysis.verdicts import Verdict, broken_cells
from pybench.matrix.conditions import say_conditions
from pybench.matrix.search_modes import recorded_mode
from pybench.numbers import missing, plural

if TYPE_CHECKING:
    import pandas as pd

    from pybench.analysis.significance import Ratio


class Recorded(Protocol):
    """A run: `records.Run`."""

    @property
    def manifest(self) -> dict[str, Any]:
        """What was run, and on what."""

    @property
    def summary(self) -> pd.DataFrame:
        """A row a cell."""

    @property
    def trials(self) -> pd.DataFrame:
        """A row a trial."""


class Turn(StrEnum):
    """What became of a verdict."""

    REGRESSION = "regression"
    """The lock is unsafe now and was not, or breaks a promise now that it kept."""
    FIXED = "fixed"
    """The lock was unsafe, and is safe now."""
    LOST = "no longer proved"
    """The lock was safe, and the new run proves it no more."""
    PROVED = "now proved"
    """The lock is safe now, and the old run did not prove it."""
    OTHER = "changed"
    """Another change, in which no lock became safe or unsafe."""


BASE = "base"
"""The side of a gate that its head is compared with."""
_COMPARED = (Verdict.SAFE, Verdict.UNDECIDED)


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell in both runs."""

    lock: str
    load: str
    """The axes that vary over the compared cells, in words; empty where none does."""
    old_cell: str
    new_cell: str
    old_verdict: Verdict
    new_verdict: Verdict
    turn: Turn | None
    """None where the verdict is the same."""
    effect: Effect | None
    """The effect on the figure that decides: grants/s in a closed loop, p99 in an open one, the limit of a search.
    None: not compared."""
    figures: tuple[FigureChange, ...]
    """Empty where the figures are not compared."""
    deciding: str = THROUGHPUT
    """The column of the figure that decides."""

    @property
    def name(self) -> str:
        """The lock with its load."""
        return f"{self.lock} with {self.load}" if self.load else self.lock

    def figure(self, column: str) -> FigureChange | None:
        """The change of one figure."""
        return next((one for one in self.figures if one.figure.column == column), None)


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The answer."""

    cells: tuple[CellChange, ...]
    """In the order of the new run."""
    differences: tuple[Difference, ...]
    only_old: tuple[str, ...]
    """The cells that only the old run has."""
    only_new: tuple[str, ...]
    figures: tuple[ComparedFigure, ...]
    """The figures of each compared cell; with the limit only where a cell has searched for it."""
    paired: bool = False
    """Whether both runs are sides of one gate, which measured them in turn: then their trials are pairs."""

    @property
    def turns(self) -> list[CellChange]:
        """The cells whose verdict changed, regressions first."""
        order = list(Turn)
        return sorted((one for one in self.cells if one.turn), key=lambda one: order.index(one.turn or Turn.OTHER))

    @property
    def headline(self) -> str:
        """One sentence: verdicts first."""
        worse = [one.name for one in self.turns if one.turn is Turn.REGRESSION]
        if worse:
            others = f" and {plural(len(worse) - 1, 'other cell')}" if len(worse) > 1 else ""
            return f"regression: {worse[0]}{others} became unsafe"
        if not self.cells:
            return "nothing to compare: no cell of the new run has the same lock and load as one of the old run"
        counts = Counter(one.effect for one in self.cells if one.effect is not None)
        words = {
            Effect.SLOWER: "slower",
            Effect.FASTER: "faster",
            Effect.SAME: "the same",
            Effect.UNKNOWN: "can't tell",
        }
        told = [f"{counts[effect]:,} {word}" for effect, word in words.items() if counts[effect]]
        skipped = len(self.cells) - counts.total()
        told += [f"{skipped:,} not compared"] if skipped else []
        changed = f"; {plural(len(self.turns), 'verdict')} changed" if self.turns else ""
        return f"of {plural(len(self.cells), 'cell')}: {', '.join(told)}{changed}"

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each figure of each cell, for pandas; a cell whose figures are not compared has one row without."""
        import pandas as pd

        return pd.DataFrame([row for cell in self.cells for row in _frame_rows(cell)], columns=list(_FRAME))

    def _repr_html_(self) -> str:
        """The headline and the figure that decides, for notebooks."""
        shown = self.frame.drop_duplicates("new_cell").drop(columns=["old_cell", "new_cell"])
        return f"<p>{escape(self.headline)}</p>{shown.to_html(index=False)}"


_FRAME = (
    *("lock", "load", "old_cell", "new_cell", "old_verdict", "new_verdict"),
    *("figure", "old", "new", "ratio", "low", "high", "effect"),
)


def _frame_rows(cell: CellChange) -> list[dict[str, Any]]:
    known = {name: getattr(cell, name) for name in _FRAME[:4]}
    known |= {"old_verdict": cell.old_verdict.value, "new_verdict": cell.new_verdict.value}
    if not cell.figures:
        return [known]
    return [
        {
            **known,
            "figure": one.figure.column,
            "old": one.old,
            "new": one.new,
            "effect": one.effect.value,
            **({name: getattr(one.ratio, name) for name in ("low", "high")} if one.ratio else {}),
            "ratio": one.ratio.value if one.ratio else None,
        }
        for one in cell.figures
    ]


def compare_runs(old: Recorded, new: Recorded, band: float | None = None) -> RunChanges:
    """Compare two runs. A `band` widens narrower equivalence bands to this share."""
    rows: list[list[Row]] = [list(run.summary.to_dict("records")) for run in (old, new)]
    job = job_of(old.manifest, new.manifest)
    matched = match_cells(rows[0], rows[1], (_kinds(old), _kinds(new)), job)
    newer = [row for _, row in matched.pairs]
    axes = _varied(newer)
    labels = lock_labels(newer) if newer else {}
    trials = [complete_trials(run) for run in (old, new)]
    compared: dict[Hashable, tuple[pd.DataFrame, pd.DataFrame]] = {}
    for before, after in matched.pairs:
        if {_verdict(before), _verdict(after)} <= set(_COMPARED):
            of_old, of_new = trials[0].get(str(before["cell"])), trials[1].get(str(after["cell"]))
            if of_old is not None and of_new is not None:
                compared[str(after["cell"])] = of_old, of_new
    tested = change_figures(compared, band, paired=job is not None)
    searched = any(recorded_mode(row.get("mode")).is_search for row in newer)
    compared_figures = tuple(figure for figure in FIGURES if searched or figure.column != LIMIT)
    broken = [broken_cells(run.trials) for run in (old, new)]
    cells = []
    for before, after in matched.pairs:
        cell = str(after["cell"])
        found = {figure: tested.get((cell, figure.column)) for figure in compared_figures} if cell in compared else None
        newly_broken = cell in broken[1] and str(before["cell"]) not in broken[0]
        label = _label(before, after, labels[cell])
        cells.append(_change(before, after, label, _load(after, axes), found, newly_broken=newly_broken))
    return RunChanges(
        cells=tuple(cells),
        differences=tuple(differences(old.manifest, new.manifest, baselines=job is None)),
        only_old=tuple(str(row["cell"]) for row in matched.only_old),
        only_new=tuple(str(row["cell"]) for row in matched.only_new),
        paired=job is not None,
        figures=compared_figures,
    )


def job_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str] | None:
    """The pairs of cells of two sides of one gate, by their manifests; None for runs of different jobs."""
    sides = [manifest.get("gate") or {} for manifest in (old, new)]
    if not sides[0] or sides[0].get("job") != sides[1].get("job") or sides[0].get("side") == sides[1].get("side"):
        return None
    pairs: dict[str, str] = dict(sides[0].get("pairs") or {})
    if sides[0]["side"] == BASE:
        return pairs
    return {head: base for base, head in pairs.items()} if sides[1]["side"] == BASE else {}


def _label(before: Row, after: Row, label: str) -> str:
    """The lock; both locks where a gate compares one with another."""
    was = lock_name(before)
    return label if was == lock_name(after) else f"{was} -> {label}"


def _change(
    before: Row,
    after: Row,
    lock: str,
    load: str,
    tested: Mapping[ComparedFigure, tuple[Ratio, Effect] | None] | None,
    *,
    newly_broken: bool,
) -> CellChange:
    """`tested` has the ratio and the effect of each figure; None where figures are not compared."""
    figures = []
    for figure, found in (tested or {}).items():
        ratio, effect = found or (None, Effect.UNKNOWN)
        then, now = (number(row.get(figure.column)) for row in (before, after))
        figures.append(FigureChange(figure, then, now, ratio, effect))
    deciding = RESPONSE if not missing(after.get("rate_per_s")) else THROUGHPUT
    deciding = LIMIT if recorded_mode(after.get("mode")).is_search else deciding
    turn = Turn.REGRESSION if newly_broken else _turn(_verdict(before), _verdict(after))
    return CellChange(
        lock=lock,
        load=load,
        old_cell=str(before["cell"]),
        new_cell=str(after["cell"]),
        old_verdict=_verdict(before),
        new_verdict=_verdict(after),
        turn=turn,
        effect=next((one.effect for one in figures if one.figure.column == deciding), None),
        figures=tuple(figures),
        deciding=deciding,
    )


def _turn(old: Verdict, new: Verdict) -> Turn | None:
    if old is new:
        return None
    if new is Verdict.UNSAFE:
        return Turn.REGRESSION
    if new is Verdict.SAFE:
        return Turn.FIXED if old is Verdict.UNSAFE else Turn.PROVED
    return Turn.LOST if old is Verdict.SAFE else Turn.OTHER


def _verdict(row: Row) -> Verdict:
    value = row.get("verdict")
    return Verdict.UNDECIDED if missing(value) else Verdict(str(value))


def _varied(rows: Sequence[Row]) -> list[str]:
    """The axes that vary over the compared cells."""
    if not rows:
        return []
    varied = [axis for axis in load_axes(rows) if len({axis_value(row.get(axis)) for row in rows}) > 1]
    return [axis for axis in varied if not set_by_stages(axis, rows)]


def _load(row: Row, axes: Sequence[str]) -> str:
    return say_conditions((axis, axis_value(row.get(axis))) for axis in axes)


def complete_trials(run: Recorded) -> dict[str, pd.DataFrame]:
    """The complete trials of each cell that has some."""
    complete = run.trials[run.trials["status"] == "complete"]
    return {str(cell): rows for cell, rows in complete.groupby("cell", sort=False)}


def _kinds(run: Recorded) -> dict[str, str]:
    backends = ((run.manifest.get("matrix") or {}).get("expanded") or {}).get("backends") or {}
    return {name: str(backend.get("kind", name)) for name, backend in backends.items()}
