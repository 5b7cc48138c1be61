"""All experiments by name, in the order in which the command line and the manual list them."""

from __future__ import annotations

from pybench.lab.experiment import Experiment
from pybench.lab.experiments import (
    clock,
    crash,
    deadlock,
    failover,
    fencing,
    idempotency,
    leader,
    oversell,
    partition,
    pause,
    pooler,
    quorum,
    recipes,
    restart,
    retry,
    transfer,
    ttl_edge,
    watch,
)

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for one in (
        oversell.OVERSELL,
        ttl_edge.TTL_EDGE,
        crash.CRASH,
        deadlock.DEADLOCK,
        fencing.FENCING,
        idempotency.IDEMPOTENCY,
        transfer.TRANSFER,
        failover.FAILOVER,
        watch.WATCH,
        restart.RESTART,
        quorum.QUORUM,
        clock.CLOCK,
        pause.PAUSE,
        partition.PARTITION,
        leader.LEADER,
        retry.RETRY,
        recipes.RECIPES,
        pooler.POOLER,
    )
}
