"""Every experiment on real servers: what is wrong is caught, what is right holds, a broken lock is called broken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pybench.analysis.properties import properties_of
from pybench.errors import ServerError
from pybench.exits import Exit
from pybench.lab import buying, locks, measuring
from pybench.lab.carrying_out import carry_out
from pybench.lab.catalogue import EXPERIMENTS
from pybench.lab.experiments import crash, deadlock, fencing, idempotency, transfer
from pybench.lab.findings import Case, Expected, Findings, Seen, insisted
from pybench.lab.stage import ClientSpec, Given, Stage
from pybench.lock_client import LockClient, MeasuredLockClient, NotAcquired
from pybench.strategies import CATALOGUE, Judge
from tests.lab.conftest import SMALL, Experimented

Usual = Callable[[str], Findings]
SHOWN, HELD = Seen.SHOWN, Seen.HELD
EXPECTED = {
    "oversell": {"none": SHOWN, "mutex": HELD, "atomic": HELD},
    "ttl-edge": {"mutex": SHOWN, "watchdog": HELD, "fenced(renew=off) checked": HELD},
    "crash": {"naive before EXPIRE": SHOWN, "mutex": HELD},
    "deadlock": {"mutex opposite": SHOWN, "redisson-multilock": HELD},
    "fencing": {"mutex unchecked": SHOWN, "fenced unchecked": SHOWN, "fenced checked": HELD},
    "idempotency": {"mutex without key": SHOWN, "mutex with key": HELD},
    "transfer": {
        "none": SHOWN,
        "mutex": HELD,
        "multilock, both at once": HELD,
        "redisson-multilock, both at once": HELD,
    },
}


def seen(found: Findings) -> dict[str, Seen]:
    return {case.label: case.seen for case in found.cases}


def case_of(found: Findings, label: str) -> Case:
    return next(case for case in found.cases if case.label == label)


def figures(found: Findings, label: str) -> dict[str, object]:
    return {figure.key: figure.value for figure in case_of(found, label).figures}


@pytest.fixture(autouse=True)
def in_little_time(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Shorter than for users, except in the proof."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(crash, "LATE_S", 1.0)
        monkeypatch.setattr(deadlock, "WINDOW_S", 1.0)


@pytest.fixture(scope="module")
def known() -> dict[str, Findings]:
    """What the experiments have found with their own locks."""
    return {}


@pytest.fixture
def usual(experimented: Experimented, known: dict[str, Findings]) -> Callable[[str], Findings]:
    """An experiment with its own locks, run once for all tests."""
    return lambda name: known[name] if name in known else known.setdefault(name, experimented(name))


@pytest.mark.parametrize("name", EXPECTED)
def test_an_experiment_sees_what_is_known_of_its_locks(usual: Usual, name: str):
    found = usual(name)
    assert seen(found) == EXPECTED[name]
    assert (found.exit, found.is_void, found.left_out) == (Exit.OK, False, ())
    # A measured trial has no rows of clients.
    assert all(case.clients for case in found.cases if "multilock" not in case.label)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", EXPECTED)
def test_an_experiment_sees_the_same_in_twenty_runs_in_a_row(experimented: Experimented, name: str):
    for _ in range(20):
        assert seen(experimented(name)) == EXPECTED[name]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", EXPECTED)
def test_no_lock_of_the_catalogue_breaks_its_promise_in_an_experiment(experimented: Experimented, name: str):
    given = {"ttl": "200ms", "work": "3s"} if name == "ttl-edge" else {}
    found = experimented(name, every=True, **given)
    assert found.exit is Exit.OK, seen(found)
    assert {one.strategy for one in found.left_out} >= {"pg-optimistic", "pg-serializable"}


def test_oversell_counts_what_every_buyer_got(experimented: Experimented):
    found = experimented("oversell", stock="3")
    none, mutex = figures(found, "none"), figures(found, "mutex")
    assert none["successful"] > 3
    assert none["final_stock"] == 3 - none["successful"]
    assert (mutex["attempts"], mutex["successful"], mutex["failed_stock"], mutex["failed_lock"]) == (12, 3, 9, 0)
    assert (mutex["initial_stock"], mutex["final_stock"], mutex["expected_stock"]) == (3, 0, 0)
    rows = case_of(found, "mutex").clients
    assert sorted(row.stock_before for row in rows if row.success) == [1, 2, 3]
    assert all(row.stock_after == row.stock_before - 1 and row.lock_acquired for row in rows if row.success)
    assert {row.error for row in rows if not row.success} == {"Insufficient stock"}


def test_buyers_of_several_processes_have_their_pids(experimented: Experimented):
    found = experimented("oversell", "mutex", processes="2", concurrency="8", work="50ms")
    assert seen(found) == {"none": SHOWN, "mutex": HELD}
    assert len({row.process_id for row in case_of(found, "none").clients}) == 2


def test_the_stock_may_live_in_postgres_whose_constraint_keeps_it_whatever_the_lock(experimented: Experimented):
    assert seen(experimented("oversell", "pg-advisory", stock_on="postgres")) == {"none": SHOWN, "pg-advisory": HELD}
    found = experimented("oversell", "none", stock_on="postgres", constraint=True)
    assert seen(found) == {"none": HELD}
    assert figures(found, "none")["final_stock"] == 0
    refused = sum("constraint" in (row.error or "") for row in case_of(found, "none").clients)
    assert refused > 0
    assert case_of(found, "none").sentence == f"1 sold of 1, never more; the database refused {refused} writes"


def test_a_buyer_that_waits_too_long_is_counted_apart(experimented: Experimented):
    mutex = figures(experimented("oversell", "mutex", concurrency="4", stock="3", work="300ms", wait="20ms"), "mutex")
    assert mutex["failed_lock"] > 0
    assert mutex["successful"] + mutex["failed_stock"] + mutex["failed_lock"] == 4
    assert mutex["final_stock"] == mutex["expected_stock"] == 3 - mutex["successful"]


def test_nobody_contends_where_there_is_no_lock(usual: Usual):
    assert figures(usual("oversell"), "atomic")["contention_share"] is None
    assert figures(usual("oversell"), "mutex")["contention_share"] > 0


def test_a_second_permit_is_no_matter_of_the_lease(experimented: Experimented):
    found = experimented("ttl-edge", "semaphore", "semaphore(permits=1)")
    assert seen(found) == {"mutex": SHOWN, "semaphore": Seen.WENT_WRONG, "semaphore(permits=1)": SHOWN}


def test_a_lease_that_ends_is_told_before_the_next_holder_has_the_lock(usual: Usual):
    found = usual("ttl-edge")
    mutex, watchdog = figures(found, "mutex"), figures(found, "watchdog")
    assert mutex["loss_known_ms"] < mutex["granted_ms"] < 700
    assert (mutex["final_stock"], watchdog["final_stock"]) == (-1, 0)
    assert watchdog["granted_ms"] > 690
    fenced = figures(found, "fenced(renew=off) checked")
    assert (fenced["refused"], fenced["accepted"], fenced["final_stock"]) == (1, 1, 0)


def test_a_killed_process_leaves_a_key_without_an_end_or_a_lock_until_its_ttl(usual: Usual):
    found = usual("crash")
    assert figures(found, "naive before EXPIRE")["ttl_reply"] == "-1"
    free = figures(found, "mutex")["free_after_ms"]
    assert isinstance(free, float)
    # The lease began before the process said that it holds the lock.
    assert free < 100 + 1_000 * crash.LATE_S


def test_a_deadlock_is_named_and_ends_with_the_lease(experimented: Experimented, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(deadlock, "WINDOW_S", 2.0)
    found = experimented("deadlock", mitigate=True)
    cycle = case_of(found, "mutex opposite")
    assert cycle.sentence.startswith("client 1 holds A and waits for B, client 2 holds B and waits for A: only the end")
    assert figures(found, "mutex opposite")["stuck_ms"] < 2_000
    assert figures(found, "redisson-multilock")["restarts"] > 0
    assert (seen(found)["mutex sorted"], seen(found)["multilock"]) == (HELD, HELD)
    # No lease ended while its client waited for the other one.
    assert (figures(found, "mutex sorted")["lost"], figures(found, "mutex opposite")["lost"] > 0) == (0, True)


def test_a_purchase_sent_twice_is_sold_twice_without_a_key(usual: Usual):
    found = usual("idempotency")
    without, with_key = figures(found, "mutex without key"), figures(found, "mutex with key")
    assert (without["sold"], without["stock_before"]) == (2, 9)
    # The second answer is the stored one of the first purchase.
    assert (with_key["sold"], with_key["stock_before"]) == (1, 10)


@pytest.mark.parametrize(
    ("status", "text", "message"),
    [
        (502, b"<html>Bad Gateway</html>", "answered 502: <html>Bad Gateway</html>"),
        (500, b'{"detail": "no stock"}', "answered 500: no stock"),
        (200, b"[1]", r"answered 200: \[1\]"),
        (503, b"", "answered 503: nothing"),
        (500, b"x" * 10_000, "answered 500: x{200}\n"),
    ],
)
def test_an_answer_of_the_service_that_is_none_is_no_bug(status: int, text: bytes, message: str):
    with pytest.raises(ServerError, match=message):
        idempotency._parsed(status, text)
    assert idempotency._parsed(200, b'{"stock": 3}') == {"stock": 3}


@pytest.fixture
def opened_as(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Pairs of a strategy and of one that is opened in its place: a lock that is not what it says."""
    swaps: list[tuple[str, str]] = []

    def swapped(spec: ClientSpec) -> LockClient:
        name = dict(swaps).get(spec.strategy, spec.strategy)
        return MeasuredLockClient(name, redis=spec.redis, postgres=spec.postgres, connections=spec.connections)

    monkeypatch.setattr(ClientSpec, "open", swapped)
    return swaps


