"""What every lock must survive of a real server, in the middle of a trial.

Each trial goes on until it has granted again after the disturbance, and is then stopped, so that a slow machine makes a
test longer and not red. What a strategy does otherwise by its nature stands here by name, with the reason.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from pydantic import SecretStr

from pybench import _core
from pybench.servers import Server, ServerPool
from pybench.servers.redis.binaries import Source
from pybench.strategies import CATALOGUE, Scalar, ServerKind, parse_strategy
from pybench.strategies.entry import Exclusion
from tests.core_trials import MS, fixed, trial_spec
from tests.redis_client import connect
from tests.waiting import wait_until

PREFIX = "survive:"
CLIENT = "pybench-survive"
NAMES = [f"{PREFIX}{{{index}}}" for index in range(2)]
CLIENTS = 8
TTL_MS = 100
PAUSE_MS = 150
"""Longer than the lease: whoever is paused in the middle wakes up without it."""
RECOVERS_WITHIN_S = 5.0
ENOUGH = 10
"""Grants that show that work goes on."""

# The control has no lock that a server could hurt; those of databases have a file of their own.
LOCKS = [name for name, strategy in CATALOGUE.items() if strategy.server_kinds == (ServerKind.REDIS,)]
# As they are by default, and what an argument makes another machine.
LOCKS += [KEPT := "notify(renew=ttl/3)"]

# Longer than the first renewal takes to come.
HOLD_MS = dict.fromkeys(["watchdog", "fenced", KEPT], TTL_MS // 2)

ARGS: dict[str, dict[str, int]] = {
    # What they wait for whoever is gone, made short against these trials.
    "fair-queue": {"beat_ms": 100},
    "redisson-redlock": {"wait_budget_ms": TTL_MS},
    "redisson-multilock": {"wait_budget_ms": TTL_MS},
    # Shorter than the shortest patience here.
    "replicated": {"timeout_ms": 20},
    # Five servers share this machine: by default each has 10 ms, and one that has not had its turn would be a fault.
    "redlock": {"node_timeout_ms": 50},
    "multilock": {"node_timeout_ms": 50},
}

LEAKS_WHEN_CUT_OFF = {
    # SETNX without a lease: cut off between it and EXPIRE, the lock never ends. This is why nobody should use it.
    "naive",
}

COMPANIONS = ["queue", "tickets", "place", "bell", "next", "channel", "fence", "readers", "writers"]
USES_COMPANIONS = {"read-write", "fair", "fair-queue", "fenced"}

WRITE_FIRST = {
    # Their scripts begin by removing what is over, and a script that has written may write on without memory.
    "read-write",
    "semaphore",
}

FOREVER = {
    # Its numbers have to outlive every lease.
    "fenced": {":fence"},
    # The stream and its group are made once for each lock.
    "fair": {":tickets"},
}


@dataclass(frozen=True)
class Backend:
    name: str
    urls: tuple[SecretStr, ...] = ()
    source: Source = "auto"


@pytest.fixture(scope="module")
def pool() -> Iterator[ServerPool]:
    with ServerPool() as pool:
        yield pool


class Survival:
    """A strategy, its servers, another user of each, and one trial."""

    def __init__(self, written: str, servers: Sequence[Server], users: Sequence[redis.Redis]) -> None:
        self.name, arguments = parse_strategy(written)
        self.args: dict[str, Scalar] = {**ARGS.get(self.name, {}), **dict(arguments)}
        self.hold_ms = HOLD_MS.get(written, 1)
        self.servers = servers
        self.users = users
        self.trial: Any = None

    def begin(self, **fields: object) -> None:
        self.trial = _core.Trial(
            trial_spec(
                self.servers[0],
                **{
                    "strategy": self.name,
                    "args": self.args,
                    "servers": [{**server.core_spec(), "compare_and_delete": "script"} for server in self.servers],
                    "client_name": CLIENT,
                    "key_prefix": PREFIX,
                    "concurrency": CLIENTS,
                    "keys": len(NAMES),
                    "hold": fixed(self.hold_ms),
                    "ttl_ms": TTL_MS,
                    "warmup_ns": 0,
                    "duration_ns": 30_000 * MS,
                    **fields,
                },
            )
        )

    @contextlib.contextmanager
    def running(self, **fields: object) -> Iterator[None]:
        """The trial in its window; stopped at the end, and everything given back that can be."""
        self.begin(**fields)
        thread = threading.Thread(target=self.trial.run)
        thread.start()
        try:
            wait_until(lambda: self.trial.progress().phase == "measuring", "the trial gets to its window")
            time.sleep(0.02)
            yield
        finally:
            self.trial.stop()
            stopped = time.monotonic()
            thread.join()
        assert time.monotonic() - stopped < 1, "a stop is heeded at once"

    @property
    def totals(self) -> dict[str, int]:
        return self.trial.result.totals

    def await_grants(self) -> None:
        """Until there were grants that came after this call."""
        # Progress is told every 100 ms: what it tells first may be older.
        for _ in range(2):
            before = self.trial.progress().grants
            wait_until(
                lambda before=before: self.trial.progress().grants >= before + ENOUGH,
                "grants go on",
                seconds=RECOVERS_WITHIN_S,
            )

    def await_errors(self) -> None:
        before = self.trial.progress().errors
        wait_until(lambda: self.trial.progress().errors > before, "a caller hears of it", seconds=RECOVERS_WITHIN_S)

    def on_all(self, do: Callable[[redis.Redis], object]) -> None:
        for user in self.users:
            do(user)

    def check_exclusion(self) -> None:
        # `naive` deletes whatever lies under the name, and `redisson-redlock` returns locks that are over.
        if CATALOGUE[self.name].exclusion is Exclusion.ALWAYS:
            assert self.totals["double_grants"] == 0
        assert self.totals["stale_fences"] == 0

    def check_keys(self) -> None:
        """Every key that is left ends by itself."""
        if self.name in LEAKS_WHEN_CUT_OFF:
            return
        for user in self.users:
            for key in user.scan_iter():
                name = key.decode()
                if user.pttl(key) == -1:
                    assert name.removeprefix(PREFIX)[3:] in FOREVER.get(self.name, set()), f"{name} stays for ever"


def went_wrong(totals: dict[str, int], *kinds: str) -> dict[str, int]:
    """Those of `kinds` that happened."""
    return {kind: totals[kind] for kind in kinds if totals[kind]}


def kind_of(client: dict[str, str]) -> str:
    return "pubsub" if int(client["sub"]) else "normal"


def is_killed(user: redis.Redis, client: dict[str, str]) -> bool:
    """Whether it was the trial's, and is gone."""
    return client["name"] == CLIENT and user.client_kill_filter(_id=client["id"]) == 1


