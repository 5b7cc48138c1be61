"""Locks of one server that one client may hold more than once, or several at a time."""

from __future__ import annotations

from pybench.strategies.entry import Choice, Count, Exclusion, Lease, Parameter, Strategy
from pybench.strategies.plain import ONE_SERVER_LOST

REENTRANT = Strategy(
    name="reentrant",
    summary="A mutex that its holder may take again: it is free after as many releases.",
    commands=("script: enter, a list of the owner for each entry", "script: leave, gone with the last"),
    promise="One holder at a time, however often it enters; a dead holder's lock is free within one ttl.",
    holds_under=(
        "What mutex survives. The lease is set anew by each entry, and a release by anybody but the owner is refused."
    ),
    when_to_use="Code that takes a lock and calls code which takes the same one.",
    when_not="Where entries can be kept apart: a plain mutex sends less and shows the mistake.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
    nests=True,
    parameters=(
        Parameter(
            "count",
            Choice(("server", "local")),
            "server",
            "Who counts the entries: a script on the server, one call each, or the client without a call.",
        ),
    ),
)

READ_WRITE = Strategy(
    name="read-write",
    summary="Many readers or one writer, by scripts; each reader has a lease of its own.",
    commands=("script: enter as reader or writer", "script: leave"),
    promise="A writer is alone; a dead reader frees its own share, a dead writer the lock, within one ttl.",
    holds_under=(
        "What mutex survives. With prefer=readers a steady stream of readers keeps writers out; with prefer=writers a "
        "waiting writer keeps new readers out until its turn or its lease."
    ),
    when_to_use="Many more reads than writes, and reads long enough to be worth sharing.",
    when_not="Short reads: each still costs two calls, and a mutex is simpler.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    shares=True,
    parameters=(Parameter("prefer", Choice(("readers", "writers")), "readers", "Who goes first when both want it."),),
)

SEMAPHORE = Strategy(
    name="semaphore",
    summary="At most so many holders at a time, each with a lease of its own in a sorted set.",
    commands=("script: drop what is over, add me if there is room", "script: remove me"),
    promise="At most as many holders as permits; a dead holder's permit is free again within one ttl.",
    holds_under="What mutex survives; leases are compared on the server's clock alone.",
    when_to_use="To bound how many do something at once: calls to a partner, exports, connections.",
    when_not="With one permit: a mutex does the same for less.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    parameters=(Parameter("permits", Count(1, 1_000), 4, "Holders at a time."),),
)
