"""The cases of `make perf` about `LockClient`: beside redis-py's `Lock`, for threads and for tasks, on one server."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pybench.servers import Server
from tests.benchmarks.references import Figure
from tests.benchmarks.sample import Case, Goal, Sample

ROOT = Path(__file__).parents[2]
SECONDS = 1.0
TTL_S = 10
TASKS, KEYS = 64, 1_000

TWICE: Goal = ("at least", 2.0)
TENFOLD: Goal = ("at least", 10.0)
HALF: Goal = ("at most", 0.5)


def lock_client(server: Server) -> Iterator[Sample]:
    """Acquire and release of free keys. Both in a process of their own, in turn."""
    loads: tuple[tuple[str, str, Goal], ...] = (
        ("one thread, one key", "threads", TWICE),
        ("one task, one key", "task", TWICE),
        (f"{TASKS} tasks, 1,000 keys", "tasks", TENFOLD),
    )
    for name, load, least in loads:
        ours, theirs = _measured(server, "ours", load), _measured(server, "theirs", load)
        yield Sample(f"LockClient, {name} / redis-py's Lock", ours.per_s, theirs.per_s, least)
        yield Sample(f"  CPU of the process a grant, {name}", ours.cpu_us, theirs.cpu_us, HALF, "us")


def _measured(server: Server, who: str, load: str) -> Figure:
    command = [sys.executable, "-m", __name__, url_of(server), who, load]
    ended = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    said = json.loads(ended.stdout)
    return Figure(said["per_s"], said["cpu_us"])


def url_of(server: Server) -> str:
    endpoint = server.endpoint
    secret = "" if endpoint.password is None else f":{endpoint.password.get_secret_value()}@"
    return f"redis://{secret}{endpoint.host}:{endpoint.port}/{endpoint.db}"


def threads(url: str, who: str) -> int:
    """Pairs that one thread carries out in `SECONDS`."""
    import redis

    from pybench import LockClient

    ours, theirs = LockClient(redis=url), redis.Redis.from_url(url)
    done, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        if who == "ours":
            with ours.lock("bench:one", ttl="10s"):
                done += 1
        else:
            with theirs.lock("bench:one", timeout=TTL_S):
                done += 1
    return done


async def tasks(url: str, who: str, count: int, keys: int) -> int:
    """Pairs that so many tasks carry out in `SECONDS`."""
    import redis.asyncio

    from pybench import LockClient

    ours, theirs = LockClient(redis=url), redis.asyncio.Redis.from_url(url)
    end = time.monotonic() + SECONDS

    async def one(number: int) -> int:
        drawn, done = random.Random(number), 0
        while time.monotonic() < end:
            name = f"bench:{drawn.randrange(keys)}"
            # A key that another task holds is free again soon.
            if who == "ours":
                async with ours.lock(name, ttl="10s"):
                    done += 1
            else:
                async with theirs.lock(name, timeout=TTL_S, sleep=0.001):
                    done += 1
        return done

    done = sum(await asyncio.gather(*[one(number) for number in range(count)]))
    await theirs.aclose()
    return done


def main() -> None:
    """One side of one load, in this process: `URL ours|theirs threads|task|tasks`."""
    url, who, load = sys.argv[1:]
    run = {
        "threads": lambda: threads(url, who),
        "task": lambda: asyncio.run(tasks(url, who, 1, 1)),
        "tasks": lambda: asyncio.run(tasks(url, who, TASKS, KEYS)),
    }[load]
    run()  # Imports, connects, loads scripts.
    began, cpu = time.monotonic(), time.process_time()
    done = run()
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    print(json.dumps({"per_s": done / took, "cpu_us": cpu * 1e6 / done}))


LOCK_CLIENT_CASES: tuple[Case, ...] = (lock_client,)

if __name__ == "__main__":
    main()
