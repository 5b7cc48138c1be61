"""Cautions about the run: it is void, interrupted, disturbed or not repeated, or the load generator was late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pybench.analysis.disturbances import DISTURBANCES, disturbances
from pybench.analysis.error_replies import refusals
from pybench.analysis.send_delay import REMEDY, late_cells
from pybench.analysis.thresholds import ThresholdResult
from pybench.analysis.ttl_advice import advice_of
from pybench.analysis.verdicts import controls_caught
from pybench.matrix.faults import recorded_faults
from pybench.numbers import missing, plural
from pybench.report.cautions.caution import SHOWN_CELLS, Caution, listed
from pybench.report.cautions.of_load import strain
from pybench.report.cautions.of_servers import circumstances
from pybench.report.run_facts import control_rows
from pybench.report.sections import faults
from pybench.report.view import View

# A cell is noisy where its interval is wider than this share of its median.
NOISY = 0.25
# Kinds of error replies that are written in full.
SHOWN_REFUSALS = 3


def cautions(view: View) -> list[Caution]:
    """All that apply, the gravest first."""
    manifest = view.run.manifest
    found: list[Caution] = []
    if view.cells and not controls_caught(manifest["control"]):
        found.append(Caution("VOID", f"{_missed_controls(manifest)}, so no verdict can be given.", grave=True))
    if manifest["status"] == "running":
        found.append(
            Caution(
                "Not finished",
                "The run is still going on, or was killed. This report shows the trials that were saved.",
            )
        )
    elif manifest["status"] != "complete":
        found.append(Caution("Interrupted", f"The run ended early{_why(view)}. {_missing(view)}".strip()))
    found += _missed(view)
    found += _late(view)
    found += strain(view)
    found += circumstances(view)
    found += _refused(view)
    found += _outlived(view)
    found += _harmed(view)
    found += _disturbed(view)
    found += _repetition(view)
    return found


def _missed_controls(manifest: Mapping[str, Any]) -> str:
    """Which controls were not caught."""
    plants = [entry for entry in manifest["control"] if "kind" in entry and not entry["caught"]]
    controls = control_rows(manifest)
    missed = [where for where, caught, _ in controls if not caught]
    if missed or not manifest["control"]:
        which = f"control on {' and '.join(missed)}" if len(controls) > 1 else "control of this run"
        return f"The {which}, clients without a lock, was not caught. The checker would have missed violations too"
    named = listed([f"{entry['kind']} for {entry['strategy']}" for entry in plants]).removesuffix(".")
    return f"The checker missed a planted fault: {named}. It would have missed the same fault of a lock"


def _why(view: View) -> str:
    """What happened to the servers in the last trial, as a clause; empty where nothing did."""
    trials = view.run.trials
    if trials.empty or "disturbance" not in trials:
        return ""
    last = trials.sort_values("started_at").iloc[-1]["disturbance"]
    return "" if missing(last) else f": {last}"


def _missing(view: View) -> str:
    planned = len(view.run.manifest.get("cells", []))
    measured = sum(1 for cell in view.cells if cell.number("trials"))
    lacking = planned - measured
    return f"{plural(lacking, 'cell')} of {planned} {_has(lacking)} no complete trial." if lacking > 0 else ""


def _missed(view: View) -> Iterator[Caution]:
    """One for each threshold of the matrix that a cell missed."""
    results = view.run.thresholds if view.cells else []
    missed: dict[str, list[ThresholdResult]] = {}
    for result in results:
        if not result.passed:
            missed.setdefault(result.threshold.text, []).append(result)
    for threshold, misses in missed.items():
        shown = ", ".join(_missed_in(miss) for miss in misses[:SHOWN_CELLS])
        more = len(misses) - SHOWN_CELLS
        others = f" and in {plural(more, 'further cell')}" if more > 0 else ""
        yield Caution("Threshold missed", f"{threshold}: {shown}{others}.")


def _missed_in(miss: ThresholdResult) -> str:
    if miss.cell is None:
        return "this threshold matches no measured cell"
    return f"{miss.figure_text} in {miss.cell}"


def _late(view: View) -> Sequence[Caution]:
    late = late_cells(view.run.trials) if not view.run.trials.empty else {}
    if not late:
        return []
    names = {cell.id: cell.name for cell in view.cells}
    cells = "; ".join(f"{names.get(cell, cell)}: {reason}" for cell, reason in late.items())
    where = plural(len(late), "cell")
    what = f"In {where} the load generator was the bottleneck, so latencies there are invalid"
    return [Caution("Generator late", f"{what}: {cells}. {REMEDY}", grave=True)]


def _refused(view: View) -> Sequence[Caution]:
    """Error replies: where a server refuses what a lock needs, the figures and the verdict are worthless.

    Planned faults cause errors, too. Replies only in cells with faults, and not about rights, are no alarm.
    """
    found = refusals(view.run.trials)
    if not found:
        return []
    harmed = {cell.id for cell in view.cells if faults.has_faults(cell)}
    expected = all(refusal.cells <= harmed and refusal.remedy is None for refusal in found)
    sentences = "; ".join(refusal.sentence for refusal in found[:SHOWN_REFUSALS])
    more = len(found) - SHOWN_REFUSALS
    others = f"; and {plural(more, 'further kind')} of error replies" if more > 0 else ""
    # The remedies of all kinds, because a remedy is what a reader looks for.
    remedies = dict.fromkeys(remedy for refusal in found if (remedy := refusal.remedy) is not None)
    rights = f" Missing rights: {listed(list(remedies), 'rule')}" if remedies else ""
    where = " All of them came in cells with planned faults." if expected else ""
    return [Caution("Error replies", f"{sentences}{others}.{where}{rights}", grave=not expected)]


def _outlived(view: View) -> Sequence[Caution]:
    """Holds that outlived their lease, which does not protect the work after its end."""
    run = view.run
    entries = {entry["id"]: entry for entry in run.manifest.get("cells", ())}
    # Histograms are slow to read: only those of cells that had such holds, or whose record does not say.
    cells = [cell for cell in view.cells if cell.number("outlived_share") != 0]
    advised = ((cell, advice_of(cell.id, entries.get(cell.id), run.trials, run.histogram)) for cell in cells)
    sentences = [advice.replace(cell.id, cell.name, 1) for cell, advice in advised if advice is not None]
    return [Caution("Holds outlived their leases", listed(sentences))] if sentences else []


def _harmed(view: View) -> Iterator[Caution]:
    """Faults that the matrix asked for, and those that could not be carried out."""
    harmed = [cell for cell in view.cells if faults.has_faults(cell)]
    if not harmed:
        return
    names = list(dict.fromkeys(" and ".join(recorded_faults(cell.row["faults"]).names) for cell in harmed))
    yield Caution(
        "Faults",
        f"In {len(harmed)} of {plural(len(view.cells), 'cell')} these faults were caused on purpose: "
        f"{listed(names, 'plan')} Broken connections, lost replies and errors are expected there, and a lock is "
        "blamed only for what it promises under these faults.",
    )
    if overdue := faults.overdue(view):
        yield Caution(
            "Faults lasted longer",
            f"Some faults lasted longer than planned: {listed(overdue, 'fault')} Figures during and after the faults "
            "go by the plan, so those after a fault have a part of it.",
        )
    if errors := faults.failed(view):
        yield Caution("Faults failed", f"Some faults were not carried out as planned: {listed(errors)}", grave=True)


def _disturbed(view: View) -> Sequence[Caution]:
    measured = [cell for cell in view.cells if cell.number("trials") and not faults.has_faults(cell)]
    disturbed = [cell for cell in measured if any(cell.number(name) for name in DISTURBANCES)]
    if not disturbed:
        return []
    lost = disturbances(**{name: sum(int(cell.number(name) or 0) for cell in disturbed) for name in DISTURBANCES})
    share = f"{len(disturbed)} of {plural(len(measured), 'cell')}"
    return [
        Caution(
            "Disturbed",
            f"In {share} clients lost contact with a server: {lost}. The figures include these disturbances.",
        )
    ]


def _repetition(view: View) -> Sequence[Caution]:
    measured = [cell for cell in view.cells if cell.number("trials")]
    if not measured:
        return []
    if all(cell.number("trials") == 1 for cell in measured):
        return [Caution("One trial", "No cell was repeated, so a difference between two cells may be chance.")]
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
