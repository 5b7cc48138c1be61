"""Locks of one server that notify their waiters, so that waiters need not poll."""

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
    promise="One holder at a time; a dead holder's lock is free within one ttl. Grants follow no order.",
    holds_under=(
        "As mutex. A consumer group hands the next ticket to the waiter that reads first, so that grants do not follow "
        "the order of arrival: FIFO inversions are counted and shown, and break no promise."
    ),
    when_to_use="To see what the pattern of many blog posts delivers.",
    when_not="Where the order matters: fair-queue keeps it, with fewer commands.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    acknowledges_places=True,
    owns_connection=True,
)

FAIR_QUEUE = Strategy(
    name="fair-queue",
    summary="First come, first served: a sorted set on the server's clock, and a wake-up list for each waiter.",
    commands=(
        "script: take the lock, or a place in the queue",
        "script: delete the lock, or hand it to the successor and wake that client",
    ),
    promise="One holder at a time, in order of arrival; a dead holder or waiter delays the others for a bounded time.",
    holds_under=(
        "As mutex. A waiter that died is skipped after three heartbeats. The lock of a dead holder is free after one "
        "ttl, and the next heartbeat of any waiter takes it: that is at most 1.25 beat_ms later. Arrival is the moment "
        "at which the server queued the client, not the moment at which the client asked."
    ),
    when_to_use="A hot lock whose waiters must not starve; its longest wait is short.",
    when_not="Rarely contended locks, which gain nothing. Many thousands of waiters: each holds a connection.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    promises=frozenset({Promise.FIFO}),
    acknowledges_places=True,
    owns_connection=True,
    parameters=(Parameter("beat_ms", Count(100, 60_000), 2_000, "Interval of a waiter's heartbeat, in milliseconds."),),
)

NOTIFY = Strategy(
    name="notify",
    summary="A mutex whose release publishes a message that wakes all waiters.",
    commands=(SET, "script: delete the key and PUBLISH"),
    promise="One holder at a time, and no wake-up is lost; a dead holder's lock is free within one ttl.",
    holds_under=(
        "As mutex. A refused client subscribes, tries once more, and then waits for the message or for the end of the "
        "lease; after a renewal it waits for the new end. One message wakes all waiters, and all but one try in vain: "
        "the report shows these attempts."
    ),
    when_to_use=(
        "Few waiters and long holds, with renew also longer than the ttl: waiters sleep, and a release wakes them at "
        "once."
    ),
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
