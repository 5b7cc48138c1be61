"""Locks of one server whose waiters are told instead of asking again and again."""

from __future__ import annotations

from dataclasses import replace

from pybench.strategies.entry import Count, Exclusion, Lease, Parameter, Promise, Strategy
from pybench.strategies.plain import ONE_SERVER_LOST, RELEASE, RENEW, SET

FAIR = Strategy(
    name="fair",
    summary="The published queue on a stream: a ticket, a blocking read by a consumer group, then SET NX PX.",
    commands=(
        "XADD queue * ticket",
        "XREADGROUP GROUP ... BLOCK queue >",
        SET,
        RELEASE,
        "XACK queue ticket",
        "XDEL queue ticket",
        "XTRIM queue",
    ),
    promise="One holder at a time; a dead holder's lock is free within one ttl. Not first come, first served.",
    holds_under=(
        "What mutex survives. A consumer group hands the next ticket to whichever waiter reads first, so its order is "
        "not that of arrival: FIFO inversions are counted and shown, and break no promise."
    ),
    when_to_use="To see what the pattern of many blog posts really gives.",
    when_not="Where the order counts: fair-queue keeps it, with fewer commands.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    acknowledges_places=True,
    owns_connection=True,
)

FAIR_QUEUE = Strategy(
    name="fair-queue",
    summary="First come, first served: a sorted set on the server's clock, and a doorbell for each waiter.",
    commands=("script: take it, or take a place", "script: delete it, or hand it on and ring"),
    promise="One holder at a time, in order of arrival; a dead holder or waiter is passed over within a stated time.",
    holds_under=(
        "What mutex survives. A waiter that died is skipped once its beat is overdue, a dead holder after one ttl. "
        "Arrival is when the server took the place in, not when the client asked."
    ),
    when_to_use="A hot lock whose unlucky waiters must not starve; its longest wait is short.",
    when_not="Rarely contended locks: they gain nothing. Many thousand waiters: each holds a connection.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    promises=frozenset({Promise.FIFO}),
    acknowledges_places=True,
    owns_connection=True,
    parameters=(
        Parameter("beat_ms", Count(100, 60_000), 2_000, "How often a waiter says, in milliseconds, that it lives."),
    ),
)

NOTIFY = Strategy(
    name="notify",
    summary="A mutex whose release publishes a message that wakes all who wait.",
    commands=(SET, "script: delete it and PUBLISH"),
    promise="One holder at a time, no wake-up is lost; a dead holder's lock is free within one ttl.",
    holds_under=(
        "What mutex survives. A loser subscribes, tries once more, then waits for the message or for the end of the "
        "lease, and where that was renewed meanwhile for the new end. One message wakes everybody, and all but one try "
        "in vain: the herd is shown."
    ),
    when_to_use="Few waiters and long holds, past a ttl with renew: they sleep, and the next one starts at once.",
    when_not="Many waiters on one lock: each release wakes all of them. fair-queue wakes one.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
    extends_lease=True,
    subscribes=True,
    promises=frozenset({Promise.WAKE_UP}),
    parameters=(replace(RENEW, default="off"),),
)