@pytest.mark.parametrize(
    ("name", "lock", "other"),
    [
        ("oversell", "mutex", "none"),
        ("transfer", "mutex", "none"),
        ("ttl-edge", "watchdog", "mutex"),
        ("ttl-edge", "watchdog", "none"),
    ],
)
def test_a_lock_that_does_not_do_what_it_says_breaks_its_promise(
    experimented: Experimented, opened_as: list[tuple[str, str]], name: str, lock: str, other: str
):
    opened_as.append((lock, other))
    found = experimented(name, lock)
    assert seen(found)[lock] is Seen.BROKEN
    assert found.exit is Exit.PROMISE_BROKEN


def test_sorted_keys_that_are_not_sorted_break_the_promise(experimented: Experimented, monkeypatch: pytest.MonkeyPatch):
    both = deadlock._both
    monkeypatch.setattr(deadlock, "_both", lambda stage, client, first, _: both(stage, client, first, first[::-1]))
    assert seen(experimented("deadlock", mitigate=True))["mutex sorted"] is Seen.BROKEN


@pytest.mark.parametrize(
    ("restarts", "grants", "overlaps", "is_wrong"),
    [(9, [1, 0, 0, 0], 0, False), (0, [1, 0, 0, 0], 0, True), (0, [1, 1, 0, 1], 0, False), (9, [1, 1, 1, 1], 1, True)],
)
def test_a_standstill_is_a_deadlock_unless_clients_start_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, restarts: int, grants: list[int], overlaps: int, is_wrong: bool
):
    line = {"start_ns": np.arange(4, dtype=np.uint64) * 900_000_000, "grants": np.array(grants, dtype=np.uint64)}
    result = SimpleNamespace(totals={"grants": sum(grants), "refused_attempts": restarts}, timeline=line)
    monkeypatch.setattr(measuring, "measure", lambda *_, **__: measuring.Measured(result, None))
    monkeypatch.setattr(measuring, "violations", lambda *_: overlaps)
    with stage.set_for("deadlock", {}):
        assert deadlock._measured_case(stage, deadlock.RESTARTING, "").went_wrong is is_wrong