@pytest.fixture(params=LOCKS)
def lock(request: pytest.FixtureRequest, pool: ServerPool) -> Iterator[Survival]:
    strategy = CATALOGUE[parse_strategy(request.param)[0]]
    servers = pool.redis(Backend("here"), servers=strategy.servers(()), replicas=strategy.replicas(()))
    with contextlib.ExitStack() as stack:
        users = [stack.enter_context(connect(server.endpoint)) for server in servers]
        for user in users:
            user.flushall()
        yield Survival(request.param, servers, users)


def test_scripts_flushed_again_and_again_are_no_error_and_nothing_of_the_trial_is_left(lock: Survival):
    # A lease that does not end before its holder has had its turn, on however busy a machine.
    with lock.running(ttl_ms=10_000):
        for _ in range(40):
            lock.on_all(lambda user: user.script_flush())
            time.sleep(0.005)
        lock.await_grants()
    totals = lock.totals
    assert not went_wrong(totals, "errors", "unknown", "lost", "lost_calls")
    lock.check_exclusion()
    lock.check_keys()
    # A stop waits for 100 ms. Where the machine had no time for the server then, clients still held or waited.
    for user in lock.users if not totals["abandoned"] else ():
        assert not user.exists(*NAMES), "what is given back is free"
        if lock.name == "fair":
            # A ticket that a reader was handed just as it hung up stays; each client has one at a time.
            assert sum(user.xlen(f"{name}:tickets") for name in NAMES) <= CLIENTS


