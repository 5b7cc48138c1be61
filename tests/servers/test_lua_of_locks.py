"""The Lua of the locks that wait, each script on real servers: what it answers, and what it leaves behind."""

from __future__ import annotations

import pytest
import redis

from tests.servers.queue_scripts import ALIVE_MS, LEASE_MS, LUA, PLACED, TAKEN, TURNED_AWAY, WAITS


def test_a_free_lock_is_taken_at_once_and_leaves_no_queue_behind(queue):
    assert queue.take("a") == TAKEN
    assert queue.client.keys() == [b"lock{1}"]
    assert 0 < queue.client.pttl("lock{1}") <= LEASE_MS
    assert queue.leave("a") == 1
    assert queue.client.keys() == []


def test_waiters_are_served_in_their_order_of_arrival(queue):
    waiters = [f"w{n}" for n in (3, 1, 2, 9, 0)]
    queue.take("a")
    assert [queue.take(waiter) for waiter in waiters] == [PLACED] * 5
    assert [queue.take(waiter) for waiter in reversed(waiters)] == [WAITS] * 5
    holder = "a"
    for waiter in waiters:
        assert queue.leave(holder) == 1
        assert queue.holder() == waiter
        assert [other for other in waiters if queue.ring(other)] == [waiter]
        holder = waiter


def test_a_lock_handed_over_is_overtaken_by_nobody_and_begins_its_lease_when_the_ring_is_answered(queue):
    queue.take("a")
    queue.take("b")
    queue.leave("a", lasts_ms=ALIVE_MS)
    assert queue.take("c") == PLACED
    assert queue.take("d", alive_ms=0) == TURNED_AWAY
    queue.pass_ms(100_000)
    assert queue.client.pttl("lock{1}") <= ALIVE_MS - 100_000
    assert queue.take("b") == TAKEN
    assert queue.client.pttl("lock{1}") > LEASE_MS - 1_000_000
    assert queue.leave("b") == 1
    assert queue.holder() == "c"


def test_a_lock_handed_over_lasts_as_long_as_was_said_and_its_ring_as_long_as_its_waiter_counts_as_alive(queue):
    queue.take("a")
    queue.take("b", alive_ms=400_000)
    queue.leave("a", lasts_ms=700_000)
    assert 400_000 < queue.client.pttl("lock{1}") <= 700_000
    assert 0 < queue.ttl("bell", "b") <= 400_000


def test_a_waiter_that_missed_its_ring_and_its_lock_takes_a_new_place_with_a_bell_that_rings(queue):
    queue.take("a")
    queue.take("b")
    queue.leave("a", lasts_ms=30_000)
    queue.pass_ms(40_000)
    queue.take("c")
    assert queue.holder() == "c"
    assert queue.take("b") == PLACED
    queue.leave("c")
    assert queue.holder() == "b"
    assert queue.ring("b")


def test_a_waiter_that_died_is_skipped(queue):
    queue.take("a")
    queue.take("dead", alive_ms=30_000)
    queue.take("b")
    queue.pass_ms(40_000)
    assert queue.leave("a") == 1
    assert queue.holder() == "b"
    assert not queue.ring("dead")
    assert queue.ring("b")


def test_a_waiter_that_came_back_from_the_dead_stands_at_the_end(queue):
    queue.take("a")
    queue.take("late", alive_ms=30_000)
    queue.take("b")
    queue.pass_ms(40_000)
    queue.leave("a")
    assert queue.take("late") == PLACED
    queue.take("c")
    queue.leave("b")
    assert queue.holder() == "late"


def test_a_lock_that_expired_goes_to_the_first_whoever_beats(queue):
    queue.take("dead", lease_ms=30_000)
    queue.take("a")
    queue.take("b")
    queue.pass_ms(40_000)
    assert queue.take("b") == WAITS
    assert queue.holder() == "a"
    assert queue.ring("a")
    assert queue.leave("dead") == 0
    assert queue.take("a") == TAKEN


@pytest.mark.parametrize(("lease_ms", "alive_ms"), [(700_000, 60_000_000), (LEASE_MS, 700_000)])
def test_an_expired_lock_is_handed_over_for_no_longer_than_its_lease_or_the_life_of_its_waiter(
    queue, lease_ms, alive_ms
):
    queue.take("dead", lease_ms=30_000)
    queue.take("a", alive_ms=alive_ms)
    queue.take("b")
    queue.pass_ms(40_000)
    assert queue.take("b", lease_ms=lease_ms) == WAITS
    assert queue.holder() == "a"
    assert 0 < queue.client.pttl("lock{1}") <= 700_000
    assert 0 < queue.ttl("bell", "a") <= alive_ms


def test_a_beat_passes_over_waiters_that_died(queue):
    queue.take("dead", lease_ms=30_000)
    queue.take("dead too", alive_ms=30_000)
    queue.take("a")
    queue.pass_ms(40_000)
    assert queue.take("a") == TAKEN
    assert queue.client.keys() == [b"lock{1}"]


def test_a_beat_lengthens_the_life_of_its_waiter_and_shortens_nobody_elses(queue):
    queue.take("a")
    queue.take("b", alive_ms=60_000)
    queue.take("b", alive_ms=ALIVE_MS)
    queue.take("c", alive_ms=30_000)
    queue.pass_ms(80_000)
    queue.leave("a")
    assert queue.holder() == "b"


