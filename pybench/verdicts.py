"""What the checker's counts mean: the verdict on a trial or a cell, each violation in words, a run's exit code.

Promises: SAFE is never said where nothing was granted, of a lock that promises nothing, or without a caught control.
Does not do: finding violations; the core's checker does.

An acquire whose answer was lost ended as `unknown`, and its client never believed. The checker therefore knows every
belief, and answers that were lost make no cell undecided. They will where a guarded resource judges.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pybench import exits
from pybench.exits import Exit
from pybench.lateness import late_cells
from pybench.numbers import format_ns, significant
from pybench.stats import bound_per_million
from pybench.strategies import Exclusion, Promise

if TYPE_CHECKING:
    import pandas as pd

    from pybench._core import Violation
    from pybench.thresholds import ThresholdResult


class Verdict(StrEnum):
    """What a cell's record proves about its lock."""

    SAFE = "SAFE"
    UNSAFE = "UNSAFE"
    UNDECIDED = "UNDECIDED"
    VOID = "VOID"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of violation. `promise` is the one whose strategies alone it is counted of; None: of every strategy."""

    column: str
    """Its count in the totals of a trial and in `trials.parquet`."""
    name: str
    promise: Promise | None = None


KINDS = {
    "double-grant": Kind("double_grants", "double grant"),
    "double-grant-after-overrun": Kind("double_grants_after_overrun", "double grant after an overrun"),
    "lease-overrun": Kind("lease_overruns", "lease overrun"),
    "stale-fence": Kind("stale_fences", "stale fence", Promise.FENCE),
    "fifo-inversion": Kind("fifo_inversions", "FIFO inversion", Promise.FIFO),
}
"""By the core's word for it."""

COUNTS = ("grants", "contended_grants", *(kind.column for kind in KINDS.values()))
"""What a verdict is made of."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its grounds. `bound_per_million` is given of SAFE only, and None without contended grants."""

    verdict: Verdict
    reason: str
    promise_broken: bool
    bound_per_million: float | None


def judge(
    totals: Mapping[str, int], exclusion: Exclusion, promises: Collection[Promise] = (), *, control_caught: bool
) -> Judgement:
    """Judge the counts of a trial or of a cell, `COUNTS`.

    Those that only a promise makes a violation may be missing where `promises` lacks it.
    A promise that was seen broken stays broken in a run that is VOID: a control that was missed takes proof away from
    what was not seen, not from what was.
    """
    broken = promise_broken(totals, exclusion, promises)
    verdict, reason = _verdict(totals, exclusion, promises, control_caught=control_caught)
    bound = bound_per_million(totals["contended_grants"]) if verdict is Verdict.SAFE else None
    return Judgement(verdict, reason, broken, bound)


def promise_broken(totals: Mapping[str, int], exclusion: Exclusion, promises: Collection[Promise] = ()) -> bool:
    """Whether violations lie inside what a strategy with this `exclusion` and these `promises` promises.

    A lease overrun alone never does: the hold outlived the lease, and no lease promises anything for that.
    """
    if any(totals[kind.column] for kind in KINDS.values() if kind.promise in promises):
        return True
    match exclusion:
        case Exclusion.NOTHING:
            return False
        case Exclusion.WHILE_NOBODY_OUTLIVES:
            return totals["double_grants"] > 0
        case Exclusion.ALWAYS:
            return totals["double_grants"] + totals["double_grants_after_overrun"] > 0


def violations(totals: Mapping[str, int], promises: Collection[Promise] = ()) -> int:
    """All violations in `totals`; holders that outlived their lease without meeting anybody are none.

    Nor is an order of service that nobody promised to keep: it is a figure.
    """
    return sum(totals[kind.column] for kind in _counted(promises))


def is_violation(found: Violation, promises: Collection[Promise]) -> bool:
    """Whether what the checker found is a violation for a strategy that makes these `promises`."""
    return KINDS[found["kind"]] in _counted(promises)


def promises_text(promises: Collection[Promise]) -> str:
    """As a record keeps them: `fence`, `fifo`, or nothing."""
    return ", ".join(sorted(promises))


def promises_of(text: object) -> frozenset[Promise]:
    """The promises that a record keeps as `text`. One of before there were any has none."""
    return frozenset(map(Promise, text.split(", "))) if isinstance(text, str) and text else frozenset()


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that stands for all of `verdicts`, of which there is at least one."""
    return max(verdicts, key=(Verdict.SAFE, Verdict.UNDECIDED, Verdict.UNSAFE, Verdict.VOID).index)


def safe_rate(verdict: Verdict, grants_per_s: float | None) -> float | None:
    """What of `grants_per_s` counts: all of it where SAFE, nothing where UNSAFE, and no figure where nobody knows."""
    match verdict:
        case Verdict.SAFE:
            return grants_per_s
        case Verdict.UNSAFE:
            return 0.0
        case Verdict.UNDECIDED | Verdict.VOID:
            return None


def controls_caught(controls: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the run's `controls`, as its manifest lists them, were all caught; a run without one proves nothing."""
    caught = [bool(control["caught"]) for control in controls]
    return bool(caught) and all(caught)


