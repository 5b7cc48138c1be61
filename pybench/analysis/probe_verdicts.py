"""How the probe of a lock changes the verdicts on its trials, and the manifest entry of the probe.

Promises: a lock that breaks its promise in its probe is UNSAFE in every cell. Any other verdict of the probe decides
only trials with too few contended grants. A run without probes is judged by its trials alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pybench.analysis.evidence import LEAST_CONTENDED
from pybench.analysis.terms import Terms
from pybench.analysis.verdicts import Judgement, Verdict, judge, promise_broken
from pybench.matrix.faults import recorded_faults
from pybench.strategies import arguments_text

if TYPE_CHECKING:
    from pybench.matrix.cells import Cell

SENTENCES_KEPT = 5
"""How many violations of a probe the manifest keeps."""


def broken_when_late(row: Mapping[str, Any]) -> bool:
    """Whether the second part of a probe, a trial with this `row`, saw a broken promise.

    The promise is broken where forbidden beliefs overlapped, or where a late write passed the guard. Overlapping work
    of a holder past its lease is not the lock's fault.
    """
    names = ("double_grants", "double_grants_after_overrun", "lost_updates", "surplus_updates")
    return promise_broken({name: row[name] for name in names}, Terms.recorded(row))


def probe_entry(cell: Cell, row: Mapping[str, Any], violations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The result of the probe `cell`, a trial with this `row`, as an element of the manifest's `probes`."""
    verdict = Verdict(row["verdict"])
    if verdict is Verdict.SAFE and row["contended_grants"] < LEAST_CONTENDED:
        verdict = Verdict.UNDECIDED
    seen = judge(row, Terms.recorded(row), control_caught=True)
    # Broken promises come first: hundreds of lease overruns may precede them.
    ordered = sorted(violations, key=lambda violation: violation["kind"] == "lease-overrun")
    sentences = [violation["sentence"] for violation in ordered[:SENTENCES_KEPT]]
    return {
        "strategy": cell.strategy,
        "args": arguments_text(cell.args),
        "backend": cell.backend,
        "concurrency": cell.concurrency,
        "threads": cell.threads,
        "hold": cell.hold.text,
        "verdict": verdict.value,
        "promise_broken": row["promise_broken"],
        "violations": row["violations"],
        "grants": row["grants"],
        "contended_grants": row["contended_grants"],
        "reason": _reason(verdict, seen.reason, row["contended_grants"], sentences),
        "sentences": sentences,
    }


def _reason(verdict: Verdict, seen: str, contended_grants: int, sentences: Sequence[str]) -> str:
    contended = f"{contended_grants:,} contended grants"
    match verdict:
        case Verdict.SAFE:
            return f"its probe saw 0 violations in {contended}"
        case Verdict.UNSAFE:
            first = f"; the first: {sentences[0]}" if sentences else ""
            return f"its probe saw {seen}{first}"
        case Verdict.UNDECIDED | Verdict.VOID:
            few = contended_grants < LEAST_CONTENDED
            return f"its probe had only {contended}, too few to judge" if few else f"its probe: {seen}"


@dataclass(frozen=True, slots=True)
class Probed:
    """A judgement, and whether the probe decided it."""

    judgement: Judgement
    by_probe: bool | None
    """Whether the verdict is the probe's; None where there was no probe."""
    reason: str | None
    """The reason of the probe; None where the probe did not decide the verdict."""

    def columns(self) -> dict[str, Any]:
        """The columns of the probe in `trials.parquet`."""
        return {"judged_by_probe": self.by_probe, "probe_reason": self.reason}


def overruled(judgement: Judgement, row: Mapping[str, Any], probe: Mapping[str, Any] | None) -> Probed:
    """The `judgement` on the trial `row`, corrected by the `probe` of its lock, an entry of the manifest."""
    if probe is None:
        return Probed(judgement, by_probe=None, reason=None)
    own = Probed(judgement, by_probe=False, reason=None)
    seen, broken = Verdict(probe["verdict"]), bool(probe["promise_broken"])
    if judgement.verdict in {Verdict.UNSAFE, Verdict.VOID}:
        # A promise that was broken in the probe stays broken in a VOID run.
        return replace(own, judgement=replace(judgement, promise_broken=judgement.promise_broken or broken))
    contended = row["contended_grants"] or 0
    proves_little = bool(row["grants"]) and contended < LEAST_CONTENDED
    if broken or (seen is Verdict.UNSAFE and proves_little):
        unsafe = Judgement(Verdict.UNSAFE, probe["reason"], promise_broken=broken, bound_per_million=None)
        return Probed(unsafe, by_probe=True, reason=probe["reason"])
    # A probe runs on healthy servers, so it proves nothing of a trial with faults.
    healthy = not recorded_faults(row.get("faults"))
    if seen is Verdict.SAFE and healthy and proves_little and judgement.verdict is Verdict.SAFE:
        here = "not contended here" if row["concurrency"] == 1 else "too few contended grants here to judge"
        reason = f"{here}; {probe['reason']}"
        return Probed(replace(judgement, reason=reason, bound_per_million=None), by_probe=True, reason=reason)
    if judgement.verdict is Verdict.UNDECIDED and seen is Verdict.UNDECIDED:
        # A lock whose releases do nothing has hardly any grants, in the trial and in the probe.
        return replace(own, judgement=replace(judgement, reason=f"{judgement.reason}; {probe['reason']}"))
    return own
