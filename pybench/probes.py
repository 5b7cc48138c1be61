"""Probes: a short trial of each lock on each backend, with contention, before the trials of a run.

A hold of 0 hides a lock that excludes nobody: its holders believe for a microsecond, and hardly anybody is granted the
lock meanwhile. So each lock is also tried with 8 clients on one key that hold it for 1 ms.

Promises: a lock that breaks its promise in its probe is UNSAFE in every cell; whatever else a probe saw stands for
trials with few contended grants, which prove little by themselves. A run without probes is judged by its trials alone.
Does not do: running them; see `runner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pybench import control
from pybench.durations import MS
from pybench.evidence import LEAST_CONTENDED
from pybench.strategies import CATALOGUE, Judge, arguments_text
from pybench.terms import Terms
from pybench.values import ClosedLoop, Distribution, KeyChoice
from pybench.verdicts import Judgement, Verdict, judge, promise_broken

if TYPE_CHECKING:
    from pybench.cells import Cell
    from pybench.records import TrialRecord

PROBE_NS = control.CONTROL_NS
LONGER_NS = 4_000 * MS
"""Of a lock that is granted too seldom to show itself in `PROBE_NS`."""

LATE_NS = 2 * PROBE_NS
"""Of its second part, in which holders take turns of `LATE_HOLD_NS`."""
LATE_TTL_MS = 50
LATE_HOLD_NS = 80 * MS

SENTENCES_KEPT = 5
"""Of the violations that a probe saw, in the manifest."""

LEAST_TTL_MS = 5_000
"""A hold of 1 ms must end inside its lease on a machine that stands still for a while, too."""

MOST_READERS = 0.5
"""A reader excludes no other reader: with more of them a broken lock would hardly show."""

Lock = tuple[str, str, str]
"""Strategy, arguments as text, and backend."""


def lock_of(cell: Mapping[str, Any]) -> Lock:
    """Which lock the row or the manifest's entry `cell` is of."""
    return cell["strategy"], cell["args"], cell["backend"]


def probe_cells(cells: Iterable[Cell]) -> list[Cell]:
    """The probe of each lock that `cells` measure, in their order. The control is the probe of `none`."""
    return [_probe_cell(members) for members in locks_of(cell for cell in cells if cell.strategy != "none").values()]


def locks_of(cells: Iterable[Cell]) -> dict[Lock, list[Cell]]:
    """The cells of each lock."""
    alike: dict[Lock, list[Cell]] = {}
    for cell in cells:
        alike.setdefault((cell.strategy, arguments_text(cell.args), cell.backend), []).append(cell)
    return alike


def _probe_cell(cells: Sequence[Cell]) -> Cell:
    """The probe of the lock of all `cells`: as most threads, keys a grant and entries as any of them has."""
    first = cells[0]
    threads = max(cell.threads for cell in cells)
    taken = max(cell.keys_per_grant for cell in cells)
    permits = CATALOGUE[first.strategy].permits(first.args)
    return replace(
        first,
        id=f"probe of {first.strategy}"
        + (f"({arguments_text(first.args)})" if first.args else "")
        + f" on {first.backend}",
        concurrency=max(control.CLIENTS_AT_LEAST, 2 * threads, 2 * permits),
        threads=threads,
        # With one key more than a grant takes, any two sets overlap, and differ: there a lock shows itself that takes
        # only a part of its set. Where all sets are the same, that part excludes as well as the whole.
        keys=1 if taken == 1 else taken + 1,
        keys_per_grant=taken,
        key_choice=KeyChoice("uniform"),
        read_share=min(max(cell.read_share for cell in cells), MOST_READERS),
        nesting=max(cell.nesting for cell in cells),
        hold=Distribution("fixed", (control.HOLD_NS,)),
        think=Distribution("fixed", (0,)),
        ttl_ms=max(LEAST_TTL_MS, *(cell.ttl_ms for cell in cells)),
        loop=ClosedLoop(),
        after_lease="continue",
        axes=(),
    )


