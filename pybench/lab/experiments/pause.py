"""`pause`: the process that holds the lock is stopped beyond its lease, goes on, and writes."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from pybench.lab.clients import client_row
from pybench.lab.contest import attempt
from pybench.lab.experiment import About, Experiment, Lease, Parameter
from pybench.lab.fence import REFUSED, STALE, checked_write
from pybench.lab.findings import Case, ClientRow, Expected, Figure
from pybench.lab.locks import needs_client
from pybench.strategies import Promise

if TYPE_CHECKING:
    from pybench.lab.acting import Line
    from pybench.lab.locks import ChosenLock
    from pybench.lab.stage import Stage
    from pybench.servers.redis.conversation import Reply

STOCK, FIRST_SELLS, SECOND_SELLS = 10, 1, 3
SPARE_S = 5.0
"""How much longer than the lease the second client waits."""
KEPT_S = "86400"


class _Way(NamedTuple):
    """A lock, and what stops a late write."""

    lock: ChosenLock
    is_checked: bool = False
    """Whether the resource compares fences."""
    looks: bool = False
    """Whether the holder looks at its lease before it writes."""

    @property
    def label(self) -> str:
        """The heading of its column."""
        return f"{self.lock.text}{' checked' if self.is_checked else ', looks first' if self.looks else ''}"


def hold_and_write(line: Line, client: dict[str, Any], name: str, write: dict[str, Any]) -> None:
    """The role of the process that is stopped: it takes the lock, reads, is told to go on, and writes."""
    from pydantic import SecretStr

    from pybench.lab.stage import ClientSpec
    from pybench.servers.redis.conversation import Conversation
    from pybench.servers.redis.endpoint import Endpoint

    began = time.monotonic()
    with (
        ClientSpec(**client).open() as locks,
        Conversation(Endpoint.parse(SecretStr(write["url"])), seconds=write["seconds"]) as resource,
    ):
        resource.log_in()
        with attempt(locks, name, ttl=write["ttl"], wait="2s") as mine:
            held = mine.held
            assert held is not None, "nobody else asks before"
            read = _number(resource.ask("GET", write["key"]))
            line.say({"fence": held.fence})
            line.hear()
            knows = held.lost.is_set()
            reply = None
            if not (write["looks"] and knows):
                words = _write(write["key"], read - FIRST_SELLS, held.fence if write["checked"] else None)
                reply = resource.ask(*words)
            error = "did not write: its lease had ended" if reply is None else REFUSED if reply == STALE else None
            after = read - FIRST_SELLS if error is None else None
            row = client_row(began, locked=True, before=read, after=after, error=error)
            line.say({"knew": knows, "row": asdict(row)})


def _run(stage: Stage) -> Iterator[Case]:
    for lock in stage.locks:
        is_fenced = lock.entry is not None and Promise.FENCE in lock.entry.promises
        for way in (_Way(lock), _Way(lock, is_checked=True) if is_fenced else _Way(lock, looks=True)):
            yield _case(stage, way)


def _case(stage: Stage, way: _Way) -> Case:
    stage.note(way.label)
    (server,) = stage.redis()
    own = f"{stage.prefix}{way.label.replace(' ', '-')}:"
    key, name, ttl = f"{own}stock", f"{own}lock", stage.length("ttl")
    spec = stage.client_spec(way.lock)
    with server.conversation(seconds=stage.left_s) as resource:
        resource.ask("SET", key, str(STOCK), "EX", KEPT_S)
        write = {"url": stage.url(server), "key": key, "ttl": ttl, "checked": way.is_checked, "looks": way.looks}
        write["seconds"] = stage.left_s
        holder = stage.actor(hold_and_write, {"client": asdict(spec), "name": name, "write": write})
        first_fence = holder.hear()["fence"]
        holder.signal(signal.SIGSTOP)
        stopped = time.monotonic()
        wait = f"{stage.at_most(stage.seconds('ttl') + SPARE_S):.3f}s"
        with attempt(stage.client(way.lock), name, ttl="30s", wait=wait) as second:
            granted_ms = None if second.held is None else round((second.at - stopped) * 1e3, 3)
            fence = None if second.held is None else second.held.fence
            read = _number(resource.ask("GET", key))
            resource.ask(*_write(key, read - SECOND_SELLS, fence if way.is_checked else None))
            holder.tell({"go": "on"})
            holder.signal(signal.SIGCONT)
            told = holder.hear()
        final = _number(resource.ask("GET", key))
    right = read - SECOND_SELLS
    late = ClientRow(**told["row"])
    wrote = late.success
    return Case(
        label=way.label,
        strategy=way.lock.text,
        expected=Expected.RIGHT if way.is_checked else Expected.EITHER if way.looks else Expected.WRONG,
        went_wrong=final != right and second.held is not None,
        sentence="the second client had no lock in time"
        if second.held is None
        else f"the stopped process went on and wrote: the stock is {final}, and the {SECOND_SELLS} sold meanwhile "
        "are lost"
        if wrote
        else f"the late write was {'refused by its fence' if way.is_checked else 'not sent'}: the stock is {final}",
        figures=(
            Figure("ttl_ms", "ttl", way.lock.lease_ms(stage.count("ttl"))),
            Figure("granted_ms", "second granted after", granted_ms),
            Figure("knew", "first knew of its loss", "yes" if told["knew"] else "no"),
            Figure("first_fence", "fence of the first", first_fence),
            Figure("second_fence", "fence of the second", fence),
            Figure("final_stock", "final stock", final),
            Figure("right_stock", "as the second left it", right),
        ),
        clients=(late, client_row(stopped, locked=second.held is not None, before=read, after=right)),
    )


def _write(key: str, stock: int, fence: int | None) -> tuple[str, ...]:
    return ("SET", key, str(stock), "EX", KEPT_S) if fence is None else checked_write(key, fence, "SET", stock)


def _number(reply: Reply) -> int:
    assert isinstance(reply, bytes), "the key was set before"
    return int(reply)


def _unfit(lock: ChosenLock) -> str:
    entry = lock.entry
    if entry is None or not lock.keeps_out:
        return "it takes no lock"
    if reason := needs_client(lock):
        return reason
    if entry.lease_ms(1_000) is None:
        return "it has no lease: the server holds it for a stopped process until its connection ends"
    if entry.permits(lock.arguments) > 1:
        return "the second client has a permit of its own"
    return ""


PAUSE = Experiment(
    name="pause",
    summary="The holder is stopped beyond its lease, then writes",
    steps=(
        "A process holds the lock with a ttl of {ttl}, reads the stock, and is stopped (SIGSTOP), as by a long pause.",
        "The second client gets the lock and sells 3. The process goes on (SIGCONT), and writes what it read less 1.",
        About("looks first", "Looks first: it asks its lock before it writes."),
        About("checked", "Checked: the resource refuses a lower fence."),
    ),
    learn="A stopped process cannot see its lease end; a look before the write helps, only a fence is certain.",
    run=_run,
    controls=("mutex",),
    strategies=("fenced",),
    unfit=_unfit,
    parameters=(Parameter("ttl", Lease(), "1s", "The lease."),),
)
