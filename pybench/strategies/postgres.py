"""Locks of a Postgres server: those that it has, and those that are made of a table's rows."""

from __future__ import annotations

from pybench.strategies.entry import (
    Choice,
    Count,
    Exclusion,
    Family,
    Judge,
    Lease,
    Parameter,
    Promise,
    ServerKind,
    Strategy,
)
from pybench.strategies.plain import RELEASE, SET

LOCK_TIMEOUT = "lock_timeout_ms"
SYNCHRONOUS_COMMIT = "synchronous_commit"
AS_THE_SERVER_HAS_IT = "server"

SESSION_LOST = ("a session that is lost (restart, failover, cut connection)",)

_LOCK_TIMEOUT = Parameter(
    LOCK_TIMEOUT,
    Count(0, 86_400_000),
    0,
    "Milliseconds after which the server ends a wait; 0: max_wait of the retry policy.",
    of_session=True,
)
_SYNCHRONOUS_COMMIT = Parameter(
    SYNCHRONOUS_COMMIT,
    Choice((AS_THE_SERVER_HAS_IT, "on", "off", "local", "remote_write", "remote_apply")),
    AS_THE_SERVER_HAS_IT,
    "What a commit waits for: its own disk, standbys, or nothing.",
    of_session=True,
)
_ONE_DATABASE = (ServerKind.POSTGRES,)

ADVISORY = Strategy(
    name="pg-advisory",
    summary="An advisory lock of the database on a number that is the hash of the lock's name.",
    commands=("SELECT pg_advisory_lock(key)", "SELECT pg_advisory_unlock(key)"),
    promise="One holder at a time, or many readers, for as long as the holder's session lives.",
    holds_under=(
        "Crashes and pauses of clients, work of any length: there is no lease. Not a session that is lost: the lock "
        "is free at once, and its holder learns of it when it next uses its connection. Not two clients on one session "
        "(session=shared), and with scope=session not a pooler that lends sessions by the transaction."
    ),
    when_to_use="Postgres is there already, clients keep a session each, and work may last as long as it likes.",
    when_not="Behind a pooler, unless scope=transaction. Thousands of waiters: each keeps a session of the database.",
    exclusion=Exclusion.ALWAYS,
    lost_by=SESSION_LOST,
    lease=Lease.NONE,
    family=Family.DATABASE,
    server_kinds=_ONE_DATABASE,
    shares=True,
    owns_connection=True,
    shares_connections=False,
    parameters=(
        Parameter(
            "scope", Choice(("session", "transaction")), "session", "It is held until unlocked, or until COMMIT."
        ),
        Parameter("wait", Choice(("block", "try")), "block", "In the server's queue, or by the retry policy."),
        Parameter(
            "session",
            Choice(("own", "shared")),
            "own",
            "Each client's own, or one of several clients: a classic mistake, which excludes nobody.",
        ),
        _LOCK_TIMEOUT,
    ),
)

ROW = Strategy(
    name="pg-row",
    summary="SELECT ... FOR UPDATE of the lock's row, in a transaction that stays open while it is held.",
    commands=("BEGIN; SELECT ... WHERE id = key FOR UPDATE", "COMMIT"),
    promise="One holder at a time of each row, or many readers, for as long as the holder's session lives.",
    holds_under=(
        "Crashes and pauses of clients, work of any length, a pooler that lends sessions by the transaction. Not a "
        "session that is lost or ended by idle_in_transaction_session_timeout. Clients that name rows in different "
        "orders deadlock: the server ends one of them, and it tries again."
    ),
    when_to_use="What is guarded is the row itself: the lock ends with the transaction that changes it.",
    when_not="Long holds: an open transaction keeps a session, and keeps VACUUM from its work.",
    exclusion=Exclusion.ALWAYS,
    lost_by=(*SESSION_LOST, "idle_in_transaction_session_timeout during a hold"),
    lease=Lease.NONE,
    family=Family.DATABASE,
    server_kinds=_ONE_DATABASE,
    uses_rows=True,
    shares=True,
    takes_many_keys=True,
    owns_connection=True,
    shares_connections=False,
    parameters=(
        Parameter(
            "wait",
            Choice(("block", "nowait", "skip-locked")),
            "block",
            "In the server's queue, or by the retry policy, which is told by an error or by no row.",
        ),
        _LOCK_TIMEOUT,
        _SYNCHRONOUS_COMMIT,
    ),
)

