"""Locks of one server with one key and one holder: from no lock at all to one with a fence."""

from __future__ import annotations

from pybench.strategies.entry import Choice, Count, Exclusion, Family, Judge, Lease, Parameter, Promise, Strategy

SET, RELEASE = "SET key token NX PX ttl", "compare-and-delete key token"
ONE_SERVER_LOST = ("a restart that loses data", "a failover", "a clock jump")

NONE = Strategy(
    name="none",
    summary="No lock at all: every client is granted at once.",
    commands=(),
    promise="Nothing. It is the control: a run whose checker misses the overlaps of this strategy proves nothing.",
    holds_under="There is no promise to hold.",
    when_to_use="To measure the work without a lock, and to prove that the checker detects overlaps.",
    when_not="Wherever two holders at once do harm.",
    exclusion=Exclusion.NOTHING,
    lease=Lease.NONE,
    family=Family.CONTROL,
    server_kinds=(),
)

ATOMIC = Strategy(
    name="atomic",
    summary="No lock: the guarded work is one atomic step on the server of the resource.",
    commands=(),
    promise="No lost update and no oversell: the server checks and changes the resource in one step.",
    holds_under="Everything that the server of the resource survives. No client believes in anything.",
    when_to_use="Wherever the work fits into one step on the server: then no lock is needed at all.",
    when_not="Work that reads, then calls something else, then writes: that needs a lock, or a version to compare.",
    exclusion=Exclusion.NOTHING,
    lease=Lease.NONE,
    family=Family.ONE_STEP,
    server_kinds=(),
    judged_by=Judge.EFFECTS,
    needs_guard=True,
)

NAIVE = Strategy(
    name="naive",
    summary="SETNX, then EXPIRE; released by a DEL that does not check the owner.",
    commands=("SETNX key 1", "EXPIRE key seconds", "DEL key"),
    promise="One holder at a time, but only while no client crashes between commands and no holder outlives its lease.",
    holds_under=(
        "Clients that neither crash nor outlive their lease, and a server that keeps its data. A crash between SETNX "
        "and EXPIRE leaves the lock taken for ever. A holder that outlives its lease deletes the lock of the next "
        "holder. The lease is rounded up to whole seconds."
    ),
    when_to_use="Never in new code. Measure it to learn what a replacement costs and gains.",
    when_not="Wherever a process may be killed or paused, which is everywhere.",
    exclusion=Exclusion.WHILE_NOBODY_OUTLIVES,
    lost_by=("a client that dies between SETNX and EXPIRE (the lock then stays taken)", *ONE_SERVER_LOST),
    lease=Lease.WHOLE_SECONDS,
    deletes_on_release=True,
)

MUTEX = Strategy(
    name="mutex",
    summary="SET NX PX with a random token; released by compare-and-delete.",
    commands=(SET, RELEASE),
    promise="One holder at a time; a dead holder's lock is free within one ttl.",
    holds_under=(
        "Crashes and pauses of clients, lost connections and late replies. Not: a server that loses its data (a "
        "crash that loses writes, a failover), clock jumps, or work that continues past the lease."
    ),
    when_to_use="The default on one server: the work is shorter than the ttl, or may be repeated.",
    when_not="Where work past the lease does harm: then the resource itself must refuse late work (with a fence).",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
)

WATCHDOG = Strategy(
    name="watchdog",
    summary="A mutex with auto-renewal: the lease is extended for as long as the lock is held.",
    commands=(SET, RELEASE),
    promise="One holder at a time, also for work longer than the ttl; a dead holder's lock is free within one ttl.",
    holds_under=(
        "As mutex. A holder that cannot renew in time is notified that its lock is lost. Not: a client that is stopped "
        "together with its watchdog, and then continues its work past the lease."
    ),
    when_to_use="Work of unknown length: a short ttl frees the lock soon after a crash.",
    when_not="Where a hung holder must lose its lock: set max_hold_ms, or use mutex.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
    extends_lease=True,
    parameters=(
        Parameter("renewals_per_ttl", Count(2, 20), 3, "Renewals of the lease per ttl."),
        Parameter(
            "max_hold_ms",
            Count(0, 86_400_000),
            0,
            "Auto-renewal stops after a hold of so many milliseconds; 0: no limit.",
        ),
    ),
)

RENEW = Parameter("renew", Choice(("ttl/3", "off")), "ttl/3", "Interval of auto-renewal while the lock is held.")

FENCED = Strategy(
    name="fenced",
    summary="A mutex with auto-renewal; each grant carries a fencing token, a number that only grows.",
    commands=("script: SET key token NX PX ttl and INCR of the key's counter", RELEASE),
    promise=(
        "One holder at a time, each with a higher fence than all before; a dead holder's lock is free within one ttl."
    ),
    holds_under=(
        "As mutex. Fences also outlast the lease, so that a resource which remembers the highest fence can refuse a "
        "late writer. Not: a server that loses the counter."
    ),
    when_to_use="Where the guarded resource can compare fences: then work past the lease does no harm.",
    when_not="Where no resource compares the fence: it then costs a script and a key for nothing.",
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
    summary="A mutex that counts as granted once replicas have acknowledged it, by WAIT.",
    commands=(SET, "WAIT replicas timeout", RELEASE),
    promise="One holder at a time; a dead holder's lock is free within one ttl.",
    holds_under=(
        "As mutex. A failover right after a grant is less likely to lose the lock, because replicas already have it. A "
        "replica without the grant may still be promoted: the window is narrower, not closed."
    ),
    when_to_use="One server with replicas and automatic failover, where a rare double grant is acceptable.",
    when_not="Where a failover must never grant twice: asynchronous replication cannot guarantee that.",
    exclusion=Exclusion.ALWAYS,
    lost_by=("a restart that loses data", "a failover to a replica that lacks the grant", "a clock jump"),
    lease=Lease.MILLISECONDS,
    owns_connection=True,
    parameters=(
        Parameter("replicas", Count(1, 8), 1, "Replicas that must acknowledge the grant."),
        Parameter(
            "timeout_ms",
            Count(1, 60_000),
            100,
            "Milliseconds to wait for replicas; then the key is released and the attempt refused.",
        ),
    ),
)
