"""All strategies by name, in the order in which the command line and the manual list them."""

from __future__ import annotations

from pybench.strategies import plain, postgres, quorum, shared, waiting
from pybench.strategies.entry import Strategy

CATALOGUE: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        *(plain.NONE, plain.ATOMIC, plain.NAIVE, plain.MUTEX, plain.WATCHDOG, shared.REENTRANT, shared.READ_WRITE),
        *(waiting.FAIR, waiting.FAIR_QUEUE, waiting.NOTIFY, shared.SEMAPHORE, plain.FENCED, plain.REPLICATED),
        *(quorum.REDLOCK, quorum.REDISSON_REDLOCK, quorum.MULTILOCK, quorum.REDISSON_MULTILOCK),
        *(postgres.ADVISORY, postgres.ROW, postgres.LEASE, postgres.OPTIMISTIC, postgres.SERIALIZABLE),
        postgres.LAYERED,
    )
}