@pytest.mark.parametrize(("lost", "done", "wrong"), [(0, 10, False), (1, 10, True), (0, 0, True)])
def test_a_multi_lock_is_wrong_if_money_is_gone_or_nobody_transfers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, lost: int, done: int, *, wrong: bool
):
    result = SimpleNamespace(totals={"acknowledged_writes": 2 * done})
    values = np.array([transfer.BALANCE - lost, transfer.BALANCE])
    monkeypatch.setattr(measuring, "measure", lambda *_, **__: measuring.Measured(result, values))
    lock = locks.ChosenLock("multilock")
    with stage.set_for("transfer", {"window": 1, "work": 1, "concurrency": 2, "accounts": 2}):
        bank, total = transfer._transfers_at_once(stage, lock, 0)
        assert transfer._case(stage, lock, bank, total, 1.0).went_wrong is wrong


def test_a_resource_that_does_not_compare_breaks_the_promise(
    experimented: Experimented, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        fencing, "checked_write", lambda value, _fence, command, argument: (command, value, str(argument))
    )
    assert seen(experimented("fencing", "fenced"))["fenced checked"] is Seen.BROKEN


def test_a_lock_that_never_ends_breaks_the_promise(experimented: Experimented, monkeypatch: pytest.MonkeyPatch):
    # The lease is an hour, whatever the experiment asks for, and the next client waits as long as before.
    monkeypatch.setattr(crash, "LATE_S", 0.3)
    monkeypatch.setattr(Stage, "length", lambda _stage, _name: "1h")
    assert seen(experimented("crash", "mutex"))["mutex"] is Seen.BROKEN


