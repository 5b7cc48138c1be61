"""`restart`: a server that granted forgets the lock while exactly a majority holds it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pybench.lab.contest import ONCE, TTL, Attempt, attempt, client_on
from pybench.lab.experiment import Experiment, Lease, Parameter
from pybench.lab.findings import Case, Expected, Figure
from pybench.lab.locks import ChosenLock

if TYPE_CHECKING:
    from pybench.lab.stage import Stage
    from pybench.servers.redis.config import AppendFsync

REDLOCK = ChosenLock("redlock", (("nodes", 5),))
REACHED = 3
"""The first client reaches so many of the five servers: exactly a majority."""
LATER_S = 0.05
"""How much later than the longest ttl the server comes back."""


def _run(stage: Stage) -> Iterator[Case]:
    yield _case(stage, "restarts empty", "off", Expected.WRONG, ttl=TTL)
    yield _case(stage, "appendfsync always", "always", Expected.RIGHT, ttl=TTL)
    yield _case(stage, "delayed restart", "off", Expected.RIGHT, ttl=stage.length("ttl"), is_delayed=True)


def _case(
    stage: Stage, label: str, appendfsync: AppendFsync, expected: Expected, *, ttl: str, is_delayed: bool = False
) -> Case:
    from pybench.servers import Endpoint, harm
    from pybench.servers.supervised import LOOPBACK, free_port

    stage.note(label)
    name = f"{stage.prefix}lock:{label.replace(' ', '-')}"
    servers = stage.own_redis(5, appendfsync=appendfsync)
    everywhere = [server.endpoint for server in servers]
    # On a port of loopback where nobody listens, the first client finds no server.
    nowhere = [Endpoint(host=LOOPBACK, port=free_port()) for _ in servers[REACHED:]]
    kill = harm.Kill(stage.pool, servers[REACHED - 1])
    with attempt(client_on(stage, REDLOCK, [*everywhere[:REACHED], *nowhere]), name, ttl=ttl, wait="1s") as first:
        began = time.monotonic()
        kill.begin()
        if is_delayed:
            time.sleep(stage.at_most(stage.seconds("ttl") + LATER_S))
        kill.end()
        away_ms = round((time.monotonic() - began) * 1e3, 3)
        with attempt(client_on(stage, REDLOCK, everywhere), name, ttl=ttl, wait=ONCE) as second:
            is_double = first.holds and second.holds
            left_ms = first.left_ms
    return Case(
        label=label,
        strategy=REDLOCK.text,
        expected=expected,
        went_wrong=is_double,
        sentence=_sentence(first, second, is_double=is_double),
        figures=(
            Figure("first_on", "first client on servers", "1, 2, 3" if first.held is not None else "none"),
            Figure("restarted", "killed and started again", "server 3"),
            Figure("second", "second client", "refused" if second.held is None else "held the lock"),
            Figure("first_left_ms", "lease of the first left", left_ms),
            Figure("away_ms", "server away", away_ms),
        ),
        clients=(first.row, second.row),
    )


def _sentence(first: Attempt, second: Attempt, *, is_double: bool) -> str:
    if first.held is None:
        return f"the first client had no lock: {first.reason}"
    if is_double:
        return (
            "the server had forgotten the lock: the second client had a majority (3, 4, 5) beside the first (1, 2, 3)"
        )
    if second.held is None:
        return "the server still had the lock: the second client had no majority (4, 5)"
    return "the server came back when every lease from before had ended: the second client followed the first"


RESTART = Experiment(
    name="restart",
    summary="A server of a quorum forgets a lock that is held",
    steps=(
        "redlock on 5 servers. The first client reaches 1, 2 and 3 only, and holds the lock on exactly a majority.",
        "Server 3 is killed and started again. Then the second client asks all five servers.",
        "Delayed restart: server 3 stays away until the longest ttl, {ttl}, has passed.",
    ),
    learn="A quorum counts on servers that remember: write each grant to disk, or stay away for the longest ttl.",
    run=_run,
    harms_servers=True,
    parameters=(Parameter("ttl", Lease(), "1s", "The lease of the case with the delayed restart."),),
)
