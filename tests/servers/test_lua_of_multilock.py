"""The Lua of `multilock` on real servers: all keys or none, and only one's own given back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from pybench.servers.redis import supervisor
from pybench.servers.redis.binaries import Binary
from tests.redis_client import connect

LUA = Path(__file__).parents[2] / "rust_core" / "locks" / "src" / "lua"
LEASE_MS = 5_000
LONGEST_MS = 2**53
KEYS = ["{7}a", "{7}:b c", "{7}\x00\xff"]


@pytest.fixture
def client(binary: Binary) -> Iterator[redis.Redis]:
    server, _ = supervisor.start(binary)
    with connect(server.endpoint) as client:
        yield client
    server.stop()


class Multilock:
    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.take_script = client.register_script((LUA / "take_all.lua").read_text(encoding="utf-8"))
        self.release_script = client.register_script((LUA / "release_all.lua").read_text(encoding="utf-8"))

    def take(self, token: str, keys: list[str] = KEYS, lease_ms: int = LEASE_MS) -> int:
        return self.take_script(keys, [token, lease_ms])

    def release(self, token: str, keys: list[str] = KEYS) -> int:
        return self.release_script(keys, [token, 0])

    def holders(self) -> list[bytes | None]:
        return self.client.mget(KEYS)


@pytest.fixture
def multilock(client: redis.Redis) -> Multilock:
    return Multilock(client)


def test_all_keys_are_taken_with_one_token_and_the_lease_in_ms(multilock):
    assert multilock.take("mine") == 1
    assert multilock.holders() == [b"mine"] * 3
    assert all(LEASE_MS - 1_000 < multilock.client.pttl(key) <= LEASE_MS for key in KEYS)
    assert multilock.release("mine") == 1
    assert multilock.client.keys() == []


@pytest.mark.parametrize("taken", range(3))
def test_one_key_of_another_leaves_none_taken_and_the_other_s_lease_alone(multilock, taken):
    multilock.client.set(KEYS[taken], "theirs", px=60_000)
    assert multilock.take("mine") == 0
    assert multilock.client.keys() == [KEYS[taken].encode()]
    assert multilock.client.pttl(KEYS[taken]) > 59_000


def test_what_is_mine_already_is_not_taken_again_nor_lost(multilock):
    assert multilock.take("mine", KEYS[:1]) == 1
    assert multilock.take("mine") == 0
    assert multilock.holders() == [b"mine", None, None]


def test_a_release_deletes_what_is_still_mine_and_says_that_it_was_not_all(multilock):
    multilock.take("mine")
    multilock.client.delete(KEYS[0])
    multilock.client.set(KEYS[1], "theirs")
    assert multilock.release("mine") == 0
    assert multilock.holders() == [None, b"theirs", None]
    assert multilock.release("mine") == 0


def test_a_key_of_another_type_counts_as_taken_and_does_not_keep_the_others(multilock):
    multilock.client.rpush(KEYS[1], "not a lock")
    assert multilock.take("mine") == 0
    assert multilock.client.keys() == [KEYS[1].encode()]
    assert multilock.take("mine", [KEYS[0], KEYS[2]]) == 1
    assert multilock.release("mine") == 0
    assert multilock.client.keys() == [KEYS[1].encode()]


def test_the_longest_lease_does_not_wrap(multilock):
    assert multilock.take("mine", lease_ms=LONGEST_MS) == 1
    assert multilock.client.pttl(KEYS[0]) > LONGEST_MS - 60_000


def test_a_full_server_takes_none_and_says_so(multilock):
    multilock.client.config_set("maxmemory-policy", "noeviction")
    multilock.client.config_set("maxmemory", 1)
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        multilock.take("mine")
    multilock.client.config_set("maxmemory", 0)
    assert multilock.client.keys() == []
