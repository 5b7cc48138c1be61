"""`transfer`: bank transfers between accounts, each under the locks of both."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pybench.errors import ServerError
from pybench.lab.clients import all_at_once, client_row
from pybench.lab.experiment import About, Experiment, Parameter, Time
from pybench.lab.findings import Case, ClientRow, Figure
from pybench.lab.locks import ChosenLock, needs_client
from pybench.numbers import plural
from pybench.strategies import Count

if TYPE_CHECKING:
    from pybench.lab.shop import Shop
    from pybench.lab.stage import Stage
    from pybench.lock_client import LockClient
    from pybench.service.stock import Stock

BALANCE = 1_000
MOST_MOVED = 100


@dataclass(slots=True)
class _Bank:
    """What the clients of one lock did."""

    done: int = 0
    stuck: int = 0
    """Transfers that did not get both locks."""
    rows: list[ClientRow] = field(default_factory=list)


def _run(stage: Stage) -> Iterator[Case]:
    from pybench.lab.shop import Shop

    shop = Shop.on(stage, "redis")
    for number, lock in enumerate(stage.locks):
        stage.note(lock.text)
        began = time.monotonic()
        if _takes_both(lock):
            bank, total = _transfers_at_once(stage, lock, number)
        else:
            bank, total = stage.run_async(_transfers(stage, shop, lock, number))
        yield _case(stage, lock, bank, total, (time.monotonic() - began) * 1e3)


def _takes_both(lock: ChosenLock) -> bool:
    """Whether one acquire of the lock takes both accounts. Such locks of Redis are measured by the core's clients."""
    from pybench.strategies import ServerKind

    entry = lock.entry
    return entry is not None and entry.takes_many_keys and entry.server_kinds == (ServerKind.REDIS,)


def _transfers_at_once(stage: Stage, lock: ChosenLock, number: int) -> tuple[_Bank, int]:
    """As `_transfers`, for as long as the window: each client takes both locks by one acquire."""
    from pybench.lab.measuring import measure
    from pybench.matrix.guards import Guard
    from pybench.matrix.values import Distribution

    measured = measure(
        stage,
        lock,
        prefix=f"{stage.prefix}{number}:",
        window_s=stage.seconds("window"),
        concurrency=stage.count("concurrency"),
        keys=stage.count("accounts"),
        keys_per_grant=2,
        key_order="sorted",
        hold=Distribution("fixed", (stage.count("work"),)),
        guard=Guard("transfer", BALANCE),
    )
    if measured.values is None:
        raise ServerError("the accounts are gone", hint="does the server still run?")
    # Each transfer writes two accounts.
    done = measured.result.totals["acknowledged_writes"] // 2
    return _Bank(done=done), int(measured.values.sum())


async def _transfers(stage: Stage, shop: Shop, lock: ChosenLock, number: int) -> tuple[_Bank, int]:
    """All transfers, and what is on all accounts afterwards."""
    names = [f"account-{account}" for account in range(stage.count("accounts"))]
    client = stage.client(lock, connections=2 * stage.count("concurrency"))
    bank = _Bank()
    async with shop.opened() as stock:
        for name in names:
            await stock.reset(name, BALANCE)
        prefix = f"{stage.prefix}{number}:"
        await all_at_once(
            _client(stage, stock, client, prefix, names, random.Random(seed), bank)
            for seed in range(stage.count("concurrency"))
        )
        left = [await stock.read(name) for name in names]
    return bank, sum(balance or 0 for balance in left)


async def _client(
    stage: Stage,
    stock: Stock,
    client: LockClient,
    prefix: str,
    names: list[str],
    chance: random.Random,
    bank: _Bank,
) -> None:
    from pybench.lock_client import NotAcquired

    # While a client waits for its second lock it holds the first.
    ttl = stage.lease_beyond("wait", "work")
    for _ in range(stage.count("transfers")):
        source, target = chance.sample(names, 2)
        began = time.monotonic()
        error = None
        try:
            async with AsyncExitStack() as locks:
                for name in sorted((source, target)):
                    await locks.enter_async_context(client.lock(f"{prefix}{name}", ttl=ttl, wait=stage.length("wait")))
                await _move(stage, stock, source, target, chance.randint(1, MOST_MOVED))
                bank.done += 1
        except NotAcquired:
            bank.stuck += 1
            error = "Lock not acquired"
        bank.rows.append(client_row(began, locked=error is None and client.strategy != "none", error=error))


async def _move(stage: Stage, stock: Stock, source: str, target: str, amount: int) -> None:
    """Read both balances, work, and write what was computed from them."""
    sales = {name: stock.sale(name) for name in (source, target)}
    before = {name: await sale.read() or 0 for name, sale in sales.items()}
    await asyncio.sleep(stage.seconds("work"))
    moved = min(amount, before[source])
    await sales[source].write(before[source] - moved, moved, None, b"")
    await sales[target].write(before[target] + moved, -moved, None, b"")


def _case(stage: Stage, lock: ChosenLock, bank: _Bank, total: int, took_ms: float) -> Case:
    initial = BALANCE * stage.count("accounts")
    lost = initial - total
    if lost:
        sentence = f"the accounts held {initial:,} and hold {total:,}: {abs(lost):,} {'lost' if lost > 0 else 'made'}"
    else:
        sentence = f"{plural(bank.done, 'transfer')}, and the accounts still hold {initial:,}"
    if not bank.done:
        sentence = "no client got both locks"
    elif bank.stuck:
        sentence += f"; {plural(bank.stuck, 'transfer')} did not get both locks"
    return Case(
        label=f"{lock.text}, both at once" if _takes_both(lock) else lock.text,
        strategy=lock.text,
        expected=lock.excludes,
        went_wrong=bool(lost or bank.stuck or not bank.done),
        sentence=sentence,
        figures=(
            Figure("transfers", "transfers", bank.done),
            Figure("stuck", "without both locks", bank.stuck),
            Figure("initial_sum", "initial sum", initial),
            Figure("final_sum", "final sum", total),
            Figure("duration_ms", "duration", round(took_ms, 3)),
        ),
        clients=tuple(bank.rows),
    )


TRANSFER = Experiment(
    name="transfer",
    summary="Bank transfers under the locks of both accounts",
    steps=(
        "{concurrency} clients make {transfers:transfer} each between {accounts:account} with 1,000 on each.",
        "A transfer takes the locks of both accounts in sorted order, reads both, works for {work}, and writes both.",
        About(
            "both at once", "Both at once: one acquire of a multi-lock asks for both; its clients go on for {window}."
        ),
    ),
    learn="Work on two things needs both locks, in one order everywhere: then the sum stays and nobody is stuck.",
    run=_run,
    controls=("none",),
    strategies=("mutex", "multilock", "redisson-multilock"),
    unfit=needs_client,
    parameters=(
        Parameter("accounts", Count(2, 1_000), "4", "Accounts."),
        Parameter("concurrency", Count(2, 200), "8", "Clients, all at once."),
        Parameter("transfers", Count(1, 10_000), "10", "Transfers of each client."),
        Parameter("work", Time(), "2ms", "Work of a transfer between its reads and its writes."),
        Parameter("window", Time(), "500ms", "How long the clients of a multi-lock transfer."),
        Parameter("wait", Time(), "20s", "How long a client waits for each lock."),
    ),
)
