"""The cases of `make perf`: what is measured beside what, and what must be reached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pybench.servers import Server
from tests.benchmarks import references as ref
from tests.benchmarks.database import DATABASE_CASES
from tests.benchmarks.lock_client import LOCK_CLIENT_CASES
from tests.benchmarks.locks import LOCK_CASES
from tests.benchmarks.references import BARE, EXAMPLES, Figure, trial
from tests.benchmarks.sample import Case, Sample
from tests.benchmarks.service import SERVICE_CASES
from tests.benchmarks.swarm import SWARM_CASES
from tests.core_trials import MS


def shallow(server: Server) -> Iterator[Sample]:
    """64 clients over 4 connections beside a pump with 8 pairs in flight on each of 4."""
    pump = ref.pump(server, 4, 8)
    ours = trial(server)
    yield Sample("64 clients, 4 connections, 1,000 keys / pump 4 x 8", ours.per_s, pump.per_s, ("at least", 0.9))
    yield Sample("  client CPU a grant, 64 clients", ours.cpu_us, None, ("at most", 2.0), "us")
    yield Sample("  that beside the pump's own CPU a pair", ours.cpu_us, pump.cpu_us, None, "us")
    spin = trial(server, poll="spin")
    yield Sample("  the same with poll: spin / pump 4 x 8", spin.per_s, pump.per_s, ("at least", 1.0))
    if other := ref.redis_benchmark(server, clients=50, pipeline=64):
        yield Sample("  redis-benchmark -c 50 -P 64, two commands a pair", other.per_s, None, None)
        yield Sample("  redis-benchmark CPU for two commands", other.cpu_us, None, None, "us")


def deep(server: Server) -> Iterator[Sample]:
    """1,024 clients, and then 100,000, beside a pump with 32 pairs in flight on each of 50 connections."""
    pump = ref.pump(server, 50, 32)
    ours = trial(server, concurrency=1_024, keys=100_000)
    yield Sample(
        "1,024 clients, 4 connections, 100,000 keys / pump 50 x 32", ours.per_s, pump.per_s, ("at least", 0.95)
    )
    yield Sample("  client CPU a grant, 1,024 clients", ours.cpu_us, None, ("at most", 0.5), "us")
    as_deep = ref.pump(server, 4, 128)
    yield Sample("  that beside the own CPU a pair of a pump 4 x 128", ours.cpu_us, as_deep.cpu_us, None, "us")
    connections = {"kind": "shared", "count": 10}
    most = trial(server, concurrency=100_000, keys=1_000_000, connections=connections, warmup_ns=1_000 * MS)
    yield Sample(
        "100,000 clients, 10 connections, a million keys / pump 50 x 32", most.per_s, pump.per_s, ("at least", 0.75)
    )


def per_client(server: Server) -> Iterator[Sample]:
    """A connection for each of 50 clients, as redis-benchmark has it without pipelining."""
    other = ref.redis_benchmark(server, clients=50, pipeline=1)
    each = {"kind": "per-client"}
    ours = trial(server, concurrency=50, connections=each)
    if other:
        yield Sample("50 clients, a connection each / redis-benchmark -P 1", ours.per_s, other.per_s, ("at least", 1.3))
        if (native := ref.native_release(server)) != "script":
            ours = trial(server, concurrency=50, connections=each, release=native)
            yield Sample(f"  the same, release by {native.upper()}", ours.per_s, other.per_s, None)


def native_release(server: Server) -> Iterator[Sample]:
    """The server's own compare-and-delete beside the script."""
    own = ref.native_release(server)
    if own != "script":
        script, native = trial(server), trial(server, release=own)
        yield Sample(f"release by {own.upper()} / EVALSHA, 64 clients", native.per_s, script.per_s, ("at least", 1.6))


