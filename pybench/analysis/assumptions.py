"""The assumptions behind SAFE: healthy servers, contended grants or a probe; and the events a lock does not survive.

Promises: pure functions of the catalogue and of a row of the summary. An unknown strategy has no caveats and no badge
of its own.
Does not do: judging; see `pybench.analysis.verdicts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pybench.matrix.faults import recorded_faults
from pybench.notation import BadValue
from pybench.numbers import missing
from pybench.strategies import CATALOGUE, Arguments, Exclusion, Judge, Lease, Promise, Strategy, parse_strategy

NOT_CONTENDED = "not contended"
BY_PROBE = "judged by its probe"
HEALTHY = "healthy servers"


def caveats(strategy: Strategy, arguments: Arguments) -> tuple[str, ...]:
    """The events after which two clients may hold the lock (or an update may be lost), as noun phrases."""
    return (*strategy.lost_by, *_by_arguments(strategy, arguments), *_past_lease(strategy, arguments))


def when_holder_dies(strategy: Strategy, arguments: Arguments) -> str:
    """When the lock of a dead holder is free again, as a clause; empty for a lock that excludes nobody."""
    if strategy.lease is not Lease.NONE:
        whole = ", rounded up to whole seconds" if strategy.lease is Lease.WHOLE_SECONDS else ""
        return f"a dead holder's lock is free again within one ttl{whole}"
    promised = strategy.with_arguments(arguments).exclusion is not Exclusion.NOTHING
    return "a dead holder's lock is free again once the server sees its connection end" if promised else ""


def would_not_survive(strategy: Strategy, arguments: Arguments) -> str:
    """`caveats` as one clause; empty where there are none."""
    phrases = caveats(strategy, arguments)
    return f"would not survive {_either(phrases)}" if phrases else ""


def badges(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """The badges of a SAFE row in a table, a few words each; a row that is not SAFE has none.

    `row` is one of the summary: `strategy`, `args`, `verdict`, `contended_grants`, and `judged_by_probe` where the run
    had probes.
    """
    if row["verdict"] != "SAFE":
        return ()
    return tuple(filter(None, (servers_of(row), _evidence(row), _condition(row))))


def servers_of(row: Mapping[Any, Any]) -> str:
    """Under what a verdict on `row` was found: `healthy servers`, or the faults, as in `under kill redis[0]`."""
    return recorded_faults(row.get("faults")).under or HEALTHY


def entry_of(row: Mapping[Any, Any]) -> tuple[Strategy, Arguments] | None:
    """The catalogue's entry for the lock of `row`, and its arguments; None for a lock of another version."""
    known = CATALOGUE.get(str(row["strategy"]))
    if known is None:
        return None
    args = row.get("args")
    try:
        return known, parse_strategy(f"{known.name}({args})")[1] if args and not missing(args) else ()
    except BadValue:
        return None


def _evidence(row: Mapping[Any, Any]) -> str:
    probed = row.get("judged_by_probe")
    if not missing(probed) and bool(probed):
        return BY_PROBE
    contended = row.get("contended_grants")
    return NOT_CONTENDED if not missing(contended) and not contended else ""


def _condition(row: Mapping[Any, Any]) -> str:
    """The badge of a lock whose exclusion holds under a condition only."""
    known = entry_of(row)
    conditional = known is not None and known[0].exclusion is Exclusion.WHILE_NOBODY_OUTLIVES
    return "only while no client crashes or works past the ttl" if conditional else ""


def _by_arguments(strategy: Strategy, arguments: Arguments) -> tuple[str, ...]:
    found = []
    if strategy.argument("scope", arguments) == "session":
        found.append("a pooler in transaction mode")
    if strategy.argument("session", arguments) == "shared":
        found.append("two clients that share a session")
    if strategy.argument("synchronous_commit", arguments) == "off" and _lives_in_commits(strategy):
        found.append("a crash of the server (synchronous_commit=off)")
    return tuple(found)


def _lives_in_commits(strategy: Strategy) -> bool:
    """Whether a committed write carries the lock: its grant, or the update that the lock guards."""
    return strategy.judged_by is not Judge.BELIEF or strategy.lease is not Lease.NONE


def _past_lease(strategy: Strategy, arguments: Arguments) -> tuple[str, ...]:
    # A guard refuses late writes, so work past the lease does no harm.
    if strategy.lease is Lease.NONE or strategy.judged_by is Judge.GUARD:
        return ()
    unguarded = " where the resource does not check the fence" if Promise.FENCE in strategy.promises else ""
    if not strategy.renews(arguments):
        return (f"work past the ttl{unguarded}",)
    longest = strategy.argument("max_hold_ms", arguments)
    capped = (f"work past max_hold_ms={longest}",) if longest else ()
    return (*capped, f"a holder that is paused past the ttl{unguarded}")


def _either(phrases: Sequence[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} or {phrases[-1]}"
