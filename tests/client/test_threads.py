"""Locks of threads, on a real server, beside redis-py's Lock on the same names."""

from __future__ import annotations

import contextlib
import os
import threading
from datetime import timedelta

import pytest

import pybench
from pybench.lock_client import ClientUnusable, LockClient, LockLost, NotAcquired
from tests.waiting import wait_until

NAMES = ["orders:17", "", " ", "a:b:{c}", "ä🔒", b"\x00{0000000000}\xff\r\n", "x" * 1024]


def test_a_lock_is_held_in_the_block_and_free_after_it(client, other):
    with client.lock("orders:17", ttl="5s", wait="2s") as held:
        assert other.exists("orders:17")
        assert 4.5 < held.time_left <= 5.0
        assert held.fence is None
        assert not held.lost.is_set()
    assert not other.exists("orders:17")
    assert held.time_left == 0.0
    assert not held.lost.is_set()


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_the_key_is_exactly_the_name(client, other, name):
    with client.lock(name):
        assert other.keys() == [name.encode() if isinstance(name, str) else name]
        with pytest.raises(NotAcquired), client.lock(name, wait="0"):
            pass
    assert other.dbsize() == 0


def test_redis_pys_lock_keeps_us_out_and_we_keep_it_out(client, other):
    theirs = other.lock("orders:17", timeout=5, blocking=False)
    assert theirs.acquire()
    with pytest.raises(NotAcquired), client.lock("orders:17", wait="0"):
        pass
    theirs.release()
    with client.lock("orders:17"):
        assert not theirs.acquire()
    assert theirs.acquire()
    theirs.release()


def test_a_refusal_says_how_long_the_holder_has_left(client, other):
    other.set("orders:17", "somebody", px=60_000)
    with pytest.raises(NotAcquired, match="left") as refused, client.lock("orders:17", wait="0"):
        pass
    assert 30 < refused.value.time_left <= 60
    other.set("orders:17", "somebody for ever")
    with pytest.raises(NotAcquired) as refused, client.lock("orders:17", wait="20ms"):
        pass
    assert refused.value.time_left is None


def test_a_waiting_lock_is_granted_when_the_holder_releases(client, other):
    theirs = other.lock("orders:17", timeout=5)
    theirs.acquire()
    granted = threading.Event()

    def wait() -> None:
        with client.lock("orders:17", wait="20s"):
            granted.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert not granted.wait(0.05)
    theirs.release()
    waiter.join()
    assert granted.is_set()


def test_threads_that_share_a_client_exclude_each_other(client):
    inside, most, count = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, count
        for _ in range(50):
            with client.lock("hot", wait="60s"):
                inside += 1
                most = max(most, inside)
                count += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, count) == (1, 400)


def test_many_locks_are_held_at_once(client, other):
    locks = [client.lock(f"many:{number}") for number in range(1_000)]
    for lock in locks:
        lock.__enter__()
    assert other.dbsize() == 1_000
    for lock in locks:
        lock.__exit__(None, None, None)
    assert other.dbsize() == 0


def test_a_lock_may_be_used_again_and_not_twice_at_once(client):
    lock = client.lock("orders:17")
    with lock, pytest.raises(RuntimeError, match="in use"), lock:
        pass
    with lock:
        pass


def test_an_error_in_the_block_releases_and_is_not_hidden(client, other):
    def fail() -> None:
        with client.lock("orders:17", ttl="5s"):
            other.delete("orders:17")
            raise KeyError("work")

    with pytest.raises(KeyError, match="work"):
        fail()
    with client.lock("orders:17", wait="0"):
        pass


def test_a_release_says_that_the_lock_was_not_held_any_more(client, other):
    lock = client.lock("orders:17")
    lock.__enter__()
    other.set("orders:17", "somebody")
    with pytest.raises(LockLost, match="no longer held"):
        lock.__exit__(None, None, None)
    assert other.get("orders:17") == b"somebody"


