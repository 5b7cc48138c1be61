"""How a lock of `fair-queue` is given to an heir by his name, on real servers: what scripts tell before and after."""

from __future__ import annotations

import pytest

from tests.servers.queue_scripts import ALIVE_MS, LEASE_MS, PLACED, TAKEN, TURNED_AWAY, WAITS, Queue


@pytest.fixture
def line(queue: Queue) -> Queue:
    """Held by `a`, who knows that `b` is next; `c` is behind him."""
    queue.take("a")
    assert [queue.take("b"), queue.take("c")] == [PLACED, PLACED]
    assert queue.confirm("a") == "b"
    return queue


def test_an_heir_who_is_rung_has_the_lock_and_is_told_of_his_own(line: Queue):
    assert line.give("a", "b")
    assert line.ring("b")
    # Until he has said so he stands first, and nobody gets past him.
    assert line.take("c") == WAITS
    assert line.take("d", alive_ms=0) == TURNED_AWAY
    assert line.confirm("b") == "c"
    assert line.holder() == "b"
    assert line.waiters() == ["c"]
    assert LEASE_MS - 1_000_000 < line.client.pttl("lock{1}") <= LEASE_MS
    assert line.leave("a") == 0
    assert line.give("b", "c")
    assert line.confirm("c") == TAKEN
    assert line.leave("c") == 1
    line.ring("b"), line.ring("c")
    assert line.client.keys() == []


def test_a_blocked_pop_is_answered_by_the_new_name(line: Queue):
    bell = line.key("bell", "b")
    with line.client.client() as waiter:
        waiter.connection.send_command("BLPOP", bell, "4.5")
        assert line.give("a", "b")
        assert waiter.connection.read_response() == [bell.encode(), b"1"]
    assert line.client.exists(bell) == 0


def test_an_heir_has_nothing_before_he_is_rung(line: Queue):
    assert line.take("b") == WAITS
    assert line.confirm("b") == TURNED_AWAY
    assert line.holder() == "a"
    assert line.give("a", "b")


def test_a_lock_is_given_once(line: Queue):
    assert line.give("a", "b")
    assert not line.give("a", "b")
    assert line.leave("a") == 1, "it is still his to give while nobody has taken it up"


def test_a_holder_who_asks_again_has_one_bell_for_his_heir(line: Queue):
    assert line.confirm("a") == "b"
    assert line.give("a", "b")
    assert line.ring("b")
    assert not line.ring("b")


def test_an_heir_whose_ring_was_lost_has_the_lock_with_his_next_beat(line: Queue):
    assert line.give("a", "b")
    assert line.ring("b")
    assert line.take("b") == TAKEN
    assert line.holder() == "b"


def test_the_bell_of_an_heir_ends_with_his_place_and_with_the_lease(queue: Queue):
    queue.take("a")
    queue.take("b", alive_ms=400_000)
    assert queue.confirm("a") == "b"
    assert 0 < queue.ttl("next", "a") <= 400_000
    assert queue.take("b", alive_ms=ALIVE_MS) == WAITS
    assert 400_000 < queue.ttl("next", "a") <= ALIVE_MS
    assert queue.confirm("a", lease_ms=300_000) == "b"
    assert queue.take("b", alive_ms=ALIVE_MS) == WAITS
    assert 0 < queue.ttl("next", "a") <= 300_000


def test_an_heir_who_died_is_not_rung_and_the_script_finds_the_next(queue: Queue):
    queue.take("a")
    queue.take("dead", alive_ms=40_000)
    queue.take("b")
    assert queue.confirm("a") == "dead"
    queue.pass_ms(50_000)
    assert not queue.give("a", "dead")
    assert queue.leave("a") == 1
    assert queue.holder() == "b"


def test_one_who_is_dead_is_no_heir(queue: Queue):
    queue.take("a")
    queue.take("dead", alive_ms=30_000)
    queue.take("b")
    queue.pass_ms(40_000)
    assert queue.confirm("a") == TAKEN


def test_an_heir_who_comes_back_from_the_dead_is_none_any_more(queue: Queue):
    queue.take("a")
    queue.take("late", alive_ms=40_000)
    queue.take("b")
    assert queue.confirm("a") == "late"
    queue.pass_ms(50_000)
    assert queue.take("late") == PLACED
    assert queue.take("late") == WAITS, "no bell of his is a sign that he was rung"
    assert queue.confirm("late") == TURNED_AWAY
    assert queue.holder() == "a"
    assert queue.leave("a") == 1
    assert queue.holder() == "b"


def test_an_heir_who_leaves_takes_his_bell_along(line: Queue):
    assert line.leave("b") == 0
    assert not line.give("a", "b")
    assert line.holder() == "a"
    assert line.leave("a") == 1
    assert line.holder() == "c"


def test_an_heir_who_leaves_after_he_was_rung_hands_on(line: Queue):
    assert line.give("a", "b")
    assert line.leave("b") == 1
    assert line.holder() == "c"
    assert line.ring("c")


def test_a_lock_that_expires_before_the_heir_has_said_so_is_his_all_the_same(queue: Queue):
    queue.take("a", lease_ms=60_000)
    queue.take("b")
    queue.take("c")
    assert queue.confirm("a", lease_ms=60_000) == "b"
    assert queue.give("a", "b")
    queue.pass_ms(70_000)
    assert queue.take("c") == WAITS
    assert queue.holder() == "b"
    assert queue.confirm("b") == "c"


def test_a_holder_whose_lease_is_over_rings_for_nobody(queue: Queue):
    queue.take("a", lease_ms=40_000)
    queue.take("b")
    assert queue.confirm("a", lease_ms=40_000) == "b"
    queue.pass_ms(50_000)
    assert not queue.give("a", "b")
    assert queue.leave("a") == 0


def test_the_script_gives_back_what_has_an_heir_and_leaves_no_bell_of_his(line: Queue):
    assert line.leave("a") == 1
    assert line.ttl("next", "a") == -2
    assert line.holder() == "b"
    assert line.ring("b")


def test_a_lock_that_expires_is_confirmed_by_him_whose_turn_it_is_and_by_nobody_else(queue: Queue):
    queue.take("a", lease_ms=40_000)
    queue.take("b")
    queue.take("c")
    assert queue.confirm("a", lease_ms=40_000) == "b"
    assert queue.give("a", "b")
    queue.pass_ms(50_000)
    assert queue.confirm("c") == TURNED_AWAY
    assert queue.confirm("b") == "c"
    assert queue.holder() == "b"


def test_whose_place_has_lapsed_confirms_no_lock_that_is_free(queue: Queue):
    queue.take("a", lease_ms=40_000)
    queue.take("b", alive_ms=30_000)
    queue.pass_ms(50_000)
    assert queue.confirm("b") == TURNED_AWAY
    assert queue.holder() is None


def test_who_wants_no_heir_has_none(queue: Queue):
    queue.take("a")
    queue.take("b")
    assert queue.confirm("a", wants_heir=False) == TAKEN
    assert not queue.give("a", "b")
    assert queue.client.pttl("lock{1}") > LEASE_MS - 1_000_000


def test_the_longest_lease_has_an_heir_too(queue: Queue):
    longest = 1 << 53
    queue.take("a", lease_ms=longest)
    queue.take("b", lease_ms=longest)
    assert queue.confirm("a", lease_ms=longest) == "b"
    assert queue.client.pttl("lock{1}") > longest - 60_000
    assert queue.take("b", lease_ms=longest) == WAITS
    assert queue.give("a", "b")
    assert queue.confirm("b", lease_ms=longest) == TAKEN
