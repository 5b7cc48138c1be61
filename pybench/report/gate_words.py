"""The answer of a gate in words: what terminal, Markdown, page and JUnit say alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.analysis.between_runs.figures import Effect
from pybench.analysis.gating import BY_COLUMN, ENOUGH_BLOCKS, Finding, Judged
from pybench.formats import digits
from pybench.numbers import NOT_AVAILABLE, plural
from pybench.report import changes_words
from pybench.report.changes_words import listed, turn_sentence, written

if TYPE_CHECKING:
    from pybench.analysis.between_runs.gate_answer import GateAnswer, GateCell

RULE = (
    "A cell fails if the whole interval of head / base lies beyond the limit, in the first round and again in the "
    "confirming one. The limit is the larger of the equivalence band and the noise, by which the head differs from "
    "itself."
)


def percent(share: float) -> str:
    """A share as "4.2 %"."""
    return f"{digits(share * 100, 2)} %"


def interval(judged: Judged | None) -> str:
    """The ratio of a round with its interval: "0.93 [0.89 .. 0.97]"."""
    return changes_words.interval(None if judged is None else judged.ratio)


def noise(judged: Judged | None) -> str:
    """The noise floor of a round."""
    return NOT_AVAILABLE if judged is None else percent(judged.noise)


def excluded(judged: Judged | None) -> str:
    """The largest slowdown in the interval of the round."""
    return NOT_AVAILABLE if judged is None else percent(judged.excluded)


def least(judged: Judged | None) -> str:
    """The least slowdown that the round finds in 9 of 10 jobs."""
    return NOT_AVAILABLE if judged is None else percent(judged.least)


def sentence(cell: GateCell) -> str:
    """The result of a cell in one sentence."""
    change = cell.change
    if cell.became_unsafe:
        return turn_sentence(change)
    if cell.finding is None:
        return f"{change.name}: not judged, {change.old_verdict.value} -> {change.new_verdict.value}"
    if cell.first is None:
        return f"{change.name}: fewer than {ENOUGH_BLOCKS} blocks with {title(cell)} on all sides"
    figure, ratio = title(cell), interval(cell.first)
    again = "" if cell.second is None else f", and {interval(cell.second)} in the confirming round"
    limit = percent(cell.first.limit)
    texts = {
        Finding.SLOWER: f"slower: {figure} by a factor of {ratio}{again}; the limit is {limit}",
        Finding.NOT_CONFIRMED: f"slower in the first round only: {figure} by a factor of {ratio}{again}",
        Finding.FASTER: f"faster: {figure} by a factor of {ratio}",
        Finding.SAME: f"the same within {limit}: {figure} by a factor of {ratio}",
        Finding.UNKNOWN: f"can't tell: {figure} by a factor of {ratio}; slower by at most {excluded(cell.first)}",
    }
    return f"{change.name}: {texts[cell.finding]}"


def title(cell: GateCell) -> str:
    """The figure that decides."""
    return BY_COLUMN[cell.change.deciding].title


def values(cell: GateCell) -> tuple[str, str]:
    """That figure of base and head."""
    found = cell.change.figure(cell.change.deciding)
    return (NOT_AVAILABLE, NOT_AVAILABLE) if found is None else (written(found, found.old), written(found, found.new))


def worse_elsewhere(answer: GateAnswer) -> list[str]:
    """Each figure that does not decide and is worse, as "p50 of mutex with 16 clients (22.5 µs -> 16.0 ms)"."""
    return [
        f"{figure.figure.title} of {one.change.name} ({written(figure, figure.old)} -> {written(figure, figure.new)})"
        for one in answer.judged
        for figure in one.change.figures
        if figure.figure.column != one.change.deciding and figure.effect in (Effect.SLOWER, Effect.MORE)
    ]


def notes(answer: GateAnswer) -> list[str]:
    """What a reader has to know besides the table."""
    worse = worse_elsewhere(answer)
    found = [f"Worse, in figures that do not decide: {listed(worse)}."] if worse else []
    found += [RULE] if answer.judged else []
    if answer.judged:
        worst = max(answer.judged, key=lambda one: one.first.least if one.first else 0.0)
        blocks = {one.first.ratio.blocks for one in answer.judged if one.first}
        found.append(
            f"{plural(max(blocks), 'block')} of 3 trials a cell. Slowdowns of {least(worst.first)} and more are found "
            f"in 9 of 10 jobs{' in every cell' if len(answer.judged) > 1 else ''}."
        )
    for which, cells in (("base", answer.changes.only_old), ("head", answer.changes.only_new)):
        if cells:
            found.append(f"Only in the {which}: {listed(cells)}.")
    return found