def test_a_service_that_forgets_keys_breaks_the_promise(experimented: Experimented, monkeypatch: pytest.MonkeyPatch):
    sent = idempotency._sent
    monkeypatch.setattr(idempotency, "_sent", lambda stage, proxy, path, body, _: sent(stage, proxy, path, body, {}))
    assert seen(experimented("idempotency"))["mutex with key"] is Seen.BROKEN


@pytest.mark.parametrize("name", ["oversell", "transfer"])
def test_a_control_that_is_not_caught_makes_the_experiment_void(
    experimented: Experimented, opened_as: list[tuple[str, str]], name: str
):
    opened_as.append(("none", "mutex"))
    found = experimented(name, "fenced")
    assert seen(found) == {"none": Seen.MISSED, "fenced": HELD}
    assert (found.is_void, found.exit) == (True, Exit.CONTROL_NOT_CAUGHT)


def test_the_ttl_of_a_box_is_the_lease_that_the_server_keeps(experimented: Experimented):
    found = experimented("ttl-edge", "naive", "pg-advisory")
    shown = {case.label: figures(found, case.label)["ttl_ms"] for case in found.cases}
    assert shown == {"mutex": 200, "naive": 1_000, "pg-advisory": None}
    assert case_of(found, "naive").sentence.startswith(
        "its lease is 1 s, longer than the work: the second buyer waited"
    )
    assert figures(experimented("pause", "naive"), "naive")["ttl_ms"] == 1_000


@pytest.mark.usefixtures("no_running_loop")
def test_a_client_that_gives_up_in_a_circle_was_stuck_until_then(stage: Stage):
    @asynccontextmanager
    async def taken(name: str, **_: str) -> AsyncIterator[None]:
        if name == "B":
            await asyncio.sleep(0.02)
            raise NotAcquired("B is held")
        yield

    pair = deadlock._Pair()
    with stage.set_for("deadlock", {"ttl": 100_000_000}):
        asyncio.run(deadlock._take(stage, SimpleNamespace(lock=taken), pair, 1, ["A", "B"]))
    assert pair.waited[1] >= 0.02
    assert [(row.lock_acquired, row.error) for row in pair.rows] == [(False, deadlock.GAVE_UP)]


