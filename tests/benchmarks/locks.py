"""The cases of `make perf` about the strategies beside `mutex`: what each costs, and what waiting for it is like."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pybench import _core
from pybench.servers import Server
from pybench.strategies import CATALOGUE
from tests.benchmarks import references as ref
from tests.benchmarks.sample import Case, Goal, Sample
from tests.core_trials import MS, fixed

ONE_EACH = {"concurrency": 1, "keys": 1, "connections": {"kind": "shared", "count": 1}}
"""A client on a key of its own."""
HOT = {"keys": 1, "hold": fixed(1), "duration_ns": 2_000 * MS}
"""Sixty-four clients want one key and hold it for 1 ms."""


QUEUE_GOALS: dict[str, Goal] = {
    "handoff": ("at most", 3.0),
    "utilisation": ("at least", 85.0),
    "jain": ("at least", 0.99),
    "inversions": ("at most", 0.0),
}
"""What `fair-queue` must reach there."""


def named(strategy: str, **args: Any) -> dict[str, Any]:  # noqa: ANN401 - any argument
    """The fields of a trial of `strategy`."""
    return {"strategy": strategy, "args": args}


def redlock(_: Server) -> Iterator[Sample]:
    """Five servers beside one of them, as a run has them: one client in a closed loop, and one that rests meanwhile."""
    loads: dict[str, tuple[dict[str, Any], Goal | None]] = {
        "one client": (ONE_EACH, ("at most", 2.0)),
        "one client, spin": ({**ONE_EACH, "poll": "spin"}, None),
        "one client that thinks 1 ms": ({**ONE_EACH, "think": fixed(1)}, None),
    }
    with ref.as_in_a_run(5) as servers:
        five, first = ref.specs(servers), servers[0]
        for load, (fields, goal) in loads.items():
            alone = ref.quantile_us(ref.run(first, servers=five[:1], **fields), "response", 0.5)
            for fanout, wanted in (("multiplexed", goal), ("sequential", None)):
                result = ref.run(first, servers=five, **named("redlock", nodes=5, fanout=fanout), **fields)
                p50 = ref.quantile_us(result, "response", 0.5)
                yield Sample(f"redlock over 5, {fanout}, {load}, acquire p50 / mutex", p50, alone, wanted, "us")
        mutex = ref.trial(first, servers=five[:1])
        ours = ref.trial(first, servers=five, **named("redlock", nodes=5))
    yield Sample(
        "redlock over 5, 64 clients, client CPU a grant / mutex", ours.cpu_us, mutex.cpu_us, ("at most", 5.0), "us"
    )
    yield Sample("  the same, grants/s / mutex", ours.per_s, mutex.per_s, None)


def hot_queue(_: Server) -> Iterator[Sample]:
    """Handoff and fairness of the locks that wait on the server, on one hot key, beside polling."""
    with ref.as_in_a_run(1) as [server]:
        yield from _hot_queue(server)


def _hot_queue(server: Server) -> Iterator[Sample]:
    # As a record has it: whoever holds for 1 ms lets the server sleep meanwhile, and what it then needs to get going is
    # the machine's. Without that hold the same call is answered by a server that never comes to rest.
    as_is: dict[str, Any] = {"servers": ref.specs([server])}  # Releases as the server can, where it can in one command.
    idle = ref.quantile_us(ref.run(server, **{**ONE_EACH, "hold": fixed(1)}, **as_is), "response", 0.5)
    busy = ref.quantile_us(ref.run(server, **ONE_EACH, **as_is), "response", 0.5)
    yield Sample("idle call of a record whose holds last 1 ms / without a hold", idle, busy, None, "us")
    polled = ref.quantile_us(ref.run(server, **HOT, **as_is), "handoff", 0.5)
    scripted = ref.quantile_us(ref.run(server, **HOT), "handoff", 0.5)
    yield Sample("mutex, one hot key, hold 1 ms, handoff p50", polled, None, None, "us")
    yield Sample("  mutex, released by script / the same", scripted, polled, None, "us")
    for name in ("fair-queue", "fair", "notify"):
        goals = QUEUE_GOALS if name == "fair-queue" else {}
        result = ref.run(server, **named(name), **HOT, **as_is)
        handoff = ref.quantile_us(result, "handoff", 0.5)
        yield Sample(f"{name}, the same, handoff p50 / idle call", handoff, idle, goals.get("handoff"), "us")
        yield Sample(f"  {name}, the same / the call without a hold", handoff, busy, None, "us")
        yield Sample(f"  {name}, utilisation", utilisation(result), None, goals.get("utilisation"), "%")
        yield Sample(f"  {name}, Jain's index", result.jain or 0.0, None, goals.get("jain"), "")
        if CATALOGUE[name].acknowledges_places:
            inversions = float(result.totals["fifo_inversions"])
            yield Sample(f"  {name}, FIFO inversions", inversions, None, goals.get("inversions"), "")
        overtaken = result.totals["overtakes"] / max(result.totals["grants"], 1)
        yield Sample(f"  {name}, overtakes a grant", overtaken, None, None, "")
        if name == "notify":
            yield Sample("  notify, handoff p50 / mutex, full jitter", handoff, polled, ("at most", 1.0), "us")
            yield Sample("  notify, the same / mutex, released by script", handoff, scripted, None, "us")
    # With no pause the next holder is mostly the one before, who asks again at once and has not waited at all.
    away = {**HOT, "think": fixed(5)}
    polled = ref.quantile_us(ref.run(server, **away, **as_is), "handoff", 0.5)
    handoff = ref.quantile_us(ref.run(server, **named("notify"), **away, **as_is), "handoff", 0.5)
    yield Sample("  notify, where each thinks 5 ms, handoff p50 / mutex", handoff, polled, None, "us")


def utilisation(result: _core.TrialResult) -> float:
    """Of a trial on one key: the share of time in which it was held, as the holders meant it, in percent."""
    return 100 * result.totals["nominal_hold_ns"] / result.totals["window_ns"]


def herd(server: Server) -> Iterator[Sample]:
    """What a publish wakes: attempts a grant and utilisation over the number of waiters."""
    for clients in (2, 8, 32, 64, 256):
        result = ref.run(server, concurrency=clients, **named("notify"), **HOT)
        attempts = result.totals["attempts"] / max(result.totals["grants"], 1)
        yield Sample(f"notify, {clients} clients, attempts a grant", attempts, None, None, "")
        yield Sample(f"  utilisation, {clients} clients", utilisation(result), None, None, "%")


def waiting(server: Server) -> Iterator[Sample]:
    """What a thousand send while one keeps the key for five seconds."""
    few: Goal = ("at most", 5.0)
    for name, goal in (("notify", few), ("fair-queue", few), ("mutex", None), ("fair", None)):
        long = {"keys": 1, "hold": fixed(5_000), "warmup_ns": 0, "duration_ns": 5_000 * MS, "concurrency": 1_001}
        result = ref.run(server, **named(name), **long)
        each = result.totals["commands"] / 1_000
        yield Sample(f"{name}, commands a waiter in 5 s", each, None, goal, "")


def readers(server: Server) -> Iterator[Sample]:
    """Nineteen of twenty only read."""
    mutex = ref.trial(server, **HOT)
    goals: dict[str, Goal | None] = {"writers": ("at least", 5.0), "readers": None}
    for prefer, goal in goals.items():
        result = ref.run(server, read_share=0.95, **named("read-write", prefer=prefer), **HOT)
        per_s = ref.figure(result).per_s
        yield Sample(f"read-write, prefer {prefer}, 95 % readers / mutex", per_s, mutex.per_s, goal)
        yield Sample(f"  prefer {prefer}, longest wait", result.totals["longest_wait_ns"] / 1e6, None, None, "ms")


def alone(server: Server) -> Iterator[Sample]:
    """What a lock costs that does more than exclude, for a client on its own key."""
    mutex = ref.trial(server, **ONE_EACH)
    for name in ("reentrant", "watchdog", "fenced"):
        ours = ref.trial(server, **named(name), **ONE_EACH)
        yield Sample(f"{name}, one client on its own key / mutex", ours.per_s, mutex.per_s, ("at least", 0.6))


TTL_MS = 500
BOUNDS_MS = {
    "naive": 1_000,
    "mutex": TTL_MS,
    "watchdog": TTL_MS,
    "reentrant": TTL_MS,
    "read-write": TTL_MS,
    "semaphore": TTL_MS,
    "fenced": TTL_MS,
    "notify": TTL_MS,
    "replicated": TTL_MS,
    "fair": TTL_MS,
    "fair-queue": TTL_MS + 2_500,
    "redlock": TTL_MS,
    "multilock": TTL_MS,
    "redisson-redlock": TTL_MS,
    "redisson-multilock": TTL_MS,
}
"""When a dead holder's lock is free again, as promised; `naive` counts whole seconds, `fair-queue` needs a beat too."""


