"""The comparison of two runs in words: what terminal, Markdown and page say alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pybench.analysis.between_runs import Turn
from pybench.analysis.comparison.pairs import ENOUGH_BLOCKS
from pybench.columns import COLUMNS
from pybench.formats import digits
from pybench.numbers import NOT_AVAILABLE
from pybench.report import run_facts

if TYPE_CHECKING:
    from pybench.analysis.between_runs import CellChange, FigureChange, RunChanges
    from pybench.analysis.significance import Ratio
    from pybench.records import Run

LEAST, MOST = 0.001, 1_000.0
"""Ends of an interval beyond these are not written out: the ratio is not known at all."""
RATIOS = "Ratios are the new figure divided by the old one, by geometric means over trials; figures are medians."
UNPAIRED = "The two runs were measured one after the other: a difference may come from the machine, too."
PAIRED = "Both sides were measured in turn in one job: their trials are compared block by block."
TOO_FEW = f"Runs with fewer than {ENOUGH_BLOCKS} trials per cell are too few to compare figures."


def about(run: Run) -> str:
    """A run in a few words: its name, its servers, and when it began."""
    facts = [run_facts.run_name(run.manifest), run_facts.server_labels(run.manifest), run_facts.when(run.manifest)]
    return ", ".join(fact for fact in facts if fact)


def turn_sentence(one: CellChange) -> str:
    """A changed verdict in words."""
    if one.turn is Turn.REGRESSION and one.old_verdict is one.new_verdict:
        return f"{one.name}: {one.new_verdict.value}, and now it breaks a promise that it kept"
    turn = "" if one.turn is None else f" ({one.turn.value})"
    return f"{one.name}: {one.old_verdict.value} -> {one.new_verdict.value}{turn}"


def written(change: FigureChange, value: float | None) -> str:
    """A figure as tables write it."""
    return COLUMNS[change.figure.column].format.text(value)


def ratio_text(change: FigureChange) -> str:
    """The ratio with its interval; n/a where there are too few trials."""
    return interval(change.ratio)


def interval(ratio: Ratio | None) -> str:
    """A ratio with its interval: "0.93 [0.89 .. 0.97]"."""
    if ratio is None:
        return NOT_AVAILABLE
    low = f"<{LEAST:g}" if ratio.low < LEAST else digits(ratio.low, 3)
    high = f">{MOST:,.0f}" if ratio.high > MOST else digits(ratio.high, 3)
    return f"{digits(ratio.value, 3)} [{low} .. {high}]"


def short_ratio(change: FigureChange | None) -> str:
    """The ratio with its effect: "0.93 faster"."""
    if change is None or change.ratio is None:
        return NOT_AVAILABLE
    return f"{digits(change.ratio.value, 3)} {change.effect.value}"


def cell_effect(one: CellChange) -> str:
    """The effect on a cell; why figures are not compared where they are not."""
    if one.effect is not None:
        return one.effect.value
    if one.old_verdict is one.new_verdict:
        return f"not compared: {one.new_verdict.value}"
    return f"not compared: {one.old_verdict.value} -> {one.new_verdict.value}"


def notes(changes: RunChanges) -> list[str]:
    """What a reader has to know besides the table."""
    found = [RATIOS, PAIRED if changes.paired else UNPAIRED] if changes.cells else []
    compared = [one for one in changes.cells if one.effect is not None]
    if compared and all(change.ratio is None for one in compared for change in one.figures):
        found.append(TOO_FEW)
    for which, cells in (("old", changes.only_old), ("new", changes.only_new)):
        if cells:
            found.append(f"Only in the {which} run: {listed(cells)}.")
    return found


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first of `names`, and how many more there are."""
    more = len(names) - most
    return "; ".join(names[:most]) + (f"; and {more:,} more" if more > 0 else "")
