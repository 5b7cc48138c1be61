"""What the checker's counts mean: the verdict on a trial or a cell, each violation in words, a run's exit code.

Promises: SAFE is never said where nothing was granted, of a lock that promises nothing, or without a caught control.
Does not do: finding violations; the core's checker does.

An acquire whose answer was lost ended as `unknown`, and its client never believed. The checker therefore knows every
belief, and answers that were lost make no cell undecided, unless what was written judges it (`Judge`): a write whose
answer was lost may hide an update that was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pybench import exits
from pybench.analysis.evidence import LEAST_CONTENDED, too_little
from pybench.analysis.lateness import late_cells
from pybench.analysis.stats import bound_per_million
from pybench.analysis.terms import COLUMNS, Terms
from pybench.exits import Exit
from pybench.numbers import missing, plural, significant
from pybench.strategies import Exclusion, Judge, Promise

if TYPE_CHECKING:
    import pandas as pd

    from pybench._core import Violation
    from pybench.analysis.thresholds import ThresholdResult


Counts = Mapping[str, int | None]
"""Of a trial or a cell, by column."""


class Verdict(StrEnum):
    """What a cell's record proves about its lock."""

    SAFE = "SAFE"
    UNSAFE = "UNSAFE"
    UNDECIDED = "UNDECIDED"
    VOID = "VOID"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of violation. `promise` is the one whose strategies alone it is counted of; None: of every strategy.

    An effect is seen in what was written, and counts where that is the judge. What concerns progress counts whatever
    judges. All others count where belief is the judge.
    """

    column: str
    """Its count in the totals of a trial and in `trials.parquet`."""
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
    "stalled-key": Kind("stalls", "stalled key", is_progress=True),
    "starved-client": Kind("starved", "starved client", Promise.FIFO),
    "denied-release": Kind("denied_releases", "denied release"),
    "abandoned-client": Kind("abandoned", "abandoned client", is_progress=True),
    "left-over-key": Kind("left_over_keys", "left-over key", is_progress=True),
    "missed-wake-up": Kind("missed_wake_ups", "missed wake-up", Promise.WAKE_UP),
}
"""By the core's word for it. The core does not find the effects, nor what is counted after the trial (`UNSEEN`)."""

UNSEEN = ("abandoned-client", "left-over-key", "missed-wake-up")
"""Kinds that are a count after the trial: no two grants belong to them, and no point in time."""

_OF_SERVICE = [KINDS["starved-client"]]
"""Promised by some, and a matter of progress all the same: whose connection is cut may hear late that its turn came."""

_OF_PROGRESS = [KINDS[kind] for kind in ("stalled-key", "denied-release", "abandoned-client", "left-over-key")]

CIRCUMSTANCES = ("findings", "outlived", "unknown", "reconnects", "lost_calls")
"""Counts of a trial that tell whose fault a violation may be."""

_OVERLAPS = [KINDS[kind] for kind in ("double-grant", "double-grant-after-overrun", "session-lost", "lease-overrun")]

COUNTS = ("grants", "contended_grants", *(kind.column for kind in KINDS.values()))
"""What a verdict is made of."""

EFFECTS = ("acknowledged_writes", "unknown_writes", "stale_writes", "final_value")
"""And this, where what was written judges; None elsewhere, and where nobody read it back."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its grounds. `bound_per_million` is given of SAFE only, and None without contended grants."""

    verdict: Verdict
    reason: str
    promise_broken: bool
    bound_per_million: float | None


def judge(totals: Counts, terms: Terms, *, control_caught: bool) -> Judgement:
    """Judge the counts of a trial or of a cell, `COUNTS`, and with them `EFFECTS` where belief is not the judge.

    Kinds of violation that do not count for such a lock may be missing, or None as in records of before there were any.
    A promise that was seen broken stays broken in a run that is VOID: a control that was missed takes proof away from
    what was not seen, not from what was.
    """
    broken = promise_broken(totals, terms)
    verdict, reason = _verdict(totals, terms, control_caught=control_caught)
    bound = bound_per_million(chances(totals, terms)) if verdict is Verdict.SAFE else None
    return Judgement(verdict, reason, broken, bound)


