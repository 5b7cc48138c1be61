"""Experiments that harm servers, ways and processes: caught and held as known, and nothing is left running."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import psutil
import pytest
from pydantic import SecretStr
from redis import Redis

from pybench.errors import InputError, ServerError
from pybench.exits import Exit
from pybench.lab.carrying_out import ToolMissing, carry_out
from pybench.lab.catalogue import EXPERIMENTS
from pybench.lab.experiments import failover, partition, retry
from pybench.lab.findings import Expected, Findings, Seen
from pybench.lab.locks import ChosenLock
from pybench.lab.recipes import delete_without_owner
from pybench.lab.recipes.scene import Scene
from pybench.lab.stage import Given, Stage
from pybench.servers import harm
from pybench.servers.redis import wall_clock
from tests.lab.conftest import Experimented
from tests.lab.test_experiments import figures, seen

SHOWN, HELD, RIGHT = Seen.SHOWN, Seen.HELD, Seen.WENT_RIGHT
EXPECTED = {
    "failover": {"mutex": SHOWN, "replicated": RIGHT, "replicated, other replica": SHOWN, "redlock": HELD},
    "watch": {"mutex, blind": SHOWN, "mutex, watches": HELD, "fenced, blind": SHOWN, "fenced, watches": HELD},
    "restart": {"restarts empty": SHOWN, "appendfsync always": HELD, "delayed restart": HELD},
    "quorum": {
        "mutex, 1 of 1 killed": SHOWN,
        "mutex, 1 of 1 stopped": SHOWN,
        "redlock, 2 of 5 killed": HELD,
        "redlock, 3 of 5 killed": HELD,
        "redlock, 2 of 5 stopped": HELD,
        "redlock, 3 of 5 stopped": HELD,
    },
    "clock": {"mutex, 1 of 1": SHOWN, "redlock, 3 of 5": SHOWN, "redlock, 2 of 5": HELD},
    "pause": {"mutex": SHOWN, "mutex, looks first": RIGHT, "fenced": SHOWN, "fenced checked": HELD},
    "partition": {
        "mutex, blind": SHOWN,
        "mutex, looks": HELD,
        "watchdog, blind": SHOWN,
        "watchdog, looks": HELD,
        "redlock, blind": SHOWN,
        "redlock, looks": HELD,
    },
    "leader": {"mutex": SHOWN, "fenced checked": HELD},
    "pooler": {
        "session, two clients": SHOWN,
        "session, client gone": SHOWN,
        "transaction, two clients": HELD,
        "transaction, client gone": HELD,
    },
}
RECIPES = 7
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left(stage: Stage) -> Iterator[None]:
    """After the experiments only the servers that all of them share run, and no process of any experiment."""
    before = set(psutil.Process().children(recursive=True))
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child not in before and child.is_running()]
    names = [" ".join(child.cmdline()) for child in left if child.status() != psutil.STATUS_ZOMBIE]
    assert not [name for name in names if "pybench.lab" in name or "pgbouncer" in name]
    assert len([name for name in names if "valkey-server" in name and "keeper" not in name]) <= 7


@pytest.mark.parametrize("name", EXPECTED)
def test_an_experiment_sees_what_is_known_of_its_locks(experimented: Experimented, name: str):
    found = experimented(name)
    assert seen(found) == EXPECTED[name]
    assert (found.exit, found.is_void, found.left_out) == (Exit.OK, False, ())
    assert all(case.clients for case in found.cases)


@pytest.mark.parametrize("name", ["pause", "partition"])
def test_a_ttl_whose_sum_with_the_spare_time_has_no_short_text_is_taken(experimented: Experimented, name: str):
    # 0.387 + 5.0 is 5.3870000000000005 as a float.
    assert experimented(name, "mutex", ttl="387ms").exit is Exit.OK


def of_recipes(found: Findings) -> list[Seen]:
    return [case.seen for case in found.cases]


def test_every_recipe_is_shown_wrong_and_the_lock_beside_it_right(experimented: Experimented):
    found = experimented("recipes")
    assert of_recipes(found) == [SHOWN, HELD] * RECIPES
    assert found.exit is Exit.OK
    # In JSON and in the log a case is known by its label.
    assert len(seen(found)) == 2 * RECIPES


def test_full_jitter_spreads_what_fixed_pauses_bring_back_together(experimented: Experimented):
    found = experimented("retry", first="full")
    words = seen(found)
    assert next(iter(words)) == "full"
    assert (words["fixed"], words["full"]) == (SHOWN, HELD)
    fixed, full = figures(found, "fixed"), figures(found, "full")
    assert fixed["peak"] > full["peak"]
    assert fixed["retries"] == fixed["attempts"] - 20
    assert (full["successful"], 0 < full["fairness"] <= 1) == (10, True)


@pytest.mark.usefixtures("no_running_loop")
def test_buyers_use_the_database_of_the_given_server_and_an_error_is_no_refusal(stage: Stage):
    [shared] = stage.redis()
    given = Given(redis=[SecretStr(f"{stage.url(shared)}?db=3")])
    small = {"concurrency": "4", "rounds": "1", "work": "1ms"}
    buyers = 4 * len(retry.POLICIES)
    with Redis.from_url(stage.url(shared)) as redis, Stage(given) as opened:
        redis.config_resetstat()
        carry_out(EXPERIMENTS["retry"], opened, small)
        assert redis.info("commandstats")["cmdstat_select"]["calls"] >= buyers
        redis.config_set("maxmemory", 1)
        try:
            with pytest.raises(ServerError, match="maxmemory"):
                carry_out(EXPERIMENTS["retry"], opened, small)
        finally:
            redis.config_set("maxmemory", 0)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [*EXPECTED, "recipes", "retry"])
def test_an_experiment_sees_the_same_in_twenty_runs_in_a_row(experimented: Experimented, name: str):
    for _ in range(20):
        found = experimented(name)
        if name == "recipes":
            assert of_recipes(found) == [SHOWN, HELD] * RECIPES
        elif name == "retry":
            assert (seen(found)["fixed"], seen(found)["full"]) == (SHOWN, HELD)
        else:
            assert seen(found) == EXPECTED[name]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["failover", "watch", "pause", "partition", "leader"])
def test_no_lock_of_the_catalogue_breaks_its_promise_in_an_experiment(experimented: Experimented, name: str):
    found = experimented(name, every=True)
    assert found.exit is Exit.OK, seen(found)
    assert "pg-optimistic" in {one.strategy for one in found.left_out}


def test_an_experiment_that_harms_servers_starts_its_own_whatever_was_given(stage: Stage):
    [shared] = stage.redis()
    given = Given(redis=[shared.endpoint.url])
    with Stage(given) as opened:
        found = carry_out(EXPERIMENTS["quorum"], opened, {"grants": "1", "node-timeout-ms": "20"})
    assert seen(found) == EXPECTED["quorum"]
    with shared.conversation() as conversation:
        assert conversation.ask("PING") == b"PONG"


def test_a_failover_that_loses_nothing_makes_the_experiment_void(
    experimented: Experimented, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(harm.Failover, "cut", lambda _self: None)
    found = experimented("failover", "mutex")
    assert (found.exit, found.is_void) == (Exit.CONTROL_NOT_CAUGHT, True)


@pytest.mark.slow
def test_a_server_that_forgets_what_it_wrote_to_disk_breaks_the_promise(
    experimented: Experimented, monkeypatch: pytest.MonkeyPatch
):
    end = harm.Kill.end

    def forget_and_end(self: harm.Kill) -> None:
        shutil.rmtree(self._process.folder / harm.APPENDED, ignore_errors=True)
        end(self)

    monkeypatch.setattr(harm.Kill, "end", forget_and_end)
    found = experimented("restart")
    assert found.exit is Exit.PROMISE_BROKEN
    assert seen(found)["appendfsync always"] is Seen.BROKEN


def test_servers_that_answer_although_they_are_down_are_noticed(
    experimented: Experimented, monkeypatch: pytest.MonkeyPatch
):
    for kind in (harm.Kill, harm.Pause):
        monkeypatch.setattr(kind, "begin", lambda _self: None)
    monkeypatch.setattr(harm.Kill, "end", lambda _self: None)
    found = experimented("quorum")
    assert (found.exit, found.is_void) == (Exit.PROMISE_BROKEN, True)
    assert seen(found)["redlock, 3 of 5 killed"] is Seen.BROKEN


def test_a_cable_that_is_not_cut_makes_the_partition_void(experimented: Experimented, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(partition, "SPARE_S", 0.2)
    monkeypatch.setattr(partition.Cable, "is_cut", property(lambda _self: False, lambda _self, _value: None))
    found = experimented("partition", "watchdog")
    assert found.exit is Exit.CONTROL_NOT_CAUGHT


def test_a_recipe_that_is_repaired_is_not_shown_wrong(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delete_without_owner.Lock, "release", lambda _self: None)
    with stage.set_for("recipes", {}), Redis.from_url(stage.url(stage.redis()[0])) as redis:
        assert not delete_without_owner.wrong(Scene(stage, redis, f"{stage.prefix}lock")).went_wrong


@pytest.mark.parametrize(
    ("name", "lock", "why"),
    [
        ("failover", "pg-advisory", "and a database decides"),
        ("failover", "semaphore(permits=2)", "a permit of its own"),
        ("pause", "pg-advisory", "it has no lease"),
        ("watch", "redlock", "the other servers keep what is granted"),
    ],
)
def test_a_lock_without_a_meaning_is_refused_with_the_reason(
    experimented: Experimented, name: str, lock: str, why: str
):
    with pytest.raises(InputError, match=why):
        experimented(name, lock)


def test_what_is_expected_of_a_lock_in_a_failover_follows_from_its_servers():
    expected = {lock: failover._expected(ChosenLock(lock)) for lock in ("mutex", "fair-queue", "replicated", "redlock")}
    assert expected == {
        "mutex": Expected.WRONG,
        "fair-queue": Expected.WRONG,
        "replicated": Expected.EITHER,
        "redlock": Expected.RIGHT,
    }


def test_a_missing_tool_is_named(experimented: Experimented, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wall_clock, "FOLDERS", ("/nowhere",))
    with pytest.raises(ToolMissing, match="libfaketime") as raised:
        experimented("clock")
    assert raised.value.exit is Exit.SERVER_UNREACHABLE
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    with pytest.raises(ToolMissing, match="pgbouncer"):
        experimented("pooler")
