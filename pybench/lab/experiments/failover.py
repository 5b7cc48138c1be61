"""`failover`: the primary dies before its replica heard of a grant, and the replica takes its place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pybench.lab.contest import attempt, client_on, not_of_redis_alone, servers_of
from pybench.lab.experiment import About, Experiment
from pybench.lab.findings import Case, Expected, Figure

if TYPE_CHECKING:
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage

FIRST_WAITS = "300ms"
"""Longer than `replicated` waits for a replica that does not reply."""
SECOND_WAITS = "2s"
LAG_S = 0.0
"""The experiment itself decides when the primary dies."""


def _run(stage: Stage) -> Iterator[Case]:
    for number, lock in enumerate(stage.locks):
        yield _case(stage, lock, f"{stage.prefix}lock:{number}", another_confirms=False)
        if _replicas(lock):
            yield _case(stage, lock, f"{stage.prefix}lock:{number}:other", another_confirms=True)


def _case(stage: Stage, lock: ChosenLock, name: str, *, another_confirms: bool) -> Case:
    from pybench.servers import harm

    label = f"{lock.text}, other replica" if another_confirms else lock.text
    stage.note(label)
    replicas = max(1, _replicas(lock)) + another_confirms
    independent = servers_of(lock) - 1
    servers = [*stage.own_redis(replicas=replicas), *(stage.own_redis(independent) if independent else ())]
    failover = harm.Failover(stage.pool, servers[0], LAG_S, cut_replicas=1 if another_confirms else None)
    failover.cut()
    first_client = client_on(stage, lock, [server.endpoint for server in servers])
    with attempt(first_client, name, wait=FIRST_WAITS) as first:
        began = time.monotonic()
        failover.take_over()
        failover.end()
        away_ms = round((time.monotonic() - began) * 1e3, 3)
        second_client = client_on(stage, lock, [server.endpoint for server in servers])
        with attempt(second_client, name, wait=SECOND_WAITS) as second:
            is_double = first.holds and second.holds
            left_ms = first.left_ms
    if is_double:
        sentence = "the new primary granted the lock again while its first holder still had it"
    elif first.held is None:
        sentence = "the first client was refused: no replica confirmed its lock, so nothing was lost"
    else:
        sentence = "the second client was refused: too many servers still knew of the first one's lock"
    return Case(
        label=label,
        strategy=lock.text,
        expected=Expected.WRONG if another_confirms else _expected(lock),
        went_wrong=is_double,
        sentence=sentence,
        figures=(
            Figure("servers", "servers of the lock", len(servers)),
            Figure("replicas", "replicas of the first", replicas),
            Figure("first", "first client", "held the lock" if first.held is not None else "refused"),
            Figure("second", "second client", "held the lock too" if is_double else _word(second.held is not None)),
            Figure("first_left_ms", "lease of the first left", left_ms),
            Figure("away_ms", "primary away", away_ms),
        ),
        clients=(first.row, second.row),
    )


def _word(granted: bool) -> str:  # noqa: FBT001 - one fact, said in words
    return "held the lock" if granted else "refused"


def _replicas(lock: ChosenLock) -> int:
    assert lock.entry is not None, "only locks of the catalogue take part"
    return lock.entry.replicas(lock.arguments)


def _expected(lock: ChosenLock) -> Expected:
    if servers_of(lock) > 1:
        return lock.excludes
    return Expected.EITHER if _replicas(lock) else Expected.WRONG


FAILOVER = Experiment(
    name="failover",
    summary="A primary dies before its replica heard of a grant",
    steps=(
        "The link between a primary and each replica is cut. The first client takes the lock.",
        "The primary is killed, and a replica takes its place. The second client asks for the lock.",
        About(
            "other replica",
            "Other replica: all replicas but one confirmed the lock, and that one, whose link was cut, takes over.",
        ),
    ),
    learn="A lock on one primary is lost with what its replica was not told; most of several servers keep it.",
    run=_run,
    harms_servers=True,
    controls=("mutex",),
    strategies=("replicated", "redlock"),
    unfit=not_of_redis_alone,
)
