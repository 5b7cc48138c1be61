"""What the checker's counts mean: the verdict on a trial or a cell, each violation in words, a run's exit code.

Promises: no verdict is SAFE without a grant, without a caught control, or for a lock that promises nothing.
Does not do: finding violations; the core's checker does.

An acquire whose reply was lost ends as `unknown`, and its client does not believe that it holds the lock. The checker
therefore knows every belief, and lost replies leave no cell undecided. The exception is a lock that is judged by its
writes (`Judge`): a write without a reply may hide a lost update.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from pybench import exits
from pybench.analysis.evidence import LEAST_CONTENDED, too_little
from pybench.analysis.guard_words import beside
from pybench.analysis.send_delay import late_cells
from pybench.analysis.stats import bound_per_million
from pybench.analysis.terms import READ, Terms
from pybench.exits import Exit
from pybench.numbers import missing, plural, significant
from pybench.strategies import Exclusion, Judge, Promise

if TYPE_CHECKING:
    import pandas as pd

    from pybench.analysis.thresholds import ThresholdResult
    from pybench.core_results import Violation


Counts = Mapping[str, int | None]
"""The counts of a trial or a cell, by column."""


class Verdict(StrEnum):
    """What a cell's record proves about its lock."""

    SAFE = "SAFE"
    UNSAFE = "UNSAFE"
    UNDECIDED = "UNDECIDED"
    VOID = "VOID"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of violation. Where `promise` is given, the kind counts only for strategies with that promise.

    A kind that is an effect is found in the writes, and counts for locks that are judged by writes and for works that
    are guarded. A kind of progress counts for every lock. All other kinds count for locks that are judged by beliefs.
    """

    column: str
    """The name of the count in the totals of a trial and in `trials.parquet`."""
    name: str
    promise: Promise | None = None
    is_effect: bool = False
    is_progress: bool = False


KINDS = {
    "double-grant": Kind("double_grants", "double grant"),
    "double-grant-after-overrun": Kind("double_grants_after_overrun", "double grant after an overrun"),
    "session-lost": Kind("sessions_lost", "lost session"),
    "lease-overrun": Kind("lease_overruns", "lease overrun"),
    "stale-fence": Kind("stale_fences", "stale fence", Promise.FENCE),
    "fifo-inversion": Kind("fifo_inversions", "FIFO inversion", Promise.FIFO),
    "lost-update": Kind("lost_updates", "lost update", is_effect=True),
    "surplus-update": Kind("surplus_updates", "surplus update", is_effect=True),
    "oversell": Kind("oversold", "oversold unit", is_effect=True),
    "wrong-sum": Kind("sum_error", "unit of a wrong sum", is_effect=True),
    "stale-write": Kind("stale_writes_accepted", "accepted stale write", is_effect=True),
    "stalled-key": Kind("stalls", "stalled key", is_progress=True),
    "starved-client": Kind("starved", "starved client", Promise.FIFO),
    "denied-release": Kind("denied_releases", "denied release"),
    "abandoned-client": Kind("abandoned", "abandoned client", is_progress=True),
    "left-over-key": Kind("left_over_keys", "left-over key", is_progress=True),
    "missed-wake-up": Kind("missed_wake_ups", "missed wake-up", Promise.WAKE_UP),
}
"""By the core's name of the kind. The core finds neither the effects nor the kinds in `UNSEEN`."""

UNSEEN = ("abandoned-client", "left-over-key", "missed-wake-up")
"""Kinds that are counted after the trial: such a violation has no two grants and no point in time."""

UNSEEN_RIVALS = "several processes shared the keys, and the checker of each saw only the grants of its own clients"
"""Why a lock without a violation is undecided whose keys were shared by processes."""

_OF_SERVICE = [KINDS["starved-client"]]
"""A kind of progress that only some locks promise to avoid: a cut connection may delay the wake-up of a client."""

_OF_PROGRESS = [KINDS[kind] for kind in ("stalled-key", "denied-release", "abandoned-client", "left-over-key")]

CIRCUMSTANCES = ("findings", "outlived", "unknown", "reconnects", "lost_calls")
"""Counts of a trial that show whether the lock or its surroundings may have caused a violation."""

_OVERLAPS = [KINDS[kind] for kind in ("double-grant", "double-grant-after-overrun", "session-lost", "lease-overrun")]

COUNTS = ("grants", "contended_grants", *(kind.column for kind in KINDS.values()))
"""The counts on which a verdict is based."""

