"""Every strategy for programs, on real servers: it excludes, it releases, and it gives what it promises."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
import redis

from pybench.lock_client import LockClient, LockLost, NoQuorum, NotAcquired
from pybench.lock_client.servers import _REFUSED, OFFERED
from pybench.strategies import CATALOGUE
from tests.boundary import databases
from tests.waiting import wait_until

ON_ONE_SERVER = [name for name in OFFERED if name not in ("redlock", "pg-advisory")]


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with databases.running() as database:
        yield url_of(database.process.endpoint)


def url_of(endpoint) -> str:
    secret = "" if endpoint.password is None else f":{endpoint.password.get_secret_value()}"
    return endpoint.address.replace("postgresql://", f"postgresql://{endpoint.user}{secret}@")


@pytest.fixture(params=[*ON_ONE_SERVER, "redlock(nodes=3)", "pg-advisory", "pg-advisory(scope=transaction)"])
def any_client(request, url, other) -> Iterator[LockClient]:
    servers = {"redis": url}
    if request.param.startswith("redlock"):
        servers = {"redis": request.getfixturevalue("three_urls")}
    if request.param.startswith("pg"):
        servers = {"postgres": request.getfixturevalue("postgres_url")}
    strategy = "semaphore(permits=1)" if request.param == "semaphore" else request.param
    with LockClient(strategy, **servers) as client:
        yield client


def test_each_strategy_is_offered_or_refused_with_a_reason():
    assert {*OFFERED, *_REFUSED} == set(CATALOGUE)
    assert not {*OFFERED} & {*_REFUSED}


def test_two_holders_never_meet(any_client):
    inside, most, count = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, count
        for _ in range(10):
            with any_client.lock("hot", ttl="20s", wait="60s") as held:
                inside += 1
                most = max(most, inside)
                assert not held.lost.is_set()
                count += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, count) == (1, 40)


def test_a_lock_that_is_held_is_refused_and_free_at_once_after_a_cancellation(any_client):
    with any_client.lock("orders:17", ttl="1h", wait="5s") as held:
        left = held.time_left
        assert left is None or left > 3_000
        with pytest.raises(NotAcquired), any_client.lock("orders:17", ttl="1h", wait="50ms"):
            pass

    async def cancelled() -> None:
        task = asyncio.ensure_future(any_client.lock("orders:17", ttl="1h", wait="5s").__aenter__())
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    with any_client.lock("orders:17", ttl="1h", wait="20s"):
        pass


def test_two_clients_keep_each_other_out(any_client, url, request):
    strategy = any_client.strategy
    servers = {"redis": url}
    if strategy.startswith("redlock"):
        servers = {"redis": request.getfixturevalue("three_urls")}
    if strategy.startswith("pg"):
        servers = {"postgres": request.getfixturevalue("postgres_url")}
    with LockClient(strategy, **servers) as second:
        with (
            any_client.lock("between processes", wait="5s"),
            pytest.raises(NotAcquired),
            second.lock("between processes", wait="0"),
        ):
            pass
        with second.lock("between processes", wait="20s"):
            pass


def test_fences_grow(url, other):
    with LockClient("fenced", redis=url) as client:
        fences = []
        for _ in range(3):
            with client.lock("orders:17") as held:
                fences.append(held.fence)
        assert fences == [1, 2, 3]
        assert other.get("orders:17:fence") == b"3"


def test_a_watchdog_holds_beyond_its_ttl(url, other):
    with LockClient("watchdog", redis=url) as client, client.lock("orders:17", ttl="400ms") as held:
        token = other.get("orders:17")
        assert not held.lost.wait(1.0)
        assert other.get("orders:17") == token
        assert held.time_left > 0


def test_a_watchdog_tells_a_loss_at_its_next_renewal(url, other):
    with LockClient("watchdog", redis=url) as client:
        lock = client.lock("orders:17", ttl="3s")
        held = lock.__enter__()
        other.set("orders:17", "somebody")
        assert held.lost.wait(20)
        with pytest.raises(LockLost):
            lock.__exit__(None, None, None)
        assert other.get("orders:17") == b"somebody"


def test_a_semaphore_has_its_permits(url, other):
    with (
        LockClient("semaphore(permits=2)", redis=url) as client,
        client.lock("pool"),
        client.lock("pool"),
        pytest.raises(NotAcquired),
        client.lock("pool", wait="0"),
    ):
        pass


def test_readers_share_and_a_writer_does_not(url, other):
    with LockClient("read-write", redis=url) as client:
        with client.lock("doc", shared=True), client.lock("doc", shared=True), pytest.raises(NotAcquired):
            client.lock("doc", wait="0").__enter__()
        with client.lock("doc"), pytest.raises(NotAcquired):
            client.lock("doc", wait="0", shared=True).__enter__()


def test_a_released_lock_wakes_who_listens(url, other):
    granted = threading.Event()
    with LockClient("notify", redis=url) as client:
        lock = client.lock("orders:17", ttl="1h")
        lock.__enter__()

        def wait() -> None:
            with client.lock("orders:17", ttl="1h", wait="60s"):
                granted.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        wait_until(lambda: other.pubsub_numsub("orders:17:channel")[0][1] == 1, "it listens")
        lock.__exit__(None, None, None)
        waiter.join()
    assert granted.is_set()


def test_a_majority_is_enough_and_a_minority_is_not(three_urls):
    servers = [redis.Redis.from_url(url) for url in three_urls]
    with LockClient("redlock(nodes=3)", redis=three_urls) as client:
        servers[0].set("orders:17", "somebody")
        with client.lock("orders:17", wait="0"):
            assert servers[1].exists("orders:17") + servers[2].exists("orders:17") == 2
        servers[1].set("orders:17", "somebody else")
        with pytest.raises(NotAcquired) as refused, client.lock("orders:17", wait="0"):
            pass
        assert not isinstance(refused.value, NoQuorum), "enough servers replied: others hold it"
        assert not servers[2].exists("orders:17")
    for server in servers:
        server.flushall()
        server.close()


def test_a_majority_is_enough_also_when_one_server_was_never_there(three_urls):
    with (
        LockClient("redlock(nodes=3)", redis=[*three_urls[:2], "redis://127.0.0.1:1"]) as client,
        client.lock("orders:17", wait="5s") as held,
    ):
        assert held.time_left > 0


def test_too_few_servers_are_no_quorum_and_nothing_stays_on_those_that_are_there(three_urls):
    here = redis.Redis.from_url(three_urls[0])
    gone = ["redis://127.0.0.1:1", "redis://127.0.0.1:2"]
    with (
        LockClient("redlock(nodes=3)", redis=[three_urls[0], *gone]) as client,
        pytest.raises(NoQuorum),
        client.lock("orders:17", wait="0"),
    ):
        pass
    wait_until(lambda: not here.exists("orders:17"), "what was granted is released")
    here.close()


def test_a_policy_says_how_often_and_when_a_lock_is_tried(url, other):
    other.set("orders:17", "somebody")
    with LockClient(redis=url) as client:
        for retry, attempts in (("none", 1), ("fixed(base=5ms, max_attempts=3)", 3)):
            before = other.info("commandstats").get("cmdstat_set", {"calls": 0})["calls"]
            with pytest.raises(NotAcquired), client.lock("orders:17", wait="60s", retry=retry):
                pass
            assert other.info("commandstats")["cmdstat_set"]["calls"] - before == attempts
        for wrong in ("sometimes", "fixed(5ms)", "exponential(base=1s, cap=1ms)"):
            with pytest.raises(ValueError):
                client.lock("orders:17", retry=wrong)
        with pytest.raises(TypeError):
            client.lock("orders:17", retry=3)


@pytest.mark.parametrize("strategy", ["pg-advisory", "pg-advisory(scope=transaction)"])
def test_a_lock_of_a_session_is_lost_with_it(postgres_url, strategy):
    import psycopg

    with LockClient(strategy, postgres=postgres_url) as client:
        lock = client.lock("orders:17", wait="5s")
        held = lock.__enter__()
        assert held.time_left is None
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
            )
        assert held.lost.wait(20)
        assert held.time_left == 0.0
        with pytest.raises(LockLost):
            lock.__exit__(None, None, None)
        with client.lock("orders:17", wait="20s"):
            pass


def test_more_locks_than_connections_say_so(postgres_url):
    with (
        LockClient("pg-advisory", postgres=postgres_url, connections=1) as client,
        client.lock("one", wait="5s"),
        pytest.raises(Exception, match="connections=N"),
        client.lock("two", wait="0"),
    ):
        pass