def test_lost_is_set_before_the_server_frees_the_lock(client, other):
    def was_still_there() -> bool:
        lock = client.lock("orders:17", ttl="500ms")
        held = lock.__enter__()
        assert held.lost.wait(20)
        exists = bool(other.exists("orders:17"))
        assert (held.time_left, held.lost.is_set()) == (0.0, True)
        with contextlib.suppress(LockLost):
            lock.__exit__(None, None, None)
        return exists

    # The key lives 7 ms longer. On a busy machine this test may look later than that, but not every time.
    assert any(was_still_there() for _ in range(10))


def test_waiting_for_a_loss_ends_with_the_release(client):
    lock = client.lock("orders:17")
    held = lock.__enter__()
    assert not held.lost.wait(0.01)
    done = threading.Thread(target=held.lost.wait)
    done.start()
    lock.__exit__(None, None, None)
    done.join()


def test_an_extension_gives_the_whole_ttl_again(client, other):
    with client.lock("orders:17", ttl="2s") as held:
        wait_until(lambda: held.time_left < 1.5, "time passes")
        assert held.extend() > 1.5
        assert other.pttl("orders:17") > 1_500


def test_an_extension_of_a_lock_that_is_gone_says_so(client, other):
    lock = client.lock("orders:17", ttl="20s")
    held = lock.__enter__()
    other.set("orders:17", "somebody")
    for _ in range(2):
        with pytest.raises(LockLost):
            held.extend()
        assert held.lost.is_set()
    with pytest.raises(LockLost):
        lock.__exit__(None, None, None)
    with pytest.raises(LockLost):
        held.extend()


def test_a_closed_client_has_released_its_locks_and_takes_no_more(url, other):
    client = LockClient(redis=url)
    lock = client.lock("orders:17")
    held = lock.__enter__()
    client.close()
    client.close()
    assert not other.exists("orders:17")
    assert held.lost.is_set()
    with pytest.raises(LockLost, match="closed"):
        lock.__exit__(None, None, None)
    with pytest.raises(ClientUnusable, match="closed"), client.lock("orders:17"):
        pass


def test_a_client_that_was_never_used_starts_no_thread(url):
    before = threading.active_count()
    native = len(list_tasks())
    client = LockClient(redis=url)
    assert (threading.active_count(), len(list_tasks())) == (before, native)
    client.close()


def list_tasks() -> list[str]:
    return os.listdir("/proc/self/task")  # noqa: PTH208 - names are enough


@pytest.mark.parametrize("length", ["5", "abc", "-1s", "0", "1ms"])
def test_a_ttl_that_cannot_be_is_a_value_error(client, length):
    with pytest.raises(ValueError):
        client.lock("orders:17", ttl=length)


def test_arguments_of_the_wrong_kind_are_refused(client, url):
    with pytest.raises(TypeError):
        client.lock("orders:17", ttl=5)
    with pytest.raises(TypeError):
        client.lock(17)
    with pytest.raises(ValueError, match="1024"):
        client.lock("ä" * 513)
    with pytest.raises(ValueError, match="shared"):
        client.lock("orders:17", shared=True)
    with pytest.raises(TypeError):
        LockClient(redis=[1])
    with client.lock("orders:17", ttl=timedelta(seconds=2), wait=timedelta(0)) as held:
        assert 1.5 < held.time_left <= 2.0


@pytest.mark.parametrize(
    ("strategy", "servers", "text"),
    [
        ("none", 1, "takes no lock"),
        ("naive", 1, "use mutex"),
        ("pg-row", 1, "pg-advisory"),
        ("mutexx", 1, "mutex"),
        ("mutex", 2, "1 server"),
        ("redlock(nodes=3)", 1, "needs 3 servers"),
        ("mutex", 0, "redis=URL"),
    ],
)
def test_a_strategy_that_cannot_be_is_a_value_error_with_the_reason(url, strategy, servers, text):
    with pytest.raises(ValueError, match=text):
        LockClient(strategy, redis=[url] * servers or None)


def test_no_password_is_in_an_error():
    with pytest.raises(ValueError) as raised:
        LockClient(redis="redis://user:sesame@localhost:x/0")
    assert "sesame" not in str(raised.value)


def test_the_package_has_it():
    assert pybench.LockClient is LockClient