EFFECTS = ("acknowledged_writes", "unknown_writes", "stale_writes", "refused_writes", "final_value")
"""Further counts of works that write; None for others, and where no final value was read."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason. Only SAFE has a `bound_per_million`, and only where grants were contended."""

    verdict: Verdict
    reason: str
    promise_broken: bool
    bound_per_million: float | None


def judge(totals: Counts, terms: Terms, *, control_caught: bool) -> Judgement:
    """Judge the counts of a trial or of a cell, `COUNTS`, and with them `EFFECTS` where belief is not the judge.

    Counts of kinds that do not count for such a lock may be missing, or None as in older records.
    A broken promise stays broken in a VOID run: a missed control only shows that the checker may overlook violations.
    """
    broken = promise_broken(totals, terms)
    verdict, reason = _verdict(totals, terms, control_caught=control_caught)
    bound = bound_per_million(chances(totals, terms)) if verdict is Verdict.SAFE else None
    if verdict in (Verdict.SAFE, Verdict.UNSAFE) and not terms.by_effects:
        reason = beside(reason, totals, terms.guard)
    if verdict in (Verdict.SAFE, Verdict.UNSAFE) and terms.under.text:
        reason = f"{reason}, {terms.under.text}"
    return Judgement(verdict, reason, broken, bound)


def broken_cells(trials: pd.DataFrame) -> set[str]:
    """The ids of the cells in which a lock broke its promise."""
    return {str(cell) for cell in trials.loc[trials["promise_broken"].fillna(value=False).astype(bool), "cell"]}


def chances(totals: Counts, terms: Terms) -> int:
    """How often a broken lock could have shown a violation; the bound of SAFE follows from this count.

    Only a stale write tests a guard. A client that waits for the lock does not.
    """
    return _count(totals, "stale_writes" if terms.judged_by is Judge.GUARD else "contended_grants")


def promise_broken(totals: Counts, terms: Terms) -> bool:
    """Whether violations lie inside what a strategy with these `terms` promises.

    A lease overrun alone breaks no promise: no lease promises exclusion after its end. A lost session breaks none
    either: such a lock is promised for the life of the session. A lock that is judged by its writes promises correct
    writes only. No strategy promises progress while its server restarts or does not reply, and findings prove nothing.
    Under faults a strategy is held to what `fault_promises` leaves of its promise.
    """
    if _count(totals, "findings"):
        return False
    under = terms.under
    disturbed = not under.progress or _any(totals, ("unknown", "reconnects", "lost_calls"))
    stuck = not disturbed and any(_count(totals, kind.column) for kind in _OF_PROGRESS)
    if terms.by_effects:
        return stuck or (under.data and any(_count(totals, kind.column) for kind in KINDS.values() if kind.is_effect))
    promised = [kind for kind in KINDS.values() if kind.promise in terms.promises and under.data]
    if any(_count(totals, kind.column) for kind in promised if not (disturbed and kind in _OF_SERVICE)):
        return True
    if _lost_effects(totals, terms):
        return True
    match terms.exclusion:
        case Exclusion.NOTHING:
            return False
        case Exclusion.WHILE_NOBODY_OUTLIVES:
            # A release after the lease may have deleted the lock of the next holder, whose release then finds no lock.
            overlapped = under.exclusion and _count(totals, "double_grants") > 0
            return overlapped or (stuck and not _count(totals, "outlived"))
        case Exclusion.ALWAYS:
            overlaps = ("double_grants", "double_grants_after_overrun")
            return stuck or (under.exclusion and _any(totals, overlaps))


def _lost_effects(totals: Counts, terms: Terms) -> bool:
    """Whether guarded works collided although each of their holders should have been alone.

    A holder that outlives its lease or its session, or that reads only a part of its replies, may write late; then only
    the overlap of beliefs could blame the lock.
    """
    promised = terms.exclusion is not Exclusion.NOTHING and terms.under.exclusion and terms.under.data
    late = ("outlived", "sessions_lost", "lease_overruns", "unknown", "reconnects", "lost_calls", "unknown_writes")
    if not (terms.guard and promised) or _any(totals, late):
        return False
    return any(_count(totals, kind.column) for kind in KINDS.values() if kind.is_effect)


def violations(totals: Counts, terms: Terms) -> int:
    """All violations in `totals`.

    A holder that outlives its lease while the key has no other holder is no violation. Neither is an order of service
    that the lock does not promise, or an overlap whose late writes a guard refused: reports show these as figures.
    """
    return sum(_count(totals, kind.column) for kind in _counted(terms))


