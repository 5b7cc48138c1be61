"""`fencing`: a write that is delayed on its way arrives after the next holder has written."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pybench.errors import ServerError
from pybench.lab.clients import client_row
from pybench.lab.experiment import About, Experiment, Parameter, Time
from pybench.lab.fence import STALE, checked_write
from pybench.lab.findings import Case, ClientRow, Expected, Figure
from pybench.lab.locks import needs_client
from pybench.servers.proxy import Proxy
from pybench.servers.redis.conversation import Conversation
from pybench.strategies import Count, Promise

if TYPE_CHECKING:
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage
    from pybench.lock_client import LockClient
    from pybench.servers import Server

FIRST_SELLS, SECOND_SELLS = 1, 3


class _Delayed(Proxy):
    """Keeps what a client sends until it is told to let it go."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.endpoint)
        self.keeps = False
        self.arrived = threading.Event()
        """Set when the server has replied to what was kept."""
        self._kept: list[tuple[socket.socket, bytes]] = []
        self._between = threading.Lock()

    def of_client(self, client: socket.socket, data: bytes) -> None:
        with self._between:
            if self.keeps:
                self._kept.append((client, data))
                return
        super().of_client(client, data)

    def of_server(self, client: socket.socket, data: bytes) -> None:
        super().of_server(client, data)
        if not self.keeps:
            self.arrived.set()

    def let_go(self) -> None:
        """Send what was kept."""
        with self._between:
            self.keeps = False
            self.arrived.clear()
            for client, data in self._kept:
                super().of_client(client, data)


class _Way(NamedTuple):
    """A lock, and whether the resource compares the fences of its grants."""

    lock: ChosenLock
    is_checked: bool

    @property
    def label(self) -> str:
        """The heading of its column."""
        return f"{self.lock.text} {'checked' if self.is_checked else 'unchecked'}"


def _run(stage: Stage) -> Iterator[Case]:
    (server,) = stage.redis()
    ways = [_Way(lock, is_checked) for lock in stage.locks for is_checked in _checks(lock)]
    for number, way in enumerate(ways):
        stage.note(way.label)
        client = stage.client(way.lock, connections=2)
        yield _case(stage, way, server, client, f"{stage.prefix}{number}:")


def _checks(lock: ChosenLock) -> tuple[bool, ...]:
    is_fenced = lock.entry is not None and Promise.FENCE in lock.entry.promises
    return (False, True) if is_fenced else (False,)


def _case(stage: Stage, way: _Way, server: Server, client: LockClient, prefix: str) -> Case:
    initial = stage.count("stock")
    value, name = f"{prefix}stock", f"{prefix}lock"
    rows: list[ClientRow] = []
    with server.conversation() as direct, _Delayed(server) as proxy:
        direct.ask("SET", value, str(initial), "EX", "86400")
        with Conversation(proxy.endpoint, seconds=stage.left_s) as delayed:
            delayed.log_in()
            began = time.monotonic()
            with client.lock(name) as held:
                first_fence = held.fence
                read = int(_number(delayed.ask("GET", value)))
                proxy.keeps = True
                delayed.allow(stage.seconds("reply-timeout"))
                # No reply in time: the writer gives up, and releases its lock as it should.
                with suppress(ServerError):
                    delayed.ask(*_write(way, value, read - FIRST_SELLS, first_fence))
            rows.append(client_row(began, locked=way.lock.keeps_out, before=read, error="no reply in time"))
            began = time.monotonic()
            with client.lock(name) as held:
                second_fence = held.fence
                again = int(_number(direct.ask("GET", value)))
                direct.ask(*_write(way, value, again - SECOND_SELLS, second_fence))
            right = again - SECOND_SELLS
            rows.append(client_row(began, locked=way.lock.keeps_out, before=again, after=right))
            proxy.let_go()
            stage.wait_until(proxy.arrived.is_set, what="the delayed write arrived")
        final = int(_number(direct.ask("GET", value)))
    is_wrong = final != right
    return Case(
        label=way.label,
        strategy=way.lock.text,
        expected=Expected.RIGHT if way.is_checked else Expected.WRONG,
        went_wrong=is_wrong,
        sentence=f"the delayed write was accepted: the stock is {final}, and the {SECOND_SELLS} sold later are lost"
        if is_wrong
        else f"the delayed write was refused: the stock is {final}, as the later writer left it",
        figures=(
            Figure("first_fence", "fence of the first", first_fence),
            Figure("second_fence", "fence of the second", second_fence),
            Figure("initial_stock", "initial stock", initial),
            Figure("after_second", "after the second", right),
            Figure("final_stock", "final stock", final),
        ),
        clients=tuple(rows),
    )


def _write(way: _Way, value: str, stock: int, fence: int | None) -> tuple[str, ...]:
    if not way.is_checked:
        return ("SET", value, str(stock), "EX", "86400")
    assert fence is not None, "a lock with fences has one for each grant"
    return checked_write(value, fence, "SET", stock)


def _number(reply: object) -> bytes:
    assert isinstance(reply, bytes), "the key was set before"
    assert reply != STALE, "only a write is refused"
    return reply


FENCING = Experiment(
    name="fencing",
    summary="A delayed write arrives after the next holder's",
    steps=(
        "The first writer holds the lock and sells 1 of {stock}; its write is delayed on its way to the resource.",
        "It has no reply within {reply-timeout}, gives up, and releases its lock. The second writer sells 3.",
        "Then the delayed write arrives.",
        About(" checked", "Checked: the resource refuses a fence lower than one it has seen."),
    ),
    learn="No lock can call back a write that is under way: only a resource that compares fences refuses it.",
    run=_run,
    strategies=("mutex", "fenced"),
    unfit=needs_client,
    parameters=(
        Parameter("stock", Count(4, 100_000), "10", "Pieces at the beginning."),
        Parameter("reply-timeout", Time(5_000_000_000), "200ms", "How long the first writer waits for its reply."),
    ),
)