def test_a_newcomer_that_does_not_wait_hands_an_expired_lock_to_the_first(queue):
    queue.take("dead", lease_ms=30_000)
    queue.take("a")
    queue.pass_ms(40_000)
    assert queue.take("hasty", alive_ms=0) == TURNED_AWAY
    assert queue.holder() == "a"
    assert queue.waiters() == []


def test_a_beat_takes_an_expired_lock_for_whoever_is_first_itself(queue):
    queue.take("dead", lease_ms=30_000)
    queue.take("a")
    queue.pass_ms(40_000)
    assert queue.take("a") == TAKEN
    assert queue.client.pttl("lock{1}") > LEASE_MS - 1_000_000


def test_who_leaves_the_queue_wakes_its_own_blocked_pop_and_takes_nothing_from_others(queue):
    queue.take("a")
    queue.take("b")
    queue.take("c")
    assert queue.leave("b", listens=True) == 0
    assert queue.waiters() == ["c"]
    assert 0 < queue.ttl("bell", "b") <= 1_000
    assert queue.ring("b")
    assert queue.holder() == "a"
    queue.leave("a")
    assert queue.holder() == "c"


def test_who_leaves_with_the_lock_just_handed_over_hands_it_on(queue):
    queue.take("a")
    queue.take("b")
    queue.take("c")
    queue.leave("a")
    assert queue.leave("b", listens=True) == 1
    assert queue.holder() == "c"
    assert queue.ring("c")


def test_a_blocked_pop_is_answered_by_the_hand_over(queue):
    queue.take("a")
    queue.take("b")
    bell = queue.key("bell", "b")
    with queue.client.client() as waiter:
        waiter.connection.send_command("BLPOP", bell, "4.5")
        queue.leave("a")
        assert waiter.connection.read_response() == [bell.encode(), b"1"]
    assert queue.client.exists(bell) == 0


def test_when_all_have_died_nothing_is_left(queue):
    queue.take("dead", lease_ms=30_000)
    queue.take("a", alive_ms=40_000)
    queue.take("b", alive_ms=30_000)
    queue.pass_ms(80_000)
    assert queue.client.keys() == []


def test_the_longest_lease_is_honoured(queue):
    longest = 1 << 53
    assert queue.take("a", lease_ms=longest) == TAKEN
    assert queue.take("a", lease_ms=longest) == TAKEN
    assert queue.client.pttl("lock{1}") > longest - 60_000
    queue.take("b", lease_ms=longest)
    assert queue.leave("a", lasts_ms=longest) == 1
    assert queue.client.pttl("lock{1}") > longest - 60_000


@pytest.mark.parametrize("which", [0, 1])
def test_a_key_of_another_type_is_an_error_and_not_a_grant(queue, which):
    queue.client.lpush(queue.keys[which], "x")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        queue.take("a")
    queue.client.delete(queue.keys[which])
    assert queue.client.keys("lock{1}") == []


class Notify:
    """The scripts of `notify` for one lock."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.acquire_script = client.register_script((LUA / "notify_acquire.lua").read_text(encoding="utf-8"))
        self.release_script = client.register_script((LUA / "notify_release.lua").read_text(encoding="utf-8"))

    def acquire(self, token: str, lease_ms: int = LEASE_MS) -> int:
        return self.acquire_script(["lock"], [token, lease_ms])

    def release(self, token: str) -> int:
        return self.release_script(["lock", "lock:channel"], [token])


@pytest.fixture
def notify(client: redis.Redis) -> Notify:
    return Notify(client)


def test_a_loser_is_told_how_long_the_lease_still_lasts(notify):
    assert notify.acquire("a") == TAKEN
    left = notify.acquire("b")
    assert LEASE_MS - 1_000_000 < left <= LEASE_MS
    assert notify.client.get("lock") == b"a"


def test_a_lock_without_end_is_told_apart_from_a_grant(notify):
    notify.client.set("lock", "somebody")
    assert notify.acquire("a") == -1
    notify.client.delete("lock")
    notify.client.lpush("lock", "something else")
    assert notify.acquire("a") == -1


def test_what_is_left_of_a_lease_never_looks_like_a_grant(notify):
    notify.client.set("lock", "somebody", px=20)
    while (answer := notify.acquire("a")) != TAKEN:
        assert answer >= 1
    assert notify.client.get("lock") == b"a"


def test_a_release_is_published_and_only_by_the_holder(notify):
    notify.acquire("a")
    with notify.client.pubsub() as listener:
        listener.subscribe("lock:channel")
        assert listener.get_message(timeout=5)["type"] == "subscribe"
        assert notify.release("b") == 0
        assert notify.release("a") == 1
        assert notify.release("a") == 0
        message = listener.get_message(timeout=5)
        assert message["data"] == b"free"
        assert listener.get_message(timeout=0) is None
    assert notify.client.keys() == []


def test_the_longest_lease_of_notify_is_honoured(notify):
    longest = 1 << 53
    assert notify.acquire("a", lease_ms=longest) == TAKEN
    assert longest - 60_000 < notify.acquire("b") <= longest
