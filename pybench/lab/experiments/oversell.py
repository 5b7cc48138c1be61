"""`oversell`: many buyers of the last pieces, without a lock, with locks, and with one atomic step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pybench.errors import InputError
from pybench.lab.experiment import About, Experiment, Parameter, Time
from pybench.lab.findings import Case, Expected, Figure
from pybench.lab.locks import needs_client
from pybench.numbers import plural
from pybench.strategies import Choice, Count

if TYPE_CHECKING:
    from pybench.lab.actors import Actor
    from pybench.lab.buying import Bought, Order
    from pybench.lab.experiment import Values
    from pybench.lab.locks import ChosenLock
    from pybench.lab.shop import Shop
    from pybench.lab.stage import Stage

ATOMIC = "atomic"


def _require(values: Values) -> None:
    if values["constraint"] and values["stock-on"] != "postgres":
        raise InputError("--constraint is about Postgres", hint="add --stock-on postgres")
    if values["stock"] >= values["concurrency"]:
        raise InputError("--stock is not less than --concurrency", hint="take more buyers than pieces")


def _run(stage: Stage) -> Iterator[Case]:
    from pybench.lab.buying import buyers
    from pybench.lab.shop import Shop, fill, left

    shop = Shop.on(stage, stage.word("stock-on"), constraint=stage.flag("constraint"))
    count = min(stage.count("processes"), stage.count("concurrency"))
    processes = [stage.actor(buyers, {}) for _ in range(count)]
    for number, lock in enumerate(stage.locks):
        stage.note(lock.text)
        stage.run_async(fill(shop, stage.count("stock")))
        bought = _bought(stage, shop, lock, number, processes)
        yield _case(stage, lock, bought, stage.run_async(left(shop)))


def _bought(stage: Stage, shop: Shop, lock: ChosenLock, number: int, processes: list[Actor]) -> list[Bought]:
    """What the buyers did: in this process, or shared out among processes."""
    from pybench.lab.buying import Bought, buy_all

    if not processes:
        return stage.run_async(buy_all(_order(stage, shop, lock, number, stage.count("concurrency"))))
    least, more = divmod(stage.count("concurrency"), len(processes))
    for place, process in enumerate(processes):
        process.tell(_order(stage, shop, lock, number, least + (place < more)).to_json())
    for process in processes:
        process.hear()
    for process in processes:
        process.tell({"start": True})
    return [Bought.from_json(one) for process in processes for one in process.hear()["bought"]]


def _order(stage: Stage, shop: Shop, lock: ChosenLock, number: int, share: int) -> Order:
    from pybench.lab.buying import Order

    return Order(
        shop=shop,
        client=None if lock.name == ATOMIC else stage.client_spec(lock, connections=share),
        # Locks of different kinds must not meet under one name.
        name=f"{stage.prefix}lock:{number}",
        buyers=share,
        work_s=stage.seconds("work"),
        ttl=stage.lease_beyond("work"),
        wait=stage.length("wait"),
    )


def _case(stage: Stage, lock: ChosenLock, bought: list[Bought], final: int) -> Case:
    from pybench.lab.buying import LOST, NO_LOCK, NO_STOCK, contention_share

    initial = stage.count("stock")
    sold = sum(one.row.success for one in bought)
    no_lock = sum(one.row.error == NO_LOCK for one in bought)
    # What else keeps a buyer from its piece is a write that the constraint refused.
    refused = sum(one.row.error not in {None, NO_LOCK, NO_STOCK, LOST} for one in bought)
    counted = initial - sold
    beyond = max(0, sold - initial)
    ends = [one.asked_ns + one.row.duration_ms * 1e6 for one in bought]
    duration_ms = (max(ends) - min(one.asked_ns for one in bought)) / 1e6
    if beyond:
        sentence = f"{sold} sold of {initial}: the stock is {final}"
    elif final != counted:
        sentence = f"{sold} sold of {initial}, and the stock is {final}, not {counted}"
    else:
        sentence = f"{sold} sold of {initial}, never more" + (
            f"; {plural(no_lock, 'buyer')} gave up waiting for the lock" if no_lock else ""
        )
        sentence += f"; the database refused {plural(refused, 'write')}" if refused else ""
    return Case(
        label=lock.text,
        strategy=lock.text if lock.entry is not None else None,
        # The constraint of the database refuses what would be too much, whatever the lock.
        expected=Expected.RIGHT if stage.flag("constraint") else lock.excludes,
        went_wrong=bool(beyond or final != counted),
        sentence=sentence,
        figures=(
            Figure("attempts", "attempts", len(bought)),
            Figure("successful", "successful", sold),
            Figure("failed_stock", "failed (stock)", len(bought) - sold - no_lock),
            Figure("failed_lock", "failed (lock)", no_lock),
            Figure("initial_stock", "initial stock", initial),
            Figure("final_stock", "final stock", final),
            Figure("expected_stock", "expected stock", max(0, initial - len(bought) + no_lock)),
            Figure("contention_share", "contention rate", contention_share(bought) if lock.entry else None),
            Figure("duration_ms", "duration", round(duration_ms, 3)),
        ),
        clients=tuple(one.row for one in bought),
    )


OVERSELL = Experiment(
    name="oversell",
    summary="Many buyers, few pieces: who sells too many",
    steps=(
        "{concurrency} buyers want one piece each of a product; the stock is {stock}.",
        "Each takes its lock and reads the stock. If that is enough, it works for {work}, and subtracts one.",
        About(ATOMIC, "atomic takes no lock: after the work, one step of the server checks and subtracts."),
    ),
    learn="Between a check and the write that relies on it, only a lock, or one atomic step, keeps others out.",
    run=_run,
    require=_require,
    controls=("none",),
    strategies=("mutex", ATOMIC),
    beside_locks=(ATOMIC,),
    unfit=needs_client,
    parameters=(
        Parameter("stock", Count(1, 100_000), "1", "Pieces at the beginning."),
        Parameter("concurrency", Count(2, 1_000), "50", "Buyers, all at once."),
        Parameter("processes", Count(0, 64), "0", "Processes that share the buyers; 0: this one."),
        Parameter("work", Time(), "20ms", "Work of a buyer between its read and its write."),
        Parameter("wait", Time(), "20s", "How long a buyer waits for its lock."),
        Parameter("stock-on", Choice(("redis", "postgres")), "redis", "Where the stock lives."),
        Parameter("constraint", None, default=False, meaning="Postgres: CHECK (stock >= 0)."),
    ),
)
