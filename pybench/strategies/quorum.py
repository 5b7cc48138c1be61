"""Locks over several servers that know nothing of each other."""

from __future__ import annotations

from pybench.strategies.entry import Choice, Count, Exclusion, Family, Lease, Number, Parameter, Strategy
from pybench.strategies.plain import ONE_SERVER_LOST, RELEASE, SET

QUORUM_LOST = ("a server that restarts without its data within one ttl", "a clock jump")

_NODES = Parameter("nodes", Count(1, 32), 5, "Servers, each on its own.")

_QUORUM = (
    _NODES,
    Parameter(
        "fanout",
        Choice(("multiplexed", "sequential")),
        "multiplexed",
        "All are asked at once, or one after another as it was first written.",
    ),
    Parameter("drift_factor", Number(0, 0.1), 0.01, "The part of the lease left to clocks that differ; 2 ms more."),
    Parameter(
        "node_timeout_ms",
        Count(0, 600_000),
        0,
        "Milliseconds that each may take; 0: a tenth of the ttl, from 1 to 50.",
    ),
)
_WAIT_BUDGET = Parameter(
    "wait_budget_ms", Count(1, 600_000), 1_500, "Milliseconds that one round may wait for each of its locks."
)

REDLOCK = Strategy(
    name="redlock",
    summary="The same SET NX PX on several servers: held when more than half grant it in time.",
    commands=(SET, RELEASE),
    promise=(
        "One holder at a time, also while fewer than half of the servers are away; a dead holder's lock is free "
        "within one ttl."
    ),
    holds_under=(
        "What mutex survives, and a minority of servers that is down or cut off. Not a server that granted and comes "
        "back without its data within one lease, not clocks that jump, not work that goes on past the lease."
    ),
    when_to_use="Where locks must go on while a server is down, and nobody wants to run a consensus system.",
    when_not="Where a doubled grant does harm: use a fence. Where one server is enough: a mutex costs a fifth.",
    exclusion=Exclusion.ALWAYS,
    lost_by=QUORUM_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
    family=Family.SEVERAL_SERVERS,
    parameters=_QUORUM,
)

REDISSON_REDLOCK = Strategy(
    name="redisson-redlock",
    summary="Redlock as Redisson does it: one lock after another, and no look at how much lease is left.",
    commands=(SET, "PEXPIRE: set its lease anew", RELEASE),
    promise="Nothing that could be held against it: a lock may be returned that is over already.",
    holds_under=(
        "Crashes of clients and a minority of servers that is away, but only while taking all the locks is quick "
        "against the lease and work ends well inside it: nobody looks at the time, or at what the servers answer last."
    ),
    when_to_use="To learn what a program that uses it today may rely on.",
    when_not="In new code: redlock checks what is left of the lease, and Redisson has given it up.",
    exclusion=Exclusion.NOTHING,
    lost_by=(*QUORUM_LOST, "an acquire that takes long against the ttl"),
    lease=Lease.MILLISECONDS,
    family=Family.SEVERAL_SERVERS,
    allows_for_drift=False,
    parameters=(_NODES, _WAIT_BUDGET),
)

MULTILOCK = Strategy(
    name="multilock",
    summary="Redlock over a set of keys: on each server all of them or none.",
    commands=("script: SET every key NX PX, or none", "script: compare-and-delete every key"),
    promise=(
        "One holder at a time of each key of the set, no deadlock, also while fewer than half of the servers are "
        "away; a dead holder's keys are free within one ttl."
    ),
    holds_under="What redlock survives, and not what redlock does not. All keys of a grant share one lease.",
    when_to_use="Work on several things at once: both accounts of a transfer, all parts of an order.",
    when_not="Many keys that others want one by one: each refusal starts the whole set again.",
    exclusion=Exclusion.ALWAYS,
    lost_by=QUORUM_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
    family=Family.SEVERAL_SERVERS,
    takes_many_keys=True,
    parameters=_QUORUM,
)

REDISSON_MULTILOCK = Strategy(
    name="redisson-multilock",
    summary="A lock of locks as Redisson does it: one key after another in the order given, all or start again.",
    commands=(SET, "PEXPIRE: set its lease anew", RELEASE),
    promise="One holder at a time of each key of the set; a dead holder's keys are free within one ttl.",
    holds_under=(
        "Crashes and pauses of clients; one that dies while it is collecting leaves its keys for twice the wait "
        "budget. No server may be away: each key is on one of them. Two clients that name their keys in different "
        "orders wait for each other until a wait is over, give all back, and start again."
    ),
    when_to_use="To learn what a program that uses it today may rely on, and what sorted keys would save it.",
    when_not="Where clients name keys in any order, or a server may be down: take multilock.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    family=Family.SEVERAL_SERVERS,
    takes_many_keys=True,
    spreads_keys=True,
    parameters=(Parameter("nodes", Count(1, 32), 1, "Servers; each key is on one of them."), _WAIT_BUDGET),
)
