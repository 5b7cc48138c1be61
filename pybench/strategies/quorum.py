"""Locks over several independent servers."""

from __future__ import annotations

from pybench.strategies.entry import Choice, Count, Exclusion, Family, Lease, Number, Parameter, Strategy
from pybench.strategies.plain import ONE_SERVER_LOST, RELEASE, SET

QUORUM_LOST = (
    "a server that restarts without its data within one ttl",
    "a failover of a server that granted",
    "a clock jump",
)

_NODES = Parameter("nodes", Count(1, 32), 5, "Independent servers.")

_QUORUM = (
    _NODES,
    Parameter(
        "fanout",
        Choice(("multiplexed", "sequential")),
        "multiplexed",
        "Requests go to all servers at once, or to one after another as Redlock was first published.",
    ),
    Parameter("drift_factor", Number(0, 0.1), 0.01, "Clock-skew margin as a share of the lease; 2 ms are added."),
    Parameter(
        "node_timeout_ms",
        Count(0, 600_000),
        0,
        "Milliseconds that each server may take to reply; 0: a tenth of the ttl, from 1 to 50.",
    ),
)
_WAIT_BUDGET = Parameter(
    "wait_budget_ms", Count(1, 600_000), 1_500, "Milliseconds that one round may wait for each of its locks."
)

REDLOCK = Strategy(
    name="redlock",
    summary="The same SET NX PX on several independent servers; held when a majority grants it in time.",
    commands=(SET, RELEASE),
    promise=(
        "One holder at a time, also while a minority of the servers is down; a dead holder's lock is free within one "
        "ttl."
    ),
    holds_under=(
        "As mutex, and a minority of servers that is down or unreachable. Not: a server that granted and within "
        "one ttl restarts without its data or fails over, clock jumps, or work that continues past the lease."
    ),
    when_to_use="Locks must stay available while a server is down, and a consensus system is too much to operate.",
    when_not=(
        "Where a double grant does harm: use a fence. Where one server is enough: mutex sends a fifth of the commands."
    ),
    exclusion=Exclusion.ALWAYS,
    lost_by=QUORUM_LOST,
    lease=Lease.MILLISECONDS,
    deletes_on_release=True,
    family=Family.SEVERAL_SERVERS,
    parameters=_QUORUM,
)

REDISSON_REDLOCK = Strategy(
    name="redisson-redlock",
    summary="Redlock as Redisson implements it: one lock after another, without a check of the remaining lease.",
    commands=(SET, "PEXPIRE: reset the lease", RELEASE),
    promise="Nothing that a verdict could hold it to: the lock may be returned after its lease has ended.",
    holds_under=(
        "Crashes of clients and a minority of servers that is down, but only if the client takes all locks in a small "
        "part of the lease and the work ends well within it: the client checks neither the time nor the last replies."
    ),
    when_to_use="To learn what a program that uses RedissonRedLock today may rely on.",
    when_not="In new code: redlock checks the remaining lease, and Redisson has deprecated RedissonRedLock.",
    exclusion=Exclusion.NOTHING,
    lost_by=(*QUORUM_LOST, "an acquire that takes long against the ttl"),
    lease=Lease.MILLISECONDS,
    family=Family.SEVERAL_SERVERS,
    allows_for_drift=False,
    parameters=(_NODES, _WAIT_BUDGET),
)

MULTILOCK = Strategy(
    name="multilock",
    summary="Redlock for a set of keys: each server grants all keys or none.",
    commands=("script: SET every key NX PX, or none", "script: compare-and-delete every key"),
    promise=(
        "One holder at a time of each key of the set, and no deadlock, also while a minority of the servers is down; a "
        "dead holder's keys are free within one ttl."
    ),
    holds_under="As redlock. All keys of a grant share one lease.",
    when_to_use="Work on several things at once: both accounts of a transfer, all items of an order.",
    when_not="Many keys that other clients want one by one: each refusal restarts the whole set.",
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
    summary=(
        "Redisson's lock over several locks: one key after another, in the order given; a refusal restarts the set."
    ),
    commands=(SET, "PEXPIRE: reset the lease", RELEASE),
    promise="One holder at a time of each key of the set; a dead holder's keys are free within one ttl.",
    holds_under=(
        "Crashes and pauses of clients; a client that dies while it takes its keys leaves them taken for twice the "
        "wait budget. Not: any server that is down, since each key is on one server. Two clients that name their keys "
        "in different orders wait for each other until a wait times out, release all keys, and start again."
    ),
    when_to_use=(
        "To learn what a program that uses RedissonMultiLock today may rely on, and what sorted keys would save it."
    ),
    when_not="Where clients name keys in any order, or a server may be down: use multilock.",
    exclusion=Exclusion.ALWAYS,
    lost_by=ONE_SERVER_LOST,
    lease=Lease.MILLISECONDS,
    family=Family.SEVERAL_SERVERS,
    takes_many_keys=True,
    spreads_keys=True,
    parameters=(Parameter("nodes", Count(1, 32), 1, "Servers; each key is on one of them."), _WAIT_BUDGET),
)