LEASE = Strategy(
    name="pg-lease",
    summary="A row with an owner and an end by the database's clock; each grant raises its fence.",
    commands=(
        "INSERT ... ON CONFLICT DO UPDATE ... WHERE expires_at <= clock_timestamp() RETURNING fence",
        "UPDATE ... SET owner = NULL WHERE owner = token",
    ),
    promise="One holder at a time, each with a higher fence; a dead holder's lock is free within one ttl.",
    holds_under=(
        "Crashes and pauses of clients, lost sessions, restarts of the server, and a pooler: each statement is a "
        "transaction of its own. Not clock jumps of the server, not work that goes on past the lease."
    ),
    when_to_use="A lock that has to outlive sessions and restarts, and a fence for work that may come late.",
    when_not="Many grants a second: each writes, and its commit waits for the disk.",
    exclusion=Exclusion.ALWAYS,
    lost_by=("a failover that loses commits", "a clock jump"),
    lease=Lease.MILLISECONDS,
    family=Family.DATABASE,
    server_kinds=_ONE_DATABASE,
    uses_rows=True,
    promises=frozenset({Promise.FENCE}),
    parameters=(_SYNCHRONOUS_COMMIT,),
)

OPTIMISTIC = Strategy(
    name="pg-optimistic",
    summary="No lock: the version that was read is asked for again by the write, and the work done again if it moved.",
    commands=("SELECT version ...", "UPDATE ... SET version = v + 1 WHERE version = v"),
    promise="No update is lost. Nobody is kept from working at the same time: the later write is refused.",
    holds_under="Everything that the database survives: one statement reads the version and writes.",
    when_to_use="Conflicts are rare, or the work is short and may be done twice.",
    when_not="A hot row: most of the work is done for nothing. Work with effects outside of the database.",
    exclusion=Exclusion.NOTHING,
    lost_by=("a failover that loses commits",),
    lease=Lease.NONE,
    family=Family.DATABASE,
    server_kinds=_ONE_DATABASE,
    uses_rows=True,
    judged_by=Judge.EFFECTS,
    parameters=(_SYNCHRONOUS_COMMIT,),
)

SERIALIZABLE = Strategy(
    name="pg-serializable",
    summary="No lock: a serializable transaction around the work, done again where the database finds a conflict.",
    commands=("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT value ...", "UPDATE ... SET value = v + 1; COMMIT"),
    promise="No update is lost. Nobody is kept from working at the same time: all but one of them fail with 40001.",
    holds_under="Everything that the database survives, of any reads and writes, if each 40001 is tried again.",
    when_to_use="Rules over several rows that no single lock guards, where conflicts are rare.",
    when_not="A hot row: most of the work is done for nothing. Work with effects outside of the database.",
    exclusion=Exclusion.NOTHING,
    lost_by=("a failover that loses commits",),
    lease=Lease.NONE,
    family=Family.DATABASE,
    server_kinds=_ONE_DATABASE,
    uses_rows=True,
    judged_by=Judge.EFFECTS,
    owns_connection=True,
    shares_connections=False,
    parameters=(_SYNCHRONOUS_COMMIT,),
)

LAYERED = Strategy(
    name="layered",
    summary="A mutex on Redis that spares the database the herd; the row's own fence refuses what comes late.",
    commands=(
        SET,
        "UPDATE ... SET fence = fence + 1 RETURNING fence",
        "SELECT value ...",
        "UPDATE ... SET value = v + 1 WHERE fence = mine",
        RELEASE,
    ),
    promise="No write of a holder that was passed is accepted, whatever becomes of Redis.",
    holds_under=(
        "All that mutex survives and all that it does not: data lost by Redis, clock jumps, work past the lease. Two "
        "may then be at work; the row takes the write of the one that came last."
    ),
    when_to_use="The truth is in Postgres, the crowd is too large for it, and a late write would do harm.",
    when_not="A resource that cannot compare a fence. Little contention: the row alone does with fewer commands.",
    exclusion=Exclusion.NOTHING,
    lost_by=("a failover of the database that loses commits", "a write that does not compare the fence"),
    lease=Lease.MILLISECONDS,
    family=Family.BOTH,
    server_kinds=(ServerKind.REDIS, ServerKind.POSTGRES),
    uses_rows=True,
    judged_by=Judge.GUARD,
    promises=frozenset({Promise.FENCE}),
    parameters=(_SYNCHRONOUS_COMMIT,),
)
