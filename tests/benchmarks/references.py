"""What pybench is measured beside: the pump, redis-benchmark, redis-py's Lock; and pybench itself, one short trial."""

from __future__ import annotations

import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from pybench import _core
from pybench.core_specs import TrialSpec
from pybench.planning.placement import place
from pybench.servers import Server, ServerPool
from pybench.servers.redis import binaries, supervisor
from tests.core_trials import MS, trial_spec

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "target" / "release" / "examples"
BARE = ROOT / "target" / "bare" / "release" / "examples"
SECONDS = 1.0

_TRIALS = itertools.count()


@dataclass(frozen=True, slots=True)
class Figure:
    """Pairs (grants) per second, and the client's CPU for each in microseconds."""

    per_s: float
    cpu_us: float


def build() -> None:
    """The pump and the bare driver; a minute the first time."""
    for extra in ([], ["--features", "bare", "--target-dir", "target/bare"]):
        command = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "load", "--examples", *extra]
        subprocess.run(command, cwd=ROOT, check=True)


def address(server: Server) -> str:
    """As the Rust programs take it."""
    endpoint = server.endpoint
    return endpoint.unix or f"{endpoint.host}:{endpoint.port}"


def _json_of(command: list[str]) -> dict[str, float]:
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(ended.stdout)
    return figures


def pump(server: Server, connections: int, pairs: int, release: str = "script") -> Figure:
    """A bare loop with `pairs` pairs in flight on each of `connections` connections."""
    command = [str(EXAMPLES / "pump"), address(server), str(connections), str(pairs), str(SECONDS), release]
    said = _json_of(command)
    return Figure(said["pairs_per_s"], said["cpu_us_per_pair"])


def drive(server: Server, folder: Path, *, clients: int, keys: int, seconds: float) -> Figure:
    """The driver without Python: `folder` says whether with or without checker and histograms."""
    command = [str(folder / "drive"), address(server), str(clients), "4", str(keys), str(seconds), "script"]
    said = _json_of(command)
    return Figure(said["grants_per_s"], said["cpu_us_per_grant"])


def bare_sleep_p99_us() -> float:
    """How late the machine wakes a thread that sleeps for 1 ms: no timer here can be more exact."""
    return _json_of([str(EXAMPLES / "sleep"), "1000", "500"])["p99_us"]