def run_exit(
    trials: pd.DataFrame, *, thresholds: Iterable[ThresholdResult], controls: Iterable[Mapping[str, Any]]
) -> Exit:
    """The exit code that a run earned by its `trials` (`trials.parquet`) and its `controls` (as the manifest has them).

    An undecided cell counts only where its strategy promises exclusion: where it does not, nothing was to be decided.
    """
    codes = set()
    if trials["promise_broken"].any():
        codes.add(Exit.PROMISE_BROKEN)
    if not controls_caught(controls):
        codes.add(Exit.CONTROL_NOT_CAUGHT)
    if late_cells(trials):
        codes.add(Exit.GENERATOR_LATE)
    promising = trials[trials["exclusion"] != Exclusion.NOTHING.value]
    if any(cell_verdict(rows) is Verdict.UNDECIDED for _, rows in promising.groupby("cell")):
        codes.add(Exit.UNDECIDED)
    if not all(result.passed for result in thresholds):
        codes.add(Exit.THRESHOLD_MISSED)
    return exits.first(codes)


def cell_verdict(trials: pd.DataFrame) -> Verdict:
    """The worst verdict of one cell's `trials`.

    A trial without a grant is undecided for itself and takes nothing from the proof of the others.
    """
    verdicts = [Verdict(text) for text in trials["verdict"]]
    proving = [
        verdict
        for verdict, grants in zip(verdicts, trials["grants"], strict=True)
        if grants > 0 or verdict is not Verdict.UNDECIDED
    ]
    return worst(proving or verdicts)


def _counted(promises: Collection[Promise]) -> list[Kind]:
    return [kind for kind in KINDS.values() if kind.promise is None or kind.promise in promises]


def _verdict(
    totals: Mapping[str, int], exclusion: Exclusion, promises: Collection[Promise], *, control_caught: bool
) -> tuple[Verdict, str]:
    if not control_caught:
        return Verdict.VOID, "the control of this run was not caught, so nothing is proved"
    if violations(totals, promises) > 0:
        return Verdict.UNSAFE, _what_broke(totals, promises)
    if totals["grants"] == 0:
        return Verdict.UNDECIDED, "nothing was granted"
    if exclusion is Exclusion.NOTHING:
        return Verdict.UNDECIDED, "it promises nothing, and nothing overlapped here"
    contended = totals["contended_grants"]
    bound = bound_per_million(contended)
    if bound is None:
        return Verdict.SAFE, f"0 violations in {totals['grants']:,} grants, none of them contended"
    return (
        Verdict.SAFE,
        f"0 violations in {contended:,} contended grants, at most {significant(bound)} per million at 95 %",
    )


def _what_broke(totals: Mapping[str, int], promises: Collection[Promise]) -> str:
    counts = [(totals[kind.column], kind.name) for kind in _counted(promises)]
    named = [f"{count:,} {name if count == 1 else _plural(name)}" for count, name in counts if count]
    # Not "in so many grants": those are of the window, violations of the whole trial.
    return ", ".join(named)


def _plural(name: str) -> str:
    # Of the first noun: double grants after an overrun.
    return name.replace("grant", "grants", 1) if "grant" in name else f"{name}s"


def sentence(violation: Violation) -> str:
    """One violation in one sentence, as `violations.jsonl` keeps it."""
    first, second, key = violation["first_client"], violation["second_client"], _key_name(violation["key"])
    granted = f"client {second} was granted {key} at {violation['at_ns'] / 1e9:.3f} s"
    before = f"{violation['first_granted_ns'] / 1e9:.3f} s"
    match violation["kind"]:
        case "lease-overrun":
            return f"{granted} while client {first} was still at work{_past_lease(violation)}; {_overlap(violation)}"
        case "stale-fence":
            higher, fence = violation["first_fence"], violation["second_fence"]
            return f"{granted} with fence {fence}, not above the {higher} that client {first} was granted at {before}"
        case "fifo-inversion":
            return f"{granted} after client {first}, which had come later and was granted it at {before}"
    after = ", after an earlier holder had outlived its lease"
    return (
        f"{granted} while client {first} still held it ({_lease_left(violation)})"
        f"{after if violation['kind'] == 'double-grant-after-overrun' else ''}"
    )


def _key_name(key: str) -> str:
    """The key's number in its trial: what stands before it on the server says only which trial that was."""
    numbered = re.search(r"\{(\d+)\}$", key)
    return f"key {int(numbered[1]):,}" if numbered else f'"{key}"'


def _lease_left(violation: Violation) -> str:
    until = violation["first_until_ns"]
    return "no lease" if until is None else f"lease good for another {format_ns(until - violation['at_ns'])}"


def _past_lease(violation: Violation) -> str:
    until, at = violation["first_until_ns"], violation["at_ns"]
    if until is None or until > at:
        # Its belief ended before its lease did: it was told that the lock was lost.
        return ", though it knew that its lock was lost"
    return f", {format_ns(at - until)} past the end of its lease"


def _overlap(violation: Violation) -> str:
    if violation["overlap_ns"] == 0:
        return "both were still at work when the trial ended"
    return f"they overlapped for {format_ns(violation['overlap_ns'])}"
