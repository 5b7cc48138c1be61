"""`partition`: the holder is cut off from its servers, and works on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pybench.lab.cable import Cable
from pybench.lab.contest import attempt, client_on, not_of_redis_alone, servers_of
from pybench.lab.experiment import Experiment, Lease, Parameter
from pybench.lab.findings import Case, Expected, Figure
from pybench.strategies import Exclusion

if TYPE_CHECKING:
    from pybench.lab.contest import Attempt
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage

SPARE_S = 5.0
"""How much longer than the lease the second client waits."""
OVERLAP_S = 0.1
"""How long a holder that does not look works on beside the second one."""


def _run(stage: Stage) -> Iterator[Case]:
    for lock in stage.locks:
        for looks in (False, True):
            yield _case(stage, lock, looks=looks)


def _case(stage: Stage, lock: ChosenLock, *, looks: bool) -> Case:
    label = f"{lock.text}, {'looks' if looks else 'blind'}"
    stage.note(label)
    name, ttl = f"{stage.prefix}lock:{label.replace(' ', '-')}", stage.length("ttl")
    servers = stage.redis(servers_of(lock), replicas=_replicas(stage, lock))
    known_at: list[float] = []
    longest_s = stage.seconds("ttl") + SPARE_S
    with ExitStack() as stack:
        cables = [stack.enter_context(Cable(server.endpoint)) for server in servers]
        with attempt(client_on(stage, lock, [cable.endpoint for cable in cables]), name, ttl=ttl, wait="2s") as first:
            for cable in cables:
                cable.is_cut = True
            cut_at = time.monotonic()
            known = threading.Thread(target=_await_loss, args=(first, known_at, stage.at_most(longest_s)))
            known.start()
            second_client = client_on(stage, lock, [server.endpoint for server in servers])
            with attempt(second_client, name, wait=f"{stage.at_most(longest_s):.3f}s") as second:
                # By the clock of the first, which may hear of the end a little later.
                works_on = second.held is not None and (first.holds or not looks)
                if not looks:
                    time.sleep(OVERLAP_S)
                overlap_ms = (time.monotonic() - second.at) * 1e3 if works_on else 0.0
            known.join()
            # Otherwise the release of the first would wait for its reply.
            stack.close()
    granted_ms = None if second.held is None else round((second.at - cut_at) * 1e3, 3)
    know_ms = round((known_at[0] - cut_at) * 1e3, 3) if known_at else None
    return Case(
        label=label,
        strategy=lock.text,
        expected=_expected(lock) if looks else Expected.WRONG,
        went_wrong=works_on,
        sentence=_sentence(second, works_on=works_on),
        figures=(
            Figure("ttl_ms", "ttl", lock.lease_ms(stage.count("ttl"))),
            Figure("know_ms", "loss known after", know_ms),
            Figure("granted_ms", "second granted after", granted_ms),
            Figure("overlap_ms", "both worked for", round(overlap_ms, 3)),
        ),
        clients=(first.row, second.row),
    )


def _await_loss(first: Attempt, known_at: list[float], seconds: float) -> None:
    if first.held is not None and first.held.lost.wait(seconds):
        known_at.append(time.monotonic())


def _sentence(second: Attempt, *, works_on: bool) -> str:
    if second.held is None:
        return "the second client had no lock in time"
    if works_on:
        return "the second client had the lock while the first worked on"
    return "the first knew that its lease ended, and stopped before the second had the lock"


def _replicas(stage: Stage, lock: ChosenLock) -> int:
    assert lock.entry is not None, "only locks of the catalogue take part"
    return 0 if stage.given.redis else lock.entry.replicas(lock.arguments)


def _expected(lock: ChosenLock) -> Expected:
    entry = lock.entry
    is_promised = entry is not None and entry.with_arguments(lock.arguments).exclusion is Exclusion.ALWAYS
    return Expected.RIGHT if is_promised else Expected.EITHER


PARTITION = Experiment(
    name="partition",
    summary="The holder is cut off from its servers",
    steps=(
        "The first client holds the lock with a ttl of {ttl}. Then nothing passes between it and its servers.",
        "The second client waits for the lock. The first works on: blind to its lease, or until its lock says lost.",
    ),
    learn="A holder that is cut off has to count its lease itself, and to stop when it ends.",
    run=_run,
    strategies=("mutex", "watchdog", "redlock"),
    unfit=not_of_redis_alone,
    parameters=(Parameter("ttl", Lease(), "1s", "The lease."),),
)