def redis_benchmark(server: Server, *, clients: int, pipeline: int) -> Figure | None:
    """Two commands count as a pair, though most of its `SET NX` are refused and nothing is deleted; None without it."""
    if shutil.which("redis-benchmark") is None:
        return None
    endpoint = server.endpoint
    where = ["-s", endpoint.unix] if endpoint.unix else ["-h", str(endpoint.host), "-p", str(endpoint.port)]
    requests = 60_000 if pipeline == 1 else 600_000
    keyed = ["SET", "bench:__rand_int__", "0123456789abcdef0123456789abcdef", "NX", "PX", "10000"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    load = ["-c", str(clients), "-P", str(pipeline), "-n", str(requests), "-r", "100000", "--csv"]
    ended = subprocess.run(["redis-benchmark", *where, *load, *keyed], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    per_s = float(ended.stdout.strip().splitlines()[-1].split(",")[1].strip('"'))
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figure(per_s / 2, cpu_s * 1e6 / requests * 2)


REDIS_PY = """
import redis, sys, threading, time
end, counts = time.monotonic() + 2.0, []
def work():
    client = redis.Redis.from_url(sys.argv[1])
    done = 0
    while time.monotonic() < end:
        lock = client.lock("bench:hot", timeout=10, sleep=0.001, blocking_timeout=2)
        if lock.acquire():
            lock.release()
            done += 1
    counts.append(done)
threads = [threading.Thread(target=work) for _ in range(64)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(counts) / 2.0)
"""


def redis_py(server: Server) -> Figure:
    """64 threads of redis-py's Lock on one key."""
    endpoint = server.endpoint
    url = f"unix://{endpoint.unix}" if endpoint.unix else f"redis://{endpoint.host}:{endpoint.port}"
    ended = subprocess.run([sys.executable, "-c", REDIS_PY, url], check=True, capture_output=True, text=True)
    return Figure(float(ended.stdout), float("nan"))


def native_release(server: Server) -> str:
    """The server's own compare-and-delete; `script` where it has none."""
    return str(server.core_spec()["compare_and_delete"])


def run(server: Server, **fields: Any) -> _core.TrialResult:  # noqa: ANN401 - any field of a TrialSpec
    """One trial of `mutex` by the core: 64 clients, 4 connections, 1,000 keys, no hold; any field can be said anew."""
    return _core.Trial(spec(server, **fields)).run()


def trial(server: Server, **fields: Any) -> Figure:  # noqa: ANN401 - any field of a TrialSpec
    """How many grants such a trial gave, and what they cost."""
    return figure(run(server, **fields))


def figure(result: _core.TrialResult) -> Figure:
    """The grants of a trial a second, and the client's CPU for each."""
    totals = result.totals
    grants = max(totals["grants"], 1)
    return Figure(grants / (totals["window_ns"] / 1e9), totals["client_cpu_ns"] / 1e3 / grants)


def send_delay_p99_us(server: Server, **fields: Any) -> float:  # noqa: ANN401 - any field of a TrialSpec
    """How late the timers of a trial fired, at the 99th percentile, in microseconds."""
    return quantile_us(run(server, **fields), "send_delay", 0.99)


def quantile_us(result: _core.TrialResult, phase: str, q: float) -> float:
    """A quantile of a phase of the grants of a trial, in microseconds; NaN where there were none."""
    row = next((row for row in result.histograms if (row.phase, row.outcome) == (phase, "granted")), None)
    if row is None:
        return float("nan")
    values, counts = _core.histogram_buckets(row.hdr)
    return float(values[(counts.cumsum() >= q * counts.sum()).argmax()]) / 1e3


_CORES = tuple(sorted(os.sched_getaffinity(0)))
"""What there was before anything here was bound; a child has the cores of who starts it."""
_SETS: dict[int, list[tuple[supervisor.SupervisedServer, Server]]] = {}
_LIKE: list[binaries.Binary] = []


def more_like(binary: binaries.Binary) -> None:
    """What `servers_of_a_run` is to start."""
    _LIKE[:] = [binary]


def servers_of_a_run(count: int) -> list[Server]:
    """`count` independent servers as `pybench run` starts and places them, on Unix sockets; started when first needed.

    Server and driver have cores of their own where there are enough, else the kernel decides.
    """
    placement = place(_CORES, threads=1, servers=count)
    started = _SETS.setdefault(count, [])
    while len(started) < count:
        supervised, facts = supervisor.start(_LIKE[0], cores=placement.servers or _CORES)
        started.append((supervised, Server(supervised.endpoint, facts, _LIKE[0].source, supervised.pid)))
    return [server for _, server in started]


@contextmanager
def as_in_a_run(count: int) -> Iterator[list[Server]]:
    """`servers_of_a_run`, and this thread placed as the driver of that run is."""
    servers = servers_of_a_run(count)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, place(_CORES, threads=1, servers=count).drivers or _CORES)
    try:
        yield servers
    finally:
        os.sched_setaffinity(0, before)


def specs(servers: list[Server]) -> list[dict[str, Any]]:
    """As the core takes them."""
    return [dict(server.core_spec()) for server in servers]


@dataclass(frozen=True, slots=True)
class _Backend:
    name: str = "replicated"
    urls: tuple[SecretStr, ...] = ()
    source: binaries.Source = "auto"


_POOL = ServerPool()


def with_a_replica() -> dict[str, Any]:
    """A server with a replica, as the core takes it; started when first needed."""
    [primary] = _POOL.redis(_Backend(), replicas=1)
    return dict(primary.core_spec())


def stop_more() -> None:
    """Ends what `servers_of_a_run` and `with_a_replica` started."""
    _POOL.close()
    while _SETS:
        for supervised, _ in _SETS.popitem()[1]:
            supervised.stop()


def spec(server: Server, **fields: Any) -> TrialSpec:  # noqa: ANN401 - any field of a TrialSpec
    """What `trial` asks of the core; `release` is the compare-and-delete."""
    release = fields.pop("release", "script")
    asked = {
        "servers": [{**server.core_spec(), "compare_and_delete": release}],
        "connections": {"kind": "shared", "count": 4},
        "client_name": "pybench-perf",
        # Of its own: what a stream was for one lock may be a sorted set for another.
        "key_prefix": f"perf:{os.getpid()}:{next(_TRIALS)}:",
        "keys": 1_000,
        "concurrency": 64,
        "warmup_ns": 200 * MS,
        "duration_ns": round(SECONDS * 1e9),
    }
    return trial_spec(server, **{**asked, **fields})
