"""Locks of one server with one key and one holder: from no lock at all to one with a fence."""

from __future__ import annotations

from pybench.strategies.entry import Choice, Count, Exclusion, Family, Lease, Parameter, Promise, Strategy

SET, RELEASE = "SET key token NX PX ttl", "compare-and-delete key token"
ONE_SERVER_LOST = ("a restart that loses data", "a failover", "a clock jump")

NONE = Strategy(
    name="none",
    summary="No lock at all: everybody is granted at once.",
    commands=(),
    promise="Nothing. It is the control: a run whose checker does not catch it proves nothing.",
    holds_under="There is nothing to hold.",
    when_to_use="To see what the work costs without a lock, and that the checker sees what a lock prevents.",
    when_not="Wherever two holders at once do harm.",
    exclusion=Exclusion.NOTHING,
    lease=Lease.NONE,
    family=Family.CONTROL,
    server_kinds=(),
)

NAIVE = Strategy(
    name="naive",
    summary="SETNX, then EXPIRE; released by DEL without asking whose lock it is.",
    commands=("SETNX key 1", "EXPIRE key seconds", "DEL key"),
    promise="One holder at a time, but only while nobody crashes halfway and nobody outlives the lease.",
    holds_under=(
        "Honest clients and a server that keeps its data. A crash between SETNX and EXPIRE leaks the lock "
        "for ever; a holder who outlives its lease deletes the lock of the next one. The lease is rounded up to "
        "whole seconds."
    ),
    when_to_use="Never in new code; measure it to learn what replacing it costs and gains.",
    when_not="Wherever a process may be killed or paused: that is everywhere.",
    exclusion=Exclusion.WHILE_NOBODY_OUTLIVES,
    lost_by=("a client that dies between SETNX and EXPIRE (the lock then stays taken)", *ONE_SERVER_LOST),
    lease=Lease.WHOLE_SECONDS,
    deletes_on_release=True,
)

MUTEX = Strategy(
    name="mutex",
    summary="SET NX PX with a random token; released by compare-and-delete.",
    commands=(SET, RELEASE),
    promise="One holder at a time, and a dead holder's lock is free again within one ttl.",
    holds_under=(
        "Crashes and pauses of clients, lost connections and late answers. Not a server that loses its data (a "
        "restart without persistence, a failover), not clock jumps, not work that goes on past the lease."
    ),
    when_to_use="The default on one server: work that is shorter than the ttl, or that may be repeated.",
    when_not="Where work past the lease does harm: then the resource itself must refuse it (a fence).",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
)

WATCHDOG = Strategy(
    name="watchdog",
    summary="A mutex whose lease is renewed for as long as it is held.",
    commands=(SET, RELEASE),
    promise="One holder at a time, also for work longer than the ttl; a dead holder's lock is free within one ttl.",
    holds_under=(
        "What mutex survives. A holder that cannot renew in time is told that its lock is lost. Not a client that is "
        "stopped whole, its watchdog with it, and then works on past the lease."
    ),
    when_to_use="Work whose length nobody knows beforehand: a short ttl frees the lock soon after a crash.",
    when_not="Where a holder that hangs must lose its lock: say max_hold_ms, or take a mutex.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
    extends_lease=True,
    parameters=(
        Parameter("renewals_per_ttl", Count(2, 20), 3, "How often in a ttl the lease is set anew."),
        Parameter(
            "max_hold_ms",
            Count(0, 86_400_000),
            0,
            "Milliseconds of one hold after which it renews no more; 0: none.",
        ),
    ),
)

RENEW = Parameter("renew", Choice(("ttl/3", "off")), "ttl/3", "How often the lease is set anew while it is held.")

FENCED = Strategy(
    name="fenced",
    summary="A renewed mutex whose grant comes with a number that only grows: its fence.",
    commands=("script: SET key token NX PX ttl and INCR of the key's counter", RELEASE),
    promise="One holder at a time, each with a higher number than all before; a dead holder's lock is free in one ttl.",
    holds_under=(
        "What mutex survives; the numbers also outlast the lease, so that a resource which remembers the highest can "
        "refuse a late writer. Not a server that loses the counter."
    ),
    when_to_use="Where the guarded resource can compare the number: then work past the lease does no harm.",
    when_not="Where nobody looks at the number: it then costs a script and a key for nothing.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
    promises=frozenset({Promise.FENCE}),
    extends_lease=True,
    parameters=(RENEW,),
)

REPLICATED = Strategy(
    name="replicated",
    summary="A mutex that is held only once replicas have it too, by WAIT.",
    commands=(SET, "WAIT replicas timeout", RELEASE),
    promise="One holder at a time; a dead holder's lock is free again within one ttl.",
    holds_under=(
        "What mutex survives. A failover right after a grant is less likely to lose it, for so many replicas have "
        "it; a replica without it may be promoted all the same, so the window is narrowed, not closed."
    ),
    when_to_use="One server with replicas and automatic failover, where a doubled grant is rare enough to bear.",
    when_not="Where a failover must never grant twice: no form of asynchronous replication gives that.",
    exclusion=Exclusion.ALWAYS,
    lost_by=("a restart that loses data", "a failover to a replica that lacks the grant", "a clock jump"),
    lease=Lease.MILLISECONDS,
    owns_connection=True,
    parameters=(
        Parameter("replicas", Count(1, 8), 1, "Replicas that must have the grant."),
        Parameter("timeout_ms", Count(1, 60_000), 100, "How long they may take; then it is given back and refused."),
    ),
)