def chances(totals: Counts, terms: Terms) -> int:
    """How often a broken lock could have shown itself: what the bound of SAFE stands on.

    A guard is put to the test by a write that another came before, and not by who waited for the lock outside.
    """
    return _count(totals, "stale_writes" if terms.judged_by is Judge.GUARD else "contended_grants")


def promise_broken(totals: Counts, terms: Terms) -> bool:
    """Whether violations lie inside what a strategy with these `terms` promises.

    A lease overrun alone never does: the hold outlived the lease, and no lease promises anything for that. Nor does a
    lost session: the lock was held for as long as the session lived. What judges by effects promises those and no more.
    No strategy promises progress while its server restarts or does not answer, and findings prove nothing.
    """
    if _count(totals, "findings"):
        return False
    disturbed = _any(totals, ("unknown", "reconnects", "lost_calls"))
    stuck = not disturbed and any(_count(totals, kind.column) for kind in _OF_PROGRESS)
    if terms.by_effects:
        return stuck or any(_count(totals, kind.column) for kind in KINDS.values() if kind.is_effect)
    promised = [kind for kind in KINDS.values() if kind.promise in terms.promises]
    if any(_count(totals, kind.column) for kind in promised if not (disturbed and kind in _OF_SERVICE)):
        return True
    match terms.exclusion:
        case Exclusion.NOTHING:
            return False
        case Exclusion.WHILE_NOBODY_OUTLIVES:
            # A release after the lease may have deleted what another held: then that one's release finds nothing.
            return _count(totals, "double_grants") > 0 or (stuck and not _count(totals, "outlived"))
        case Exclusion.ALWAYS:
            return stuck or _any(totals, ("double_grants", "double_grants_after_overrun"))


def violations(totals: Counts, terms: Terms) -> int:
    """All violations in `totals`; holders that outlived their lease without meeting anybody are none.

    Nor is an order of service that nobody promised to keep, or an overlap of which a guard let nothing through: those
    are figures.
    """
    return sum(_count(totals, kind.column) for kind in _counted(terms))


def is_violation(found: Violation, terms: Terms) -> bool:
    """Whether what the checker found is a violation for a strategy with these `terms`."""
    return KINDS[found["kind"]] in _counted(terms)


def counts_of(trials: pd.DataFrame) -> dict[str, int | None]:
    """`COUNTS` and `EFFECTS` of a cell, over its `trials`; what one of them did not count, or nobody read, is None."""
    counts: dict[str, int | None] = {name: int(trials[name].sum()) for name in COUNTS}
    return counts | {name: None if trials[name].isna().any() else int(trials[name].sum()) for name in EFFECTS}


def terms_of(trials: pd.DataFrame) -> Terms:
    """Those of a cell, whose `trials` all have the same."""
    return Terms.recorded({name: trials[name].iloc[0] for name in COLUMNS})


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
    trials: pd.DataFrame,
    *,
    thresholds: Iterable[ThresholdResult],
    controls: Iterable[Mapping[str, Any]],
    probes: Iterable[Mapping[str, Any]] = (),
) -> Exit:
    """The exit code that a run earned by its `trials` (`trials.parquet`), its `controls` and its `probes`.

    Those are as the manifest has them.

    An undecided cell counts only where its strategy promises exclusion: where it does not, nothing was to be decided.
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

    A trial without a grant is undecided for itself and takes nothing from the proof of the others. Nor does one that
    something befell: it is run again.
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


def judge_cell(trials: pd.DataFrame, *, control_caught: bool) -> Judgement:
    """The judgement on one cell by what its `trials` counted together, with the same verdict as `cell_verdict`."""
    judgement = judge(counts_of(trials), terms_of(trials), control_caught=control_caught)
    probed = probe_reason(trials) if control_caught else None
    if probed is not None and judgement.verdict is not Verdict.UNSAFE:
        verdict = cell_verdict(trials)
        if verdict is Verdict.UNSAFE or trials["contended_grants"].sum() < LEAST_CONTENDED:
            broken = judgement.promise_broken or bool(trials["promise_broken"].any())
            return Judgement(verdict, probed, broken, None)
    lacking = too_little(trials) if judgement.verdict is Verdict.SAFE else None
    if lacking is None:
        return judgement
    return Judgement(Verdict.UNDECIDED, lacking, judgement.promise_broken, None)


def probe_reason(trials: pd.DataFrame) -> str | None:
    """What the probe of their lock saw, where it stands for any of a cell's `trials`."""
    if "probe_reason" not in trials:
        return None
    found = [str(reason) for reason in trials["probe_reason"] if not missing(reason)]
    return found[0] if found else None


