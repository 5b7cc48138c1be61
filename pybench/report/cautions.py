"""What a reader must know before the figures: a run that is void, interrupted, not repeated, noisy, or late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybench.lateness import late_cells
from pybench.numbers import plural
from pybench.report.view import View
from pybench.verdicts import controls_caught

# An interval wider than this share of its median is called noisy.
NOISY = 0.25


@dataclass(frozen=True, slots=True)
class Caution:
    """`grave` ones put the whole run in question."""

    title: str
    text: str
    grave: bool = False


def cautions(view: View) -> list[Caution]:
    """All that apply, the gravest first."""
    manifest = view.run.manifest
    found: list[Caution] = []
    if view.cells and not controls_caught(manifest["control"]):
        found.append(
            Caution(
                "VOID",
                "The control of this run, clients without a lock, was not caught. The checker would not have seen a "
                "violation, so no verdict can be given.",
                grave=True,
            )
        )
    if manifest["status"] == "running":
        found.append(Caution("Not finished", "The run was still going on, or was killed: this is what it had saved."))
    elif manifest["status"] != "complete":
        found.append(Caution("Interrupted", f"The run ended early. {_missing(view)}".strip()))
    found += _late(view)
    found += _repetition(view)
    return found


def _missing(view: View) -> str:
    planned = len(view.run.manifest.get("cells", []))
    measured = sum(1 for cell in view.cells if cell.number("trials"))
    lacking = planned - measured
    return f"{plural(lacking, 'cell')} of {planned} {_has(lacking)} no complete trial." if lacking > 0 else ""


def _late(view: View) -> Sequence[Caution]:
    late = late_cells(view.run.trials) if not view.run.trials.empty else {}
    if not late:
        return []
    cell, reason = next(iter(late.items()))
    text = f"{plural(len(late), 'cell')} {_has(len(late))} figures of the generator, not of the lock. {cell}: {reason}."
    return [Caution("Generator late", text, grave=True)]


def _repetition(view: View) -> Sequence[Caution]:
    measured = [cell for cell in view.cells if cell.number("trials")]
    if not measured:
        return []
    if all(cell.number("trials") == 1 for cell in measured):
        return [Caution("One trial", "Nothing was repeated, so a difference between two cells may be chance.")]
    noisy = 0
    for cell in measured:
        low, high, middle = (cell.number(f"grants_per_s{end}") for end in ("_low", "_high", ""))
        noisy += low is not None and high is not None and bool(middle) and (high - low) / (middle or 1) > NOISY
    if noisy:
        share = f"{noisy} of {plural(len(measured), 'cell')}"
        return [Caution("Noisy", f"In {share} the interval of grants/s is wider than a quarter of its median.")]
    return []


def _has(count: int) -> str:
    return "has" if count == 1 else "have"