def is_violation(finding: Violation, terms: Terms) -> bool:
    """Whether a finding of the checker is a violation for a strategy with these `terms`."""
    return KINDS[finding["kind"]] in _counted(terms)


def counts_of(trials: pd.DataFrame) -> dict[str, int | None]:
    """`COUNTS` and `EFFECTS` of a cell, summed over its `trials`; an effect that is unknown in some trial is None."""
    # As one array: a frame is slow to ask for one column of few rows after another.
    names = (*COUNTS, *EFFECTS)
    values = trials[list(names)].to_numpy(dtype=np.float64, na_value=np.nan)
    unknown = dict(zip(names, np.isnan(values).any(axis=0), strict=True))
    sums = zip(names, np.nansum(values, axis=0), strict=True)
    return {name: None if name in EFFECTS and unknown[name] else int(total) for name, total in sums}


def terms_of(trials: pd.DataFrame) -> Terms:
    """The terms of a cell; all its `trials` have the same terms."""
    return Terms.recorded({name: trials[name].iloc[0] for name in READ if name in trials.columns})


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of `verdicts`, which must not be empty."""
    return max(verdicts, key=(Verdict.SAFE, Verdict.UNDECIDED, Verdict.UNSAFE, Verdict.VOID).index)


def safe_rate(verdict: Verdict, grants_per_s: float | None) -> float | None:
    """Safe grants/s: `grants_per_s` where SAFE, 0 where UNSAFE, and None where safety is not known."""
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
    trials: pd.DataFrame,
    *,
    thresholds: Iterable[ThresholdResult],
    controls: Iterable[Mapping[str, Any]],
    probes: Iterable[Mapping[str, Any]] = (),
) -> Exit:
    """The exit code of a run by its `trials` (`trials.parquet`), and its `controls` and `probes` in the manifest.

    An undecided cell counts only where its lock promises something: without a promise there is nothing to decide.
    """
    codes = set()
    if trials["promise_broken"].any() or any(probe["promise_broken"] for probe in probes):
        codes.add(Exit.PROMISE_BROKEN)
    if not controls_caught(controls):
        codes.add(Exit.CONTROL_NOT_CAUGHT)
    if late_cells(trials):
        codes.add(Exit.GENERATOR_LATE)
    cells = [rows for _, rows in trials.groupby("cell")]
    if any(cell_verdict(rows) is Verdict.UNDECIDED for rows in cells if terms_of(rows).leave_something_to_decide):
        codes.add(Exit.UNDECIDED)
    if not all(result.passed for result in thresholds):
        codes.add(Exit.THRESHOLD_MISSED)
    return exits.first(codes)


def cell_verdict(trials: pd.DataFrame) -> Verdict:
    """The worst verdict of one cell's `trials`; UNDECIDED in place of SAFE where they are too little evidence.

    A trial without a grant is undecided, and so is a disturbed trial, which is run again. Neither weakens the evidence
    of the other trials.
    """
    verdicts = [Verdict(text) for text in trials["verdict"]]
    says = (trials["grants"] > 0) & (trials["status"] != "disturbed")
    proving = [
        verdict
        for verdict, says_something in zip(verdicts, says, strict=True)
        if says_something or verdict is not Verdict.UNDECIDED
    ]
    verdict = worst(proving or verdicts)
    return Verdict.UNDECIDED if verdict is Verdict.SAFE and too_little(trials) else verdict


def judge_cell(trials: pd.DataFrame, *, control_caught: bool, counts: Counts | None = None) -> Judgement:
    """The judgement on one cell by what its `trials` counted together, with the same verdict as `cell_verdict`.

    `counts` is `counts_of(trials)`, where that is known already.
    """
    totals = counts_of(trials) if counts is None else counts
    broken = bool(trials["promise_broken"].any())  # It depends on what else happened in the same trial.
    judgement = replace(judge(totals, terms_of(trials), control_caught=control_caught), promise_broken=broken)
    probed = probe_reason(trials) if control_caught else None
    if probed is not None and judgement.verdict is not Verdict.UNSAFE:
        verdict = cell_verdict(trials)
        if verdict is Verdict.UNSAFE or trials["contended_grants"].sum() < LEAST_CONTENDED:
            return Judgement(verdict, probed, broken, None)
    lacking = too_little(trials) if judgement.verdict is Verdict.SAFE else None
    if lacking is None:
        return judgement
    return Judgement(Verdict.UNDECIDED, lacking, judgement.promise_broken, None)


def probe_reason(trials: pd.DataFrame) -> str | None:
    """The reason of the lock's probe, where the probe decides any of a cell's `trials`."""
    if "probe_reason" not in trials:
        return None
    found = [str(reason) for reason in trials["probe_reason"] if not missing(reason)]
    return found[0] if found else None


def _counted(terms: Terms) -> list[Kind]:
    """The kinds that count as violations under `terms`."""
    kinds = [kind for kind in KINDS.values() if kind.is_progress or terms.count(effects=kind.is_effect)]
    return [kind for kind in kinds if kind.promise is None or kind.promise in terms.promises]


def _count(totals: Counts, column: str) -> int:
    return totals.get(column) or 0


def _any(totals: Counts, columns: Iterable[str]) -> bool:
    return any(_count(totals, column) for column in columns)


def _verdict(totals: Counts, terms: Terms, *, control_caught: bool) -> tuple[Verdict, str]:
    if not control_caught:
        return Verdict.VOID, "the control of this run was not caught, so nothing is proved"
    if _count(totals, "findings"):
        times = plural(_count(totals, "findings"), "time")
        return Verdict.UNDECIDED, f"the checker saw an impossible order of events {times}, so nothing is proved"
    if violations(totals, terms) > 0:
        return Verdict.UNSAFE, _named(totals, _counted(terms))
    if not totals["grants"]:
        return Verdict.UNDECIDED, "there was no grant"
    match terms.judged_by:
        case Judge.BELIEF if terms.exclusion is Exclusion.NOTHING:
            return Verdict.UNDECIDED, "the lock promises nothing, and no overlap was seen here"
        case Judge.PART:
            return Verdict.UNDECIDED, UNSEEN_RIVALS
        case Judge.BELIEF:
            return Verdict.SAFE, _none_seen("violations", totals)
        case Judge.EFFECTS | Judge.GUARD:
            gap = _gap_in_effects(totals)
            if gap:
                return Verdict.UNDECIDED, gap
            evidence = _none_let_through if terms.judged_by is Judge.GUARD else _none_seen
            return Verdict.SAFE, evidence("lost updates", totals) + _refused_beside(totals)


def _gap_in_effects(totals: Counts) -> str:
    """Why writes without a visible fault do not prove SAFE; empty where they do."""
    if totals["final_value"] is None:
        return "the lock is judged by its writes, and their sum was not read"
    if unknown := _count(totals, "unknown_writes"):
        return f"{plural(unknown, 'write')} had no reply, and could hide a lost update"
    wrote_nothing = totals.get("acknowledged_writes") == 0 and not _count(totals, "stale_writes")
    return "no write was acknowledged, so nothing is proved" if wrote_nothing else ""


def _none_seen(violations: str, totals: Counts) -> str:
    contended = _count(totals, "contended_grants")
    bound = bound_per_million(contended)
    if bound is None:
        return f"0 {violations} in {totals['grants']:,} grants, none of them contended"
    return f"0 {violations} in {contended:,} contended grants: {_true_rate(bound)}"


def _none_let_through(violations: str, totals: Counts) -> str:
    stale = _count(totals, "stale_writes")
    bound = bound_per_million(stale)
    if bound is None:
        return f"0 {violations} in {totals['grants']:,} grants, none of them with a stale write"
    return f"0 {violations} in {plural(stale, 'stale write')}: {_true_rate(bound)}"


def _true_rate(bound_per_million: float) -> str:
    return f"true rate at most {significant(bound_per_million / 1e4)} % (95 % confidence)"


def _refused_beside(totals: Counts) -> str:
    """The overlaps, and the stale writes that the guard refused, if there were any."""
    overlaps, stale = _named(totals, _OVERLAPS), _count(totals, "stale_writes")
    refused = plural(stale, "stale write was", "stale writes were") + " refused"
    return "".join(f"; {clause}" for clause in (overlaps, refused if stale else "") if clause)


def _named(totals: Counts, kinds: Iterable[Kind]) -> str:
    counts = [(_count(totals, kind.column), kind.name) for kind in kinds]
    named = [f"{count:,} {name if count == 1 else _plural(name)}" for count, name in counts if count]
    # No share of the grants: grants are counted in the window, violations in the whole trial.
    return ", ".join(named)


def _plural(name: str) -> str:
    # The first noun takes the plural: double grants after an overrun.
    return name.replace("grant", "grants", 1) if "grant" in name else f"{name}s"