def _counted(terms: Terms) -> list[Kind]:
    """The kinds that are violations; a guard compares fences itself, so that their order is no matter of the grants."""
    kinds = [kind for kind in KINDS.values() if kind.is_progress or kind.is_effect == terms.by_effects]
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
        return Verdict.UNDECIDED, f"the judge met an impossible order of events {times}, so nothing is proved"
    if violations(totals, terms) > 0:
        return Verdict.UNSAFE, _named(totals, _counted(terms))
    if not totals["grants"]:
        return Verdict.UNDECIDED, "nothing was granted"
    match terms.judged_by:
        case Judge.BELIEF if terms.exclusion is Exclusion.NOTHING:
            return Verdict.UNDECIDED, "it promises nothing, and nothing overlapped here"
        case Judge.BELIEF:
            return Verdict.SAFE, _none_seen("violations", totals)
        case Judge.EFFECTS | Judge.GUARD:
            hidden = _what_may_hide(totals)
            if hidden:
                return Verdict.UNDECIDED, hidden
            seen = _none_let_through if terms.judged_by is Judge.GUARD else _none_seen
            return Verdict.SAFE, seen("lost updates", totals) + _refused_beside(totals)


def _what_may_hide(totals: Counts) -> str:
    """Why nothing is proved by effects in which nothing is amiss; empty when something is."""
    if totals["final_value"] is None:
        return "what was written was not read back, and nothing else judges it"
    unknown = _count(totals, "unknown_writes")
    return f"no answer came to {plural(unknown, 'write')}, in which a lost update could hide" if unknown else ""


def _none_seen(what: str, totals: Counts) -> str:
    contended = _count(totals, "contended_grants")
    bound = bound_per_million(contended)
    if bound is None:
        return f"0 {what} in {totals['grants']:,} grants, none of them contended"
    return f"0 {what} in {contended:,} contended grants, at most {significant(bound)} per million at 95 %"


def _none_let_through(what: str, totals: Counts) -> str:
    stale = _count(totals, "stale_writes")
    bound = bound_per_million(stale)
    if bound is None:
        return f"0 {what} in {totals['grants']:,} grants, none of which came too late for its write"
    return f"0 {what} in {plural(stale, 'stale write')}, at most {significant(bound)} per million at 95 %"


def _refused_beside(totals: Counts) -> str:
    """What the guard had to see to, if anything: overlaps, and the late writes that it refused."""
    overlaps, stale = _named(totals, _OVERLAPS), _count(totals, "stale_writes")
    refused = plural(stale, "stale write was", "stale writes were") + " refused"
    return "".join(f"; {told}" for told in (overlaps, refused if stale else "") if told)


def _named(totals: Counts, kinds: Iterable[Kind]) -> str:
    counts = [(_count(totals, kind.column), kind.name) for kind in kinds]
    named = [f"{count:,} {name if count == 1 else _plural(name)}" for count, name in counts if count]
    # Not "in so many grants": those are of the window, violations of the whole trial.
    return ", ".join(named)


def _plural(name: str) -> str:
    # Of the first noun: double grants after an overrun.
    return name.replace("grant", "grants", 1) if "grant" in name else f"{name}s"
