"""`crash`: a process is killed between `SETNX` and `EXPIRE`, and one that holds its lock."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pybench.lab.clients import client_row, killed_row
from pybench.lab.experiment import Experiment, Lease, Parameter
from pybench.lab.findings import Case, Expected, Figure
from pybench.lab.locks import ChosenLock, needs_client
from pybench.numbers import format_seconds
from pybench.servers.proxy import Proxy
from pybench.strategies import Exclusion

if TYPE_CHECKING:
    from pybench.lab.acting import Line
    from pybench.lab.findings import ClientRow
    from pybench.lab.stage import Stage
    from pybench.servers import Server

NAIVE = ChosenLock("naive")
LATE_S = 2.0
"""How much later than its lease a lock may be free on a busy machine."""


class _LostReply(Proxy):
    """Keeps the reply to `SETNX` from the client, for good: the server has carried the command out."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.endpoint)
        self.is_set = threading.Event()
        """Whether the server has replied to `SETNX`."""
        self._asked = False

    def of_client(self, client: socket.socket, data: bytes) -> None:
        self._asked = self._asked or b"SETNX" in data
        super().of_client(client, data)

    def of_server(self, client: socket.socket, data: bytes) -> None:
        if self._asked:
            self.is_set.set()
        else:
            super().of_server(client, data)


def hold(line: Line, client: dict[str, Any], name: str, ttl: str) -> None:
    """The role of a process that takes the lock, says so, and holds it until it is killed."""
    from pybench.lab.stage import ClientSpec

    with ClientSpec(**client).open() as locks, locks.lock(name, ttl=ttl):
        line.say({"held": True})
        line.hear()


def _run(stage: Stage) -> Iterator[Case]:
    stage.note("naive, killed between SETNX and EXPIRE")
    yield _between(stage)
    for number, lock in enumerate(stage.locks):
        stage.note(f"{lock.text}, killed while it holds")
        yield _holding(stage, lock, f"{stage.prefix}lock:{number}")


def _between(stage: Stage) -> Case:
    (server,) = stage.redis()
    name, ttl = f"{stage.prefix}lock:naive", stage.length("ttl")
    spec = stage.client_spec(NAIVE)
    started = time.monotonic()
    with _LostReply(server) as proxy:
        through = replace(spec, redis=[proxy.endpoint.url.get_secret_value()])
        victim = stage.actor(hold, {"client": asdict(through), "name": name, "ttl": ttl})
        stage.wait_until(proxy.is_set.is_set, what="the server replied to SETNX")
        victim.signal(signal.SIGKILL)
        killed = killed_row(victim.pid, started, locked=False, error="killed before EXPIRE")
    waited, row = _next_holder(stage, NAIVE, name, stage.seconds("ttl") + LATE_S)
    with server.conversation() as conversation:
        left = conversation.ask("TTL", name)
        # Nobody else would ever remove it.
        conversation.ask("DEL", name)
    told = str(left) if isinstance(left, int) else "nothing"
    within = format_seconds(stage.seconds("ttl") + LATE_S)
    has_no_end = left == -1 and waited is None
    return Case(
        label="naive before EXPIRE",
        strategy=NAIVE.text,
        expected=Expected.WRONG,
        went_wrong=has_no_end,
        sentence=f"killed between SETNX and EXPIRE: TTL replies {told}"
        + (f", the lock has no end, and the next client did not have it within {within}" if has_no_end else ""),
        figures=(
            Figure("ttl_ms", "ttl asked for", stage.seconds("ttl") * 1e3),
            Figure("ttl_reply", "the server's TTL", told),
            Figure("free_after_ms", "free after", "never" if waited is None else waited),
        ),
        clients=(killed, row),
    )


def _holding(stage: Stage, lock: ChosenLock, name: str) -> Case:
    entry = lock.entry
    assert entry is not None, "only locks of the catalogue take part"
    spec = asdict(stage.client_spec(lock))
    started = time.monotonic()
    victim = stage.actor(hold, {"client": spec, "name": name, "ttl": stage.length("ttl")})
    victim.hear()
    began = time.monotonic()
    victim.signal(signal.SIGKILL)
    killed = killed_row(victim.pid, started, locked=True, error="killed while it held the lock")
    lease_ms = entry.lease_ms(stage.count("ttl") // 1_000_000)
    # A waiter of a queue looks for a lease that has ended only at each of its beats.
    beat_ms = int(entry.argument("beat_ms", lock.arguments) or 0)
    limit_s = ((lease_ms or 0) + beat_ms) / 1e3 + LATE_S
    waited, row = _next_holder(stage, lock, name, limit_s)
    free_ms = None if waited is None else round((time.monotonic() - began) * 1e3, 3)
    is_promised = entry.with_arguments(lock.arguments).exclusion is not Exclusion.NOTHING
    if waited is None:
        sentence = f"killed while it held the lock: nobody had it within {format_seconds(limit_s)}"
    elif lease_ms is None:
        sentence = "killed while it held the lock: free when the server saw its connection end"
    else:
        sentence = f"killed while it held the lock: free once the lease of {format_seconds(lease_ms / 1e3)} had ended"
    return Case(
        label=lock.text,
        strategy=lock.text,
        expected=Expected.RIGHT if is_promised else Expected.EITHER,
        went_wrong=waited is None,
        sentence=sentence,
        figures=(
            Figure("ttl_ms", "ttl asked for", stage.seconds("ttl") * 1e3),
            Figure("free_after_ms", "free after", "never" if free_ms is None else free_ms),
        ),
        clients=(killed, row),
    )


def _next_holder(stage: Stage, lock: ChosenLock, name: str, wait_s: float) -> tuple[float | None, ClientRow]:
    """How long the next client waited in milliseconds; None: it had no lock within `wait_s`."""
    from pybench.lock_client import NotAcquired

    client = stage.client(lock)
    began = time.monotonic()
    try:
        with client.lock(name, ttl=stage.length("ttl"), wait=f"{stage.at_most(wait_s):.3f}s"):
            row = client_row(began, locked=True)
    except NotAcquired:
        return None, client_row(began, locked=False, error="Lock not acquired")
    return row.duration_ms, row


def _unfit(lock: ChosenLock) -> str:
    entry = lock.entry
    if not lock.keeps_out:
        return "it takes no lock"
    if entry is not None and entry.permits(lock.arguments) > 1:
        return "the next client has a permit of its own"
    return needs_client(lock)


CRASH = Experiment(
    name="crash",
    summary="A process dies while it takes or holds a lock",
    steps=(
        "A process takes naive and is killed after the server carried out SETNX, before it could send EXPIRE.",
        "Another process is killed while it holds its lock. The ttl is {ttl}; the next client waits for each lock.",
    ),
    learn="A lock and its end have to be one command: what two commands set, a crash between them leaves for ever.",
    run=_run,
    strategies=("mutex",),
    unfit=_unfit,
    parameters=(Parameter("ttl", Lease(), "1s", "The lease."),),
)
