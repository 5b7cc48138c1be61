"""The cases of `make perf` about `pybench serve`: what a request costs beside its parts, and beside redis-py's `Lock`.

All figures are of a closed loop with as many requests at once; service, load and server are processes of their own.

- *purchase*: `POST /purchase` with `mutex` and no work, each of a product that nobody else buys meanwhile.
- *nothing*: a route of the same front that answers at once, with its id, its line in the log and its figures.
- *lock route*: `POST /api/locks/simple` without work: what *nothing* does, and the round trips of the lock. The goal is
  a purchase of at most 1.3 times this, in time and in CPU of the service.
- *lock alone*: acquire and release by `LockClient` in as many tasks, which send what they ask for in larger batches.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pybench.servers import Server
from tests.benchmarks.lock_client import url_of
from tests.benchmarks.references import Figure
from tests.benchmarks.sample import Case, Sample

ROOT = Path(__file__).parents[2]
SECONDS = 1.0
SLICES, SLICE_S = 6, 0.3
AT_ONCE = 16
PRODUCTS = 1_000


def service(server: Server) -> Iterator[Sample]:
    """A purchase beside its parts, and the route of `simple` beside redis-py's `Lock` in the same front."""
    products = [f"p{number}" for number in range(PRODUCTS)]
    with _serving(server) as (port, pid):
        _load(port, pid, [["POST", "/reset", json.dumps({"product_id": one, "stock": 2**50})] for one in products])
        bodies = [json.dumps({"product_id": one, "quantity": 1}) for one in products]
        loads = {
            "purchase": [["POST", "/purchase?work=0", body] for body in bodies],
            "lock route": [["POST", f"/api/locks/simple/{one}?work=0", ""] for one in products],
            "nothing": [["POST", "/nothing", body] for body in bodies],
            "redis-py": [["POST", f"/redis-py/{one}", ""] for one in products],
        }
        figures = _in_turn(port, pid, loads)
    purchase, lock_route, nothing, theirs = figures.values()
    lock = _lock(server)
    name = f"CPU of POST /purchase, mutex, {AT_ONCE} at once / the lock route"
    yield Sample(name, purchase.cpu_us, lock_route.cpu_us, ("at most", 1.3), "us")
    yield Sample("  the same in time", 1e6 / purchase.per_s, 1e6 / lock_route.per_s, ("at most", 1.3), "us")
    parts = nothing.cpu_us + lock.cpu_us
    yield Sample("  CPU of it / nothing + the lock alone", purchase.cpu_us, parts, None, "us")
    yield Sample("  that in time", 1e6 / purchase.per_s, 1e6 / nothing.per_s + 1e6 / lock.per_s, None, "us")
    yield Sample("  CPU of a route that does nothing", nothing.cpu_us, None, None, "us")
    name = f"POST /api/locks/simple, {AT_ONCE} at once / redis-py's Lock in the same front"
    yield Sample(name, lock_route.per_s, theirs.per_s, ("at least", 1.0), "requests/s")


@contextmanager
def _serving(server: Server) -> Iterator[tuple[int, int]]:
    """A service on `server` with two more routes: its port and its process."""
    with tempfile.TemporaryFile() as log:
        command = [sys.executable, "-m", __name__, "serve", url_of(server)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield port, process.pid
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def _in_turn(port: int, pid: int, loads: dict[str, list[list[str]]]) -> dict[str, Figure]:
    """Each load in `SLICES` short slices, so that a busy moment of the machine falls on all of them."""
    totals = {name: [0.0, 0.0, 0.0] for name in loads}
    for _ in range(SLICES):
        for name, requests in loads.items():
            totals[name] = [a + b for a, b in zip(totals[name], _load(port, pid, requests), strict=True)]
    return {name: Figure(done / took_s, cpu_s * 1e6 / done) for name, (done, took_s, cpu_s) in totals.items()}


def _load(port: int, pid: int, requests: list[list[str]]) -> tuple[float, float, float]:
    """Requests answered, seconds, and seconds of CPU of the service."""
    command = [sys.executable, "-m", "tests.benchmarks.http_load", str(port), str(AT_ONCE), str(SLICE_S), str(pid)]
    asked = json.dumps(requests)
    ended = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, input=asked)
    said = json.loads(ended.stdout)
    # A connection that was closed may leave a request that still holds its lock.
    assert said["statuses"]["200"] > 0.99 * said["done"], said
    return said["done"], said["took_s"], said["cpu_s"]


def _lock(server: Server) -> Figure:
    command = [sys.executable, "-m", __name__, "lock", url_of(server)]
    said = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    return Figure(said["per_s"], said["cpu_us"])


def main() -> None:
    """`serve URL`: the service with its further routes; `lock URL`: locks without a service."""
    what, url = sys.argv[1:]
    if what == "serve":
        _serve(url)
    else:
        _lock_alone(url)


def _serve(url: str) -> None:
    import redis.asyncio

    from pybench.service.answers import Answer
    from pybench.service.app import Service
    from pybench.service.calls import Call
    from pybench.service.front import Route
    from pybench.service.process import serve
    from pybench.service.settings import Place, Settings

    async def nothing(_call: Call) -> Answer:
        return Answer(200, b'{"success":true}')

    class WithReferences(Service):
        def more_routes(self) -> dict[str, Route]:
            client = redis.asyncio.Redis.from_url(url)

            async def lock_of_redis_py(call: Call) -> Answer:
                lock = client.lock(call.path.removeprefix("/redis-py/"), timeout=10, blocking=False)
                if not await lock.acquire():
                    return Answer(409, b"{}")
                await lock.release()
                return Answer(200, b'{"success":true,"resourceId":"r","durationMs":1.0}')

            return {
                "/nothing": Route("/nothing", POST=nothing),
                "/redis-py/": Route("/redis-py/{resource}", POST=lock_of_redis_py),
            }

    listening = socket.create_server(("127.0.0.1", 0))
    settings = Settings(
        redis=Place(url, None),
        redlock=(),
        postgres=None,
        prefix="pybench:perf:",
        schema="pybench_perf_stock",
        lock_schema="pybench_perf_locks",
    )
    serve(settings, listening, lambda: print(listening.getsockname()[1], flush=True), WithReferences)


def _lock_alone(url: str) -> None:
    import time

    import uvloop

    from pybench import LockClient

    async def run(seconds: float) -> int:
        client = LockClient(redis=url)
        end = time.monotonic() + seconds

        async def one(number: int) -> int:
            done = 0
            while time.monotonic() < end:
                async with client.lock(f"perf:{number}:{done % PRODUCTS}", ttl="10s", wait="5s"):
                    done += 1
            return done

        return sum(await asyncio.gather(*map(one, range(AT_ONCE))))

    async def both() -> None:
        await run(0.3)
        began, cpu = time.monotonic(), time.process_time()
        done = await run(SECONDS)
        took, cpu = time.monotonic() - began, time.process_time() - cpu
        print(json.dumps({"per_s": done / took, "cpu_us": cpu * 1e6 / done}))

    uvloop.run(both())


SERVICE_CASES: tuple[Case, ...] = (service,)

if __name__ == "__main__":
    main()
