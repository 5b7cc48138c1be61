"""`quorum`: two of five servers are down, then three: grants go on, and then are refused in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from pybench.lab.contest import ONCE, attempt, client_on
from pybench.lab.experiment import Experiment, Parameter
from pybench.lab.findings import Case, ClientRow, Expected, Figure
from pybench.lab.locks import ChosenLock
from pybench.numbers import format_seconds, plural
from pybench.strategies import Count

if TYPE_CHECKING:
    from pybench.lab.stage import Stage
    from pybench.lock_client import LockClient
    from pybench.servers import Server

MUTEX = ChosenLock("mutex")
NODES = 5
SPARE_MS = 40
"""How much longer than the node timeout a refusal may take, half of the time: the rest of the client's work."""
LONGEST_SPARE_MS = 500
"""And the longest of them, on a busy machine."""
PATIENCE = "1s"
"""With a majority a request may try again: on a busy machine a server that is up can miss the node timeout once."""


def _run(stage: Stage) -> Iterator[Case]:
    redlock = ChosenLock("redlock", (("nodes", NODES), ("node_timeout_ms", stage.count("node-timeout-ms"))))
    servers = stage.own_redis(NODES)
    for how in ("killed", "stopped"):
        yield _case(stage, MUTEX, servers[:1], how, down=1)
    for how in ("killed", "stopped"):
        yield _case(stage, redlock, servers, how, down=2)
        yield _case(stage, redlock, servers, how, down=3)


def _case(stage: Stage, lock: ChosenLock, servers: Sequence[Server], how: str, *, down: int) -> Case:
    from pybench.servers import harm

    has_majority = down < len(servers) - len(servers) // 2
    label = f"{lock.name}, {down} of {len(servers)} {how}"
    stage.note(label)
    client = client_on(stage, lock, [server.endpoint for server in servers])
    prefix = f"{stage.prefix}{lock.name}:{how}:{down}:"
    _acquired(client, f"{prefix}before", 1)  # All connections are up before any server is down.
    harms = [(harm.Kill if how == "killed" else harm.Pause)(stage.pool, server) for server in servers[-down:]]
    try:
        for one in harms:
            one.begin()
        # Without its only server a client waits for its reply timeout, and learns nothing new the second time.
        count = 1 if len(servers) == 1 else stage.count("grants")
        rows = _acquired(client, prefix, count, wait=PATIENCE if has_majority else ONCE)
    finally:
        for one in harms:
            one.end()
    granted = sum(row.lock_acquired for row in rows)
    took_ms = [row.duration_ms for row in rows]
    median_ms, longest_ms = round(median(took_ms), 3), max(took_ms)
    timeout_ms = stage.count("node-timeout-ms")
    if len(servers) == 1:
        went_wrong = granted == 0
        sentence = (
            f"the only server is {how}: no grant" if went_wrong else f"{plural(granted, 'grant')} without a server"
        )
    elif has_majority:
        went_wrong = granted < len(rows)
        sentence = f"{granted} of {plural(len(rows), 'request')} granted by the servers that are left"
    else:
        hung = median_ms > timeout_ms + SPARE_MS or longest_ms > timeout_ms + LONGEST_SPARE_MS
        went_wrong = granted > 0 or hung
        times = f"{format_seconds(median_ms / 1e3)} (median, longest {format_seconds(longest_ms / 1e3)})"
        sentence = f"no majority: refused after {times}, and nobody hung"
        if went_wrong:
            sentence = f"{plural(granted, 'grant')} without a majority; a request took {times}"
    return Case(
        label=label,
        strategy=lock.text,
        expected=Expected.WRONG if len(servers) == 1 else Expected.RIGHT,
        went_wrong=went_wrong,
        sentence=sentence,
        figures=(
            Figure("servers", "servers", len(servers)),
            Figure("down", "servers down", down),
            Figure("requests", "requests", len(rows)),
            Figure("granted", "granted", granted),
            Figure("refused", "refused", len(rows) - granted),
            Figure("median_ms", "median request", median_ms),
            Figure("longest_ms", "longest request", longest_ms),
        ),
        clients=tuple(rows),
    )


def _acquired(client: LockClient, prefix: str, count: int, *, wait: str = ONCE) -> list[ClientRow]:
    """What each of `count` requests gave, one after another, each for another lock: leftovers disturb none of them."""
    rows = []
    for number in range(count):
        with attempt(client, f"{prefix}{number}", ttl="5s", wait=wait) as tried:
            rows.append(tried.row)
    return rows


QUORUM = Experiment(
    name="quorum",
    summary="2 of 5 servers are down, then 3",
    steps=(
        "redlock on 5 servers, each with {node-timeout-ms} ms to reply. A client asks {grants:time}; "
        "without a majority each request is one attempt.",
        "Killed: connections to the server are refused. Stopped (SIGSTOP): connections stay open, and nobody replies.",
    ),
    learn="A majority keeps granting with 2 of 5 servers down; with 3 down no client waits long: it is refused.",
    run=_run,
    harms_servers=True,
    parameters=(
        Parameter("grants", Count(1, 1_000), "10", "Requests in each case."),
        Parameter("node-timeout-ms", Count(1, 10_000), "50", "How long a server may take to reply, in ms."),
    ),
)