def time_to_free(server: Server) -> Iterator[Sample]:
    """How long the lock of a client that died stays taken."""
    for name, bound in BOUNDS_MS.items():
        freed = time_to_free_ms(server, name)
        # What a waiter needs beyond the end of the lease: a poll, a beat, an answer.
        yield Sample(f"{name}, time to free, promised within {bound} ms", freed, None, ("at most", bound + 60.0), "ms")


def time_to_free_ms(server: Server, name: str) -> float:
    """From the death of a holder to the next grant of its key, in milliseconds."""
    servers = ref.specs([server])
    if name == "replicated":
        servers = [ref.with_a_replica()]
    elif "redlock" in name:
        servers = ref.specs(ref.servers_of_a_run(5))
    args: dict[str, Any] = {"nodes": len(servers)} if "redlock" in name or "multilock" in name else {}
    if name == "semaphore":
        args["permits"] = 1
    same: dict[str, Any] = {
        "servers": servers,
        "key_prefix": f"perf:free:{name}:{time.monotonic_ns()}:",
        "ttl_ms": TTL_MS,
        "warmup_ns": 0,
        "retry": {
            "kind": "fixed",
            "base_ns": MS,
            "factor": 1.0,
            "cap_ns": MS,
            "max_attempts": None,
            "max_wait_ns": 9_000 * MS,
        },
        **named(name, **args),
    }
    ref.run(server, **{**ONE_EACH, **same, "hold": fixed(60_000), "duration_ns": 20 * MS, "dies": True})
    died = time.monotonic()
    # With another seed: with the same it would draw the token of the dead.
    after = ref.run(server, **{**ONE_EACH, **same, "duration_ns": 3_500 * MS, "seed": 2})
    began = time.monotonic() - after.totals["window_ns"] / 1e9
    return (began - died) * 1e3 + after.totals["longest_wait_ns"] / 1e6


LOCK_CASES: tuple[Case, ...] = (redlock, hot_queue, herd, waiting, readers, alone, time_to_free)
