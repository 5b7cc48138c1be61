"""Error replies of real servers: each is counted by what its client was about, and kept in the server's words."""

from __future__ import annotations

import uuid

import pytest

from pybench import _core
from tests.core_trials import MS, fixed
from tests.redis_client import connect


@pytest.fixture
def restricted(server):
    """Makes a user whose rights are given; the part of a server's spec that logs in as that user."""
    users = []

    def user(*rights: str) -> dict[str, str]:
        users.append(f"u{uuid.uuid4().hex[:8]}")
        with connect(server.endpoint) as client:
            client.execute_command("ACL", "SETUSER", users[-1], "on", ">pw", "~*", "&*", *rights)
        return {"username": users[-1], "password": "pw"}

    yield user
    with connect(server.endpoint) as client:
        client.execute_command("ACL", "DELUSER", *users)


def logged_in(make_spec, user, **fields: object):
    spec = make_spec(**fields)
    return {**spec, "servers": [{**server, **user} for server in spec["servers"]]}


def by_phase(result):
    return {(row["phase"], row["code"]): row for row in result.errors}


def test_a_healthy_trial_has_none(make_spec):
    assert _core.Trial(make_spec(hold=fixed(1))).run().errors == []


def test_a_queue_that_exists_already_is_no_error_even_to_a_client_that_is_cancelled_then(make_spec):
    # The end of a trial cancels those that wait; with many keys some of them are opening a queue.
    for seed in range(8):
        spec = make_spec(
            strategy="fair", concurrency=16, keys=1000, connections={"kind": "per-client"}, hold=fixed(0), seed=seed,
            warmup_ns=20 * MS, duration_ns=60 * MS,
        )  # fmt: skip
        assert _core.Trial(spec).run().errors == []


def test_a_release_that_the_server_refuses_is_counted_and_told_in_its_words(make_spec, restricted):
    user = restricted("+@all", "-evalsha", "-eval")
    result = _core.Trial(logged_in(make_spec, user, keys=1000, warmup_ns=50 * MS, hold=fixed(1))).run()
    row = by_phase(result)["release", "NOPERM"]
    assert row["count"] >= row["warmup"] > 0
    assert "evalsha" in row["first"]
    assert row["server"] == 0
    assert {phase for phase, _ in by_phase(result)} == {"release"}


def test_without_a_warmup_no_reply_is_said_to_be_of_it(make_spec, restricted):
    user = restricted("+@all", "-evalsha", "-eval")
    result = _core.Trial(logged_in(make_spec, user, keys=1000, warmup_ns=0, hold=fixed(1))).run()
    assert by_phase(result)["release", "NOPERM"]["warmup"] == 0


def test_a_renewal_that_the_server_refuses_is_one_of_a_renewal(make_spec, restricted):
    # A script that is not allowed `PEXPIRE`: Redis 7 and Valkey say so with a code of their own.
    user = restricted("+@all", "-pexpire")
    spec = logged_in(
        make_spec, user, strategy="watchdog", ttl_ms=200, hold=fixed(300), concurrency=2, keys=2, duration_ns=700 * MS
    )
    result = _core.Trial(spec).run()
    phases = {phase for phase, _ in by_phase(result)}
    assert phases == {"renew"}, result.errors
    assert "pexpire" in result.errors[0]["first"].lower() or "permission" in result.errors[0]["first"].lower()


def test_an_acquire_that_the_server_refuses_is_one_of_an_acquire(make_spec, restricted):
    result = _core.Trial(logged_in(make_spec, restricted("+@all", "-set"))).run()
    assert {phase for phase, _ in by_phase(result)} == {"acquire"}
    assert result.totals["grants"] == 0


def test_a_script_that_the_server_has_forgotten_and_gets_again_is_no_error(make_spec, server):
    with connect(server.endpoint) as client:
        client.script_flush()
    spec = make_spec(strategy="semaphore", args={"permits": 2})
    assert _core.Trial(spec).run().errors == []


def test_a_hand_over_whose_heir_has_left_the_queue_is_no_error(make_spec):
    # Waiters give up about when it is their turn: the holder finds no bell of an heir to ring.
    retry = {
        "kind": "fixed",
        "base_ns": MS,
        "factor": 1.0,
        "cap_ns": MS,
        "max_attempts": None,
        "max_wait_ns": 14 * MS,
    }
    result = _core.Trial(make_spec(strategy="fair-queue", hold=fixed(5), retry=retry, duration_ns=500 * MS)).run()
    assert result.totals["timeouts"] > 0
    assert result.errors == []


def test_a_queue_that_was_made_already_is_no_error(make_spec):
    assert _core.Trial(make_spec(strategy="fair", hold=fixed(1))).run().errors == []