def timers(server: Server) -> Iterator[Sample]:
    """How late timers fire, at half and at a tenth of the load that the server bears."""
    most = trial(server).per_s
    for share, name in ((0.5, "half"), (0.1, "10 %")):
        loop = {"kind": "open", "arrivals": "poisson", "rate_per_s": most * share, "max_in_flight": 10_000}
        late = ref.send_delay_p99_us(server, loop=loop)
        yield Sample(f"lateness of arrivals at {name} load, p99", late, None, ("at most", 60.0), "us")
    # With holds of 1 ms, 64 clients ask the server for near half of what it bears, 16 for a tenth.
    for clients, name in ((64, "half"), (16, "10 %")):
        late = ref.send_delay_p99_us(server, concurrency=clients, hold={"kind": "fixed", "value_ns": MS})
        yield Sample(f"lateness of holds of 1 ms at {name} load, p99", late, None, ("at most", 60.0), "us")
    yield Sample("  of a bare thread that sleeps 1 ms and does nothing, p99", ref.bare_sleep_p99_us(), None, None, "us")
    late = ref.send_delay_p99_us(server, concurrency=16, keys=4)
    yield Sample("lateness of retries, 16 clients on 4 keys, p99", late, None, ("at most", 60.0), "us")


def hot_key(server: Server) -> Iterator[Sample]:
    """Everybody wants one key."""
    ours, theirs = trial(server, keys=1), ref.redis_py(server)
    yield Sample(
        "one hot key, 64 clients / 64 threads of redis-py's Lock", ours.per_s, theirs.per_s, ("at least", 20.0)
    )


def checker(server: Server) -> Iterator[Sample]:
    """What the checker and the histograms cost: a difference of a few percent, so many pairs in turn."""

    def measured(folder: Path) -> Figure:
        return ref.drive(server, folder, clients=64, keys=1_000, seconds=0.6)

    for number in range(10):
        if number % 2:
            off, on = measured(BARE), measured(EXAMPLES)
        else:
            on, off = measured(EXAMPLES), measured(BARE)
        costs = (on.cpu_us - off.cpu_us) * 1e3
        yield Sample("CPU of checker and histograms a grant", costs, None, ("at most", 50.0), "ns")
        yield Sample("  grants/s with / without", on.per_s, off.per_s, ("at least", 0.97))


def start_up(_server: Server) -> Iterator[Sample]:
    """What a user waits for before anything happens."""
    for name, arguments, most in (
        ("python -c 'import pybench'", ["-c", "import pybench"], 150.0),
        ("pybench --help", ["-m", "pybench", "--help"], 300.0),
    ):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        yield Sample(name, (time.perf_counter() - began) * 1e3, None, ("at most", most), "ms")


def memory(server: Server) -> Iterator[Sample]:
    """What a client takes beyond the tables of keys."""
    # Not ru_maxrss, which begins with that of the process that forked.
    script = (
        "import re, sys, json; from pybench import _core; _core.Trial(json.loads(sys.argv[1])).run();"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )

    def peak_kib(clients: int) -> int:
        asked = json.dumps(ref.spec(server, concurrency=clients, keys=1_000_000, duration_ns=500 * MS))
        ended = subprocess.run([sys.executable, "-c", script, asked], check=True, capture_output=True, text=True)
        return int(ended.stdout)

    each = (peak_kib(100_000) - peak_kib(1_000)) * 1024 / 99_000
    yield Sample("memory a client, of 100,000", each, None, ("at most", 512.0), "bytes")


def threads(server: Server) -> Iterator[Sample]:
    """Two threads beside one, where there is a core for each and one for the server."""
    if (os.cpu_count() or 1) >= 3:
        one, two = trial(server), trial(server, threads=2)
        yield Sample("two threads / one", two.per_s, one.per_s, ("at least", 0.95))


CASES: tuple[Case, ...] = (
    shallow,
    deep,
    per_client,
    native_release,
    timers,
    hot_key,
    checker,
    memory,
    threads,
    start_up,
    *LOCK_CASES,
    *DATABASE_CASES,
    *LOCK_CLIENT_CASES,
    *SERVICE_CASES,
    *SWARM_CASES,
)
