"""Measures how soon another client gets a lock after its holder died or lost its connection, or its server crashed.

    python -m tools.failures results/redis-vs-postgres

measures the locks on its own servers, with default persistence, and writes `failures.json` into that folder. It takes
about four minutes.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pybench import _core
from pybench.errors import ServerError
from pybench.machine import describe_machine
from pybench.records.atomic import write_atomically
from pybench.servers import Server
from pybench.servers.redis import binaries
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.probe import probe
from pybench.strategies import CATALOGUE, ServerKind, parse_strategy
from tests.boundary.databases import Database, running
from tests.core_trials import MS, fixed, trial_spec_of
from tests.waiting import wait_until

NAME = "failures.json"
LOCKS = (
    *("mutex", "fenced", "fair-queue", "pg-advisory", "pg-advisory(scope=transaction)", "pg-row", "pg-lease"),
    "layered",
)
TTL_MS = 4_000
"""Longer than a server takes to restart: a lock that is free sooner was lost; its lease had not ended."""
HOLD_MS = 20_000
"""Longer than any client waits, so that the holder's release never frees the lock."""
WAIT_MS = 8_000
"""The wait of the next client. If the client has no lock by then, the holder has kept the lock."""
HOLDER, NEXT = "failing-holder", "failing-next"
_PREFIXES = itertools.count()


class Redis:
    """A Redis server that can crash and restart, with default persistence."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.binary = binaries.find("auto")
        self.process: subprocess.Popen[bytes] | None = None
        self.endpoint = Endpoint(unix=str(folder / "socket"))

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        command = [str(self.binary.path), "--port", "0", "--unixsocket", str(self.endpoint.unix), "--dir"]
        self.process = subprocess.Popen(
            [*command, str(self.folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(self.answers, "the server answers")

    def crash(self) -> None:
        """Kill the server, as the kernel or a power failure would."""
        assert self.process is not None, "the server has been started"
        self.process.kill()
        self.process.wait()

    def end_connections(self) -> None:
        """Close the connections of all clients."""
        with self.server().conversation() as conversation:
            conversation.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def answers(self) -> bool:
        """Whether the server accepts commands."""
        try:
            self.server()
        except ServerError:
            return False
        return True

    def server(self) -> Server:
        """The server, as pybench describes it."""
        return Server(self.endpoint, probe(self.endpoint), self.binary.source, None)


@dataclass(frozen=True)
class Servers:
    """One server of each kind."""

    redis: Redis
    postgres: Database

    def specs(self, kinds: tuple[ServerKind, ...], name: str) -> list[dict[str, Any]]:
        """The servers of `kinds`, as the core expects them."""
        settings = {"application_name": name, "lock_timeout": "30000", "client_connection_check_interval": "100"}
        return [
            dict(self.redis.server().core_spec())
            if kind is ServerKind.REDIS
            else self.postgres.core_spec(settings=settings)
            for kind in kinds
        ]

    def end_connections(self, kinds: tuple[ServerKind, ...]) -> None:
        """End the holder's connections to its servers of `kinds`."""
        if ServerKind.REDIS in kinds:
            self.redis.end_connections()
        if ServerKind.POSTGRES in kinds:
            with self.postgres.connect() as session:
                session.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [HOLDER]
                )

    def crash(self, kinds: tuple[ServerKind, ...]) -> None:
        """Crash and restart the servers of `kinds`."""
        if ServerKind.REDIS in kinds:
            self.redis.crash()
            self.redis.start()
        if ServerKind.POSTGRES in kinds:
            self.postgres.stop(signal.SIGQUIT)
            self.postgres.start()


def measure(servers: Servers, lock: str) -> dict[str, Any]:
    """The failures of `lock`: milliseconds until the next client has the lock, None if its holder keeps it."""
    name, arguments = parse_strategy(lock)
    kinds = CATALOGUE[name].server_kinds
    asked = {"strategy": name, "args": dict(arguments)}
    died_ms = _after_death(servers, kinds, asked)
    lost_ms, lost_told, _ = _after(lambda: servers.end_connections(kinds), servers, kinds, asked)
    crashed_ms, crashed_told, away_ms = _after(lambda: servers.crash(kinds), servers, kinds, asked)
    return {
        "lock": lock,
        "holder_died_ms": died_ms,
        "connection_ended_ms": lost_ms,
        "connection_ended_told": lost_told,
        "server_crashed_ms": crashed_ms,
        "server_crashed_told": crashed_told,
        "server_away_ms": away_ms,
    }


