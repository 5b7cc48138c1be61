"""Locks of one server that one client may hold more than once, or that several clients may share."""

from __future__ import annotations

from pybench.strategies.entry import Choice, Count, Exclusion, Lease, Parameter, Strategy
from pybench.strategies.plain import ONE_SERVER_LOST

REENTRANT = Strategy(
    name="reentrant",
    summary="A mutex that its holder may acquire again; it is free after as many releases.",
    commands=(
        "script: append the owner to the lock's list",
        "script: remove one entry of the list; the last one deletes it",
    ),
    promise="One holder at a time, however often it acquires; a dead holder's lock is free within one ttl.",
    holds_under=(
        "As mutex. Each entry resets the lease to a full ttl. A release by a client that is not the owner is refused."
    ),
    when_to_use="Code that holds a lock and calls code that acquires the same lock.",
    when_not="Where a nested acquire can be avoided: mutex sends fewer commands and exposes the mistake.",
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
            "Entries are counted by a script on the server (a call for each), or in the client (no call).",
        ),
    ),
)

READ_WRITE = Strategy(
    name="read-write",
    summary="Many readers or one writer, by scripts; each reader has a lease of its own.",
    commands=("script: acquire as reader or writer", "script: release"),
    promise="A writer holds the lock alone; a dead reader frees its share, and a dead writer the lock, within one ttl.",
    holds_under=(
        "As mutex. With prefer=readers, a steady stream of readers keeps writers out. With prefer=writers, a waiting "
        "writer keeps new readers out until it is granted or its registration expires."
    ),
    when_to_use="Many more reads than writes, and reads that are long enough to be worth sharing.",
    when_not="Short reads: each still costs two calls, and mutex is simpler.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    shares=True,
    parameters=(
        Parameter("prefer", Choice(("readers", "writers")), "readers", "Which side goes first when both wait."),
    ),
)

SEMAPHORE = Strategy(
    name="semaphore",
    summary="At most `permits` holders at a time, each with a lease of its own, in a sorted set.",
    commands=("script: remove expired holders; add the client if a permit is free", "script: remove the client"),
    promise="At most `permits` holders at a time; a dead holder's permit is free within one ttl.",
    holds_under="As mutex. Only the server's clock decides when a lease ends.",
    when_to_use="To limit how many clients do something at once: calls to a partner, exports, connections.",
    when_not="With one permit: mutex does the same for less.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    parameters=(Parameter("permits", Count(1, 1_000), 4, "Holders at a time."),),
)
