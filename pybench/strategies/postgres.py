"""Locks of a Postgres server: its advisory locks, and locks made of the rows of a table."""

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
    summary="A Postgres advisory lock, on a number that is the hash of the lock's name.",
    commands=("SELECT pg_advisory_lock(key)", "SELECT pg_advisory_unlock(key)"),
    promise="One holder at a time, or many readers, for as long as the holder's session lives.",
    holds_under=(
        "Crashes and pauses of clients, and work of any length: there is no lease. Not: a lost session, because the "
        "lock is free at once and the holder notices only when it next uses its connection; two clients on one session "
        "(session=shared); and, with scope=session, a pooler that lends sessions per transaction."
    ),
    when_to_use="Postgres is in use already, each client keeps a session, and work may take any time.",
    when_not="Behind a pooler, unless scope=transaction. Thousands of waiters: each occupies a database session.",
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
            "scope",
            Choice(("session", "transaction")),
            "session",
            "The lock is held until it is unlocked, or until COMMIT.",
        ),
        Parameter(
            "wait", Choice(("block", "try")), "block", "Wait in the server's queue, or try again by the retry policy."
        ),
        Parameter(
            "session",
            Choice(("own", "shared")),
            "own",
            "A session per client, or one for several clients: a common mistake, which keeps no client out.",
        ),
        _LOCK_TIMEOUT,
    ),
)

ROW = Strategy(
    name="pg-row",
    summary="SELECT ... FOR UPDATE on the lock's row, in a transaction that stays open during the hold.",
    commands=("BEGIN; SELECT ... WHERE id = key FOR UPDATE", "COMMIT"),
    promise="One holder at a time of each row, or many readers, for as long as the holder's session lives.",
    holds_under=(
        "Crashes and pauses of clients, work of any length, and a pooler that lends sessions per transaction. Not: a "
        "session that is lost, or ended by idle_in_transaction_session_timeout. Clients that lock rows in different "
        "orders deadlock: the server ends one transaction, and its client tries again."
    ),
    when_to_use="The guarded resource is the row itself: the lock ends with the transaction that changes the row.",
    when_not="Long holds: an open transaction occupies a session, and keeps VACUUM from removing dead rows.",
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
            "Wait in the server's queue, or try again by the retry policy: nowait is refused with an error, "
            "skip-locked with no row.",
        ),
        _LOCK_TIMEOUT,
        _SYNCHRONOUS_COMMIT,
    ),
)

LEASE = Strategy(
    name="pg-lease",
    summary="A row with an owner and an expiry by the database's clock; each grant raises the row's fence.",
    commands=(
        "INSERT ... ON CONFLICT DO UPDATE ... WHERE expires_at <= clock_timestamp() RETURNING fence",
        "UPDATE ... SET owner = NULL WHERE owner = token",
    ),
    promise="One holder at a time, each with a higher fence; a dead holder's lock is free within one ttl.",
    holds_under=(
        "Crashes and pauses of clients, lost sessions, restarts of the server, and a pooler: each statement is a "
        "transaction of its own. Not: clock jumps of the server, or work that continues past the lease."
    ),
    when_to_use="A lock that must outlive sessions and restarts, and a fence against work that comes late.",
    when_not="Many grants per second: each grant writes, and its commit waits for the disk.",
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
    summary=(
        "No lock: a write succeeds only if the row still has the version that was read; otherwise the work is repeated."
    ),
    commands=("SELECT version ...", "UPDATE ... SET version = v + 1 WHERE version = v"),
    promise="No update is lost. Clients may work at the same time: the later write is refused.",
    holds_under="Everything that the database survives: one statement compares the version and writes.",
    when_to_use="Conflicts are rare, or the work is short and may be repeated.",
    when_not="A hot row: most of the work is done in vain. Work with effects outside of the database.",
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
    summary="No lock: a serializable transaction around the work, repeated when the database finds a conflict.",
    commands=("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT value ...", "UPDATE ... SET value = v + 1; COMMIT"),
    promise=(
        "No update is lost. Clients may work at the same time: of conflicting transactions all but one fail with 40001."
    ),
    holds_under=(
        "Everything that the database survives, for any reads and writes, if clients repeat each transaction that "
        "fails with 40001."
    ),
    when_to_use="Rules over several rows that no single lock guards, where conflicts are rare.",
    when_not="A hot row: most of the work is done in vain. Work with effects outside of the database.",
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
    summary="A mutex on Redis keeps contention away from the database; the row's own fence refuses late writes.",
    commands=(
        SET,
        "UPDATE ... SET fence = fence + 1 RETURNING fence",
        "SELECT value ...",
        "UPDATE ... SET value = v + 1 WHERE fence = mine",
        RELEASE,
    ),
    promise=(
        "No late write is accepted: once a later holder has a higher fence, the row refuses the write of an earlier "
        "one."
    ),
    holds_under=(
        "Everything that mutex survives, and also data loss in Redis, clock jumps, and work past the lease. Two "
        "holders may then work at once; the row accepts only the write of the later one."
    ),
    when_to_use=(
        "The data is in Postgres, contention is too high for the database alone, and a late write would do harm."
    ),
    when_not="A resource that cannot compare a fence. Low contention: the row alone needs fewer commands.",
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