def _after_death(servers: Servers, kinds: tuple[ServerKind, ...], asked: dict[str, Any]) -> float | None:
    servers.postgres.make_table(1)
    prefix = f"failing:{next(_PREFIXES)}:"
    spec = _spec(servers.specs(kinds, HOLDER), prefix, hold_ms=HOLD_MS, duration_ms=50, dies=True, **asked)
    _core.Trial(spec).run()
    return _next_ms(servers, kinds, prefix, asked, time.monotonic())


def _after(
    event: Callable[[], None], servers: Servers, kinds: tuple[ServerKind, ...], asked: dict[str, Any]
) -> tuple[float | None, bool, float]:
    """Milliseconds from `event` to the next grant, whether the holder was notified, and how long `event` took.

    A crashed server has restarted when the event is over.
    """
    servers.postgres.make_table(1)
    prefix = f"failing:{next(_PREFIXES)}:"
    holder = _core.Trial(_spec(servers.specs(kinds, HOLDER), prefix, hold_ms=HOLD_MS, duration_ms=2 * HOLD_MS, **asked))
    thread = threading.Thread(target=holder.run)
    thread.start()
    wait_until(lambda: holder.progress().grants, "the holder has the lock")
    began = time.monotonic()
    event()
    over = time.monotonic()
    freed_ms = _next_ms(servers, kinds, prefix, asked, over)
    holder.stop()
    thread.join()
    assert holder.result is not None
    return freed_ms, holder.result.totals["lapsed"] > 0, round((over - began) * 1e3, 1)


def _next_ms(
    servers: Servers, kinds: tuple[ServerKind, ...], prefix: str, asked: dict[str, Any], since: float
) -> float | None:
    # With the holder's seed the next client would draw the holder's token.
    spec = _spec(servers.specs(kinds, NEXT), prefix, hold_ms=0, duration_ms=WAIT_MS, seed=2, **asked)
    result = _core.Trial(spec).run()
    if not result.totals["grants"]:
        return None
    began = time.monotonic() - result.totals["window_ns"] / 1e9
    return round((began - since) * 1e3 + result.totals["longest_wait_ns"] / 1e6, 1)


def _spec(
    servers: list[dict[str, Any]], prefix: str, *, hold_ms: float, duration_ms: float, **fields: object
) -> dict[str, Any]:
    poll = {"kind": "fixed", "base_ns": MS, "factor": 1.0, "cap_ns": MS, "max_attempts": None}
    asked = {
        "key_prefix": prefix,
        "concurrency": 1,
        "connections": {"kind": "shared", "count": 1},
        "ttl_ms": TTL_MS,
        "hold": fixed(hold_ms),
        "warmup_ns": 0,
        "duration_ns": round(duration_ms * MS),
        "retry": {**poll, "max_wait_ns": 30_000 * MS},
    }
    return trial_spec_of(servers, **{**asked, **fields})


@contextlib.contextmanager
def _servers() -> Iterator[Servers]:
    with tempfile.TemporaryDirectory(prefix="pybench-") as folder, running() as postgres:
        with postgres.connect() as session:
            # Tests turn fsync off; here the database must survive a crash, as with its default.
            session.execute("ALTER SYSTEM RESET fsync")
            session.execute("SELECT pg_reload_conf()")
        redis = Redis(Path(folder))
        redis.start()
        try:
            yield Servers(redis, postgres)
        finally:
            redis.crash()


def main(folder: Path) -> None:
    """Measure every lock, and write `failures.json` into `folder`."""
    with _servers() as servers:
        with servers.postgres.connect() as session:
            [version] = session.execute("SHOW server_version").fetchone() or [""]
        labels = [servers.redis.server().label, f"postgres {version}"]
        found = []
        for lock in LOCKS:
            found.append(measure(servers, lock))
            print(found[-1], file=sys.stderr)
    record = {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "ttl_ms": TTL_MS,
        "waited_ms": WAIT_MS,
        "servers": labels,
        "machine": {name: describe_machine()[name] for name in ("cpu", "cores")},
        "locks": found,
    }
    write_atomically(folder / NAME, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