def test_killed_connections_are_lost_calls_and_grants_go_on(lock: Survival):
    killed: set[str] = set()
    with lock.running():
        for _ in range(3):
            for user in lock.users:
                user.client_pause(1_000, all=False)
            time.sleep(0.02)  # Now calls are on their way that will never be answered.
            for user in lock.users:
                killed |= {kind_of(client) for client in user.client_list() if is_killed(user, client)}
                user.client_unpause()
            time.sleep(0.03)
        if lock.name not in LEAKS_WHEN_CUT_OFF:
            lock.await_grants()
    assert lock.totals["reconnects"] >= 3
    assert lock.totals["lost_calls"] > 0
    assert killed == ({"normal", "pubsub"} if lock.name == "notify" else {"normal"})
    lock.check_exclusion()
    lock.check_keys()


@pytest.mark.slow
@pytest.mark.parametrize("patience_ms", [1_000, 30], ids=["waited for", "given up"])
def test_a_paused_server_is_outlived_by_the_trial(lock: Survival, patience_ms: int):
    with lock.running(reply_timeout_ns=patience_ms * MS):
        lock.on_all(lambda user: user.client_pause(PAUSE_MS, all=True))
        time.sleep(PAUSE_MS / 1_000)
        if lock.name not in LEAKS_WHEN_CUT_OFF or patience_ms > PAUSE_MS:
            lock.await_grants()
    lock.check_exclusion()
    lock.check_keys()


@pytest.mark.slow
def test_a_server_that_stands_still_is_outlived_by_the_trial(lock: Survival):
    # As DEBUG SLEEP, but the kernel goes on taking what is sent.
    with lock.running():
        for server in lock.servers:
            assert server.pid is not None
            os.kill(server.pid, signal.SIGSTOP)
        try:
            time.sleep(PAUSE_MS / 1_000)
        finally:
            for server in lock.servers:
                assert server.pid is not None
                os.kill(server.pid, signal.SIGCONT)
        lock.await_grants()
    lock.check_exclusion()
    lock.check_keys()


@pytest.mark.parametrize("place", ["name", "companions"])
def test_a_key_of_another_type_is_a_clear_outcome_and_stays_as_it_was(lock: Survival, place: str):
    foreign = {"name": NAMES[:1], "companions": [f"{NAMES[0]}:{suffix}" for suffix in COMPANIONS]}[place]
    # No script knows this type.
    for user in lock.users:
        for key in foreign:
            user.pfadd(key, "not yours")
    before = [user.dump(key) for user in lock.users for key in foreign]
    retry = {**trial_spec(lock.servers[0])["retry"], "max_wait_ns": 20 * MS}
    with lock.running(retry=retry):
        lock.await_grants()  # Those of the other key.
    totals = lock.totals
    if place == "name" or lock.name in USES_COMPANIONS:
        assert totals["errors"] + totals["timeouts"] + totals["refused"] > 8
    else:
        assert totals["errors"] == 0
    assert not went_wrong(totals, "unknown", "lost_calls")
    assert [user.dump(key) for user in lock.users for key in foreign] == before
    assert not any(user.exists(NAMES[0]) for user in lock.users) or place == "name"
    lock.check_exclusion()


@pytest.mark.slow
def test_a_server_that_becomes_a_replica_is_a_clear_error_until_it_is_none(lock: Survival):
    with lock.running():
        lock.on_all(lambda user: user.replicaof("127.0.0.1", "1"))
        lock.await_errors()
        lock.on_all(lambda user: user.replicaof("no", "one"))
        if lock.name not in LEAKS_WHEN_CUT_OFF:
            lock.await_grants()
    lock.check_exclusion()
    lock.check_keys()


def test_a_server_without_memory_is_a_clear_error_until_it_has_some(lock: Survival):
    # A lease that nobody waits for: grants go on only if what was held could be given back without memory.
    with lock.running(ttl_ms=60_000):
        lock.on_all(lambda user: user.config_set("maxmemory", "1"))
        try:
            if lock.name in WRITE_FIRST:
                lock.await_grants()
            else:
                lock.await_errors()
        finally:
            lock.on_all(lambda user: user.config_set("maxmemory", "0"))
        lock.await_grants()
    assert not went_wrong(lock.totals, "unknown", "lost_calls")
    lock.check_exclusion()
    lock.check_keys()
