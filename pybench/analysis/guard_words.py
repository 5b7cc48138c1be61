"""Where the beliefs of holders and the effects of their guarded works disagree, in one clause.

Promises: says only what the counts show. Does not do: deciding the verdict; see `verdicts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pybench.numbers import plural

if TYPE_CHECKING:
    from pybench.matrix.guards import Guard

_OVERLAPS = ("double_grants", "double_grants_after_overrun", "sessions_lost", "lease_overruns")
_HARMS = {
    "lost_updates": ("lost update", "lost updates"),
    "surplus_updates": ("surplus update", "surplus updates"),
    "oversold": ("unit oversold", "units oversold"),
    "sum_error": ("unit of a wrong sum", "units of a wrong sum"),
}
_HARMLESS = {
    "counter": "no update was lost: none of these works wrote between the read and the write of another",
    "stock": "nothing was oversold: no two of these works took the last unit",
    "transfer": "no balance is wrong: none of these works wrote between the reads and the writes of another",
}


def belief_and_effects(totals: Mapping[str, int | None], guard: Guard) -> str:
    """What the effects say beside the beliefs; empty where both say the same, or nobody believed in anything."""
    if guard.kind not in _HARMLESS:
        return ""  # Of fenced-write the reason names both.
    if totals.get("final_value") is None:
        return "the final values of the guarded resource could not be read, so the effects are not known"
    overlaps = sum(totals.get(name) or 0 for name in _OVERLAPS)
    harms = [plural(count, *_HARMS[name]) for name in _HARMS if (count := totals.get(name) or 0)]
    if overlaps and not harms:
        refused = totals.get("refused_writes") or 0
        saved = f"nothing was oversold: the constraint refused {plural(refused, 'write')}" if refused else ""
        return f"{plural(overlaps, 'overlap')}, but {saved or _HARMLESS[guard.kind]}"
    if harms and not overlaps:
        return "no two holders believed in the lock at once, but their writes collided"
    if totals.get("acknowledged_writes") == 0 and not totals.get("unknown_writes"):
        return "no guarded write was acknowledged, so the effects prove nothing"
    return ""


def beside(reason: str, totals: Mapping[str, int | None], guard: Guard) -> str:
    """`reason`, which is about beliefs, with what the effects add to it."""
    clauses = [belief_and_effects(totals, guard), _unknown_writes(totals)] if guard else []
    return "; ".join(clause for clause in (reason, *clauses) if clause)


def _unknown_writes(totals: Mapping[str, int | None]) -> str:
    """A clause about guarded writes without a reply; empty where there are none."""
    count = totals.get("unknown_writes") or 0
    silent = plural(
        count, "guarded write had no reply, so its key proves", "guarded writes had no reply, so their keys prove"
    )
    return f"{silent} less" if count else ""