def test_the_log_says_how_long_a_process_lived_and_that_none_is_no_lock(experimented: Experimented, usual: Usual):
    killed = [row for case in usual("crash").cases for row in case.clients if "killed" in (row.error or "")]
    assert len(killed) == 2
    assert min(row.duration_ms for row in killed) > 0
    rows = case_of(experimented("fencing", "none"), "none unchecked").clients
    assert [row.lock_acquired for row in rows] == [False, False]


@pytest.mark.parametrize(
    ("wrong", "tries", "blamed"), [([False], 1, False), ([True, False], 2, False), ([True] * 3, 3, True)]
)
def test_a_lock_with_a_short_lease_is_blamed_only_if_it_goes_wrong_each_time(
    wrong: list[bool], tries: int, blamed: bool
):
    cases = [Case("watchdog", Expected.RIGHT, went_wrong=one, sentence="") for one in wrong]
    left = iter(cases)
    assert (insisted(lambda: next(left)).seen is Seen.BROKEN) is blamed
    assert len(cases) - len(list(left)) == tries


def test_the_rate_of_contention_counts_who_met_another():
    def bought(asked: int, entered: int | None, left: int | None) -> buying.Bought:
        row = buying.ClientRow(process_id=1, lock_acquired=entered is not None, success=True, duration_ms=0.001)
        return buying.Bought(row, asked, entered, left)

    alone = [bought(0, 10, 20), bought(30, 40, 50)]
    assert buying.contention_share(alone) == 0
    # The second asked while the first held; the first met nobody.
    assert buying.contention_share([bought(0, 10, 20), bought(15, 25, 30)]) == 0.5
    assert buying.contention_share([]) is None


def test_what_is_expected_of_a_lock_comes_from_the_catalogue():
    expected = {"none": Expected.WRONG, "mutex": Expected.RIGHT, "semaphore": Expected.EITHER}
    expected |= {"redisson-redlock": Expected.EITHER, "pg-row": Expected.RIGHT, "naive": Expected.RIGHT}
    oversell = EXPERIMENTS["oversell"]
    assert {name: locks.parsed(name, oversell).excludes for name in expected} == expected
    assert locks.parsed("semaphore(permits=1)", oversell).excludes is Expected.RIGHT


def test_a_name_that_an_experiment_adds_is_its_own_whatever_the_catalogue_has(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(CATALOGUE, "atomic", replace(CATALOGUE["none"], name="atomic", judged_by=Judge.EFFECTS))
    every = [lock for lock in locks.chosen(EXPERIMENTS["oversell"], [], every=True) if lock.name == "atomic"]
    assert [(lock.entry, lock.excludes) for lock in every] == [(None, Expected.RIGHT)]
    (elsewhere,) = [lock for lock in locks.chosen(EXPERIMENTS["transfer"], [], every=True) if lock.name == "atomic"]
    assert locks.needs_client(elsewhere) == "it takes no lock"
    held = properties_of(CATALOGUE["atomic"])
    assert (held["mutual_exclusion"].value, held["mutual_exclusion"].proof) == (
        "one atomic step",
        "pybench lab oversell",
    )


@pytest.mark.usefixtures("no_running_loop")
def test_a_lock_whose_servers_cannot_be_started_is_left_out_of_all(monkeypatch: pytest.MonkeyPatch):
    from pybench.servers import postgres

    def missing(*_: object, **__: object) -> None:
        raise ServerError("there is no Postgres to start", hint="install one")

    monkeypatch.setattr(postgres, "start", missing)
    with Stage(Given()) as fresh:
        found = carry_out(EXPERIMENTS["oversell"], fresh, SMALL["oversell"], every=True)
        reasons = {one.strategy: one.reason for one in found.left_out}
        assert reasons["pg-advisory"] == reasons["layered"] == "there is no Postgres to start"
        assert "mutex" in seen(found)
        with pytest.raises(ServerError, match="there is no Postgres to start"):
            carry_out(EXPERIMENTS["oversell"], fresh, SMALL["oversell"], strategies=["pg-row"])