def late_cell(probe: Cell) -> Cell | None:
    """The second part of `probe`: its holders outlive their leases, and what they release then is another's lock.

    Only there a lock shows itself that deletes without asking whose the key is, or whose guard takes late writes. None
    of a lock without such a lease.
    """
    strategy = CATALOGUE[probe.strategy]
    if strategy.lease_ms(LATE_TTL_MS) is None or strategy.judged_by is Judge.EFFECTS:
        return None
    return replace(
        probe,
        id=f"{probe.id}, with holders that outlive their leases",
        nesting=1,
        read_share=0.0,
        hold=Distribution("fixed", (LATE_HOLD_NS,)),
        ttl_ms=LATE_TTL_MS,
    )


def broken_when_late(record: TrialRecord) -> bool:
    """Whether the second part of a probe saw beliefs overlap that may not, or a late write that the guard took.

    That works overlap is no fault of a lock.
    """
    names = ("double_grants", "double_grants_after_overrun", "lost_updates", "surplus_updates")
    return promise_broken({name: record.row[name] for name in names}, Terms.recorded(record.row))


def probe_entry(cell: Cell, record: TrialRecord) -> dict[str, Any]:
    """What the probe `cell` came to: an element of the manifest's `probes`."""
    row = record.row
    verdict = Verdict(row["verdict"])
    if verdict is Verdict.SAFE and row["contended_grants"] < LEAST_CONTENDED:
        verdict = Verdict.UNDECIDED
    seen = judge(row, Terms.recorded(row), control_caught=True)
    # What breaks the promise first: of what holders did past their leases there may be hundreds before it.
    told = sorted(record.violations, key=lambda violation: violation["kind"] == "lease-overrun")
    sentences = [violation["sentence"] for violation in told[:SENTENCES_KEPT]]
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
            return f"its probe had only {contended} and proves nothing" if few else f"its probe: {seen}"


@dataclass(frozen=True, slots=True)
class Probed:
    """A judgement, and what the probe has to do with it."""

    judgement: Judgement
    by_probe: bool | None
    """Whether the verdict is the probe's; None where there was no probe."""
    reason: str | None
    """What the probe saw; None where the verdict is not its own."""

    def columns(self) -> dict[str, Any]:
        """As `trials.parquet` has it."""
        return {"judged_by_probe": self.by_probe, "probe_reason": self.reason}


def overruled(judgement: Judgement, row: Mapping[str, Any], probe: Mapping[str, Any] | None) -> Probed:
    """What `judgement` of the trial `row` becomes beside the `probe` of its lock, an entry of the manifest."""
    if probe is None:
        return Probed(judgement, by_probe=None, reason=None)
    own = Probed(judgement, by_probe=False, reason=None)
    seen, broken = Verdict(probe["verdict"]), bool(probe["promise_broken"])
    if judgement.verdict in {Verdict.UNSAFE, Verdict.VOID}:
        # A promise that the probe saw broken stays broken in a run that is VOID.
        return replace(own, judgement=replace(judgement, promise_broken=judgement.promise_broken or broken))
    contended = row["contended_grants"] or 0
    proves_little = bool(row["grants"]) and contended < LEAST_CONTENDED
    if broken or (seen is Verdict.UNSAFE and proves_little):
        unsafe = Judgement(Verdict.UNSAFE, probe["reason"], promise_broken=broken, bound_per_million=None)
        return Probed(unsafe, by_probe=True, reason=probe["reason"])
    if seen is Verdict.SAFE and proves_little and judgement.verdict is Verdict.SAFE:
        here = "not contended here" if row["concurrency"] == 1 else "too few contended grants here to tell"
        reason = f"{here}; {probe['reason']}"
        return Probed(replace(judgement, reason=reason, bound_per_million=None), by_probe=True, reason=reason)
    if judgement.verdict is Verdict.UNDECIDED and seen is Verdict.UNDECIDED:
        # A lock whose releases do nothing is granted hardly anything, here and there.
        return replace(own, judgement=replace(judgement, reason=f"{judgement.reason}; {probe['reason']}"))
    return own
