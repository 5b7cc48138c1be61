from __future__ import annotations

import pytest

from pybench.notation import BadValue
from pybench.strategies import (
    CATALOGUE,
    Choice,
    Count,
    Exclusion,
    Judge,
    Lease,
    Number,
    Parameter,
    Promise,
    ServerKind,
    Strategy,
    arguments_text,
    parse_strategy,
    strategy_text,
)

REDLOCK = Strategy(
    name="redlock",
    summary="Asks n servers.",
    commands=(),
    promise="One holder.",
    holds_under="Some faults.",
    when_to_use="Sometimes.",
    when_not="Otherwise.",
    exclusion=Exclusion.ALWAYS,
    lease=Lease.MILLISECONDS,
    parameters=(
        Parameter("nodes", Count(1, 25), 5, "Servers."),
        Parameter("fanout", Choice(("parallel", "sequential")), "parallel", "How they are asked."),
        Parameter("drift", Number(0, 0.5), 0.01, "What is taken off the lease."),
    ),
)
KNOWN = {"redlock": REDLOCK, "mutex": CATALOGUE["mutex"]}


def test_the_catalogue_tells_everything_of_each_strategy():
    for name, strategy in CATALOGUE.items():
        assert strategy.name == name
        for text in ("summary", "promise", "holds_under", "when_to_use", "when_not"):
            assert getattr(strategy, text).endswith("."), f"{name}'s {text} is a whole sentence"


def test_each_strategy_promises_what_its_row_says():
    assert {name: (strategy.exclusion, strategy.commands_per_grant) for name, strategy in CATALOGUE.items()} == {
        "none": (Exclusion.NOTHING, 0),
        "atomic": (Exclusion.NOTHING, 0),
        "naive": (Exclusion.WHILE_NOBODY_OUTLIVES, 3),
        "mutex": (Exclusion.ALWAYS, 2),
        "watchdog": (Exclusion.ALWAYS, 2),
        "reentrant": (Exclusion.ALWAYS, 2),
        "read-write": (Exclusion.ALWAYS, 2),
        "fair": (Exclusion.ALWAYS, 7),
        "fair-queue": (Exclusion.ALWAYS, 2),
        "notify": (Exclusion.ALWAYS, 2),
        "semaphore": (Exclusion.ALWAYS, 2),
        "fenced": (Exclusion.ALWAYS, 2),
        "replicated": (Exclusion.ALWAYS, 3),
        "redlock": (Exclusion.ALWAYS, 10),
        "redisson-redlock": (Exclusion.NOTHING, 15),
        "multilock": (Exclusion.ALWAYS, 10),
        "redisson-multilock": (Exclusion.ALWAYS, 3),
        "pg-advisory": (Exclusion.ALWAYS, 2),
        "pg-row": (Exclusion.ALWAYS, 2),
        "pg-lease": (Exclusion.ALWAYS, 2),
        "pg-optimistic": (Exclusion.NOTHING, 2),
        "pg-serializable": (Exclusion.NOTHING, 2),
        "layered": (Exclusion.NOTHING, 5),
    }
    assert {name: set(strategy.promises) for name, strategy in CATALOGUE.items() if strategy.promises} == {
        "fenced": {Promise.FENCE},
        "fair-queue": {Promise.FIFO},
        "notify": {Promise.WAKE_UP},
        "pg-lease": {Promise.FENCE},
        "layered": {Promise.FENCE},
    }
    judged = {name: strategy.judged_by for name, strategy in CATALOGUE.items()}
    assert {name: judge for name, judge in judged.items() if judge is not Judge.BELIEF} == {
        "atomic": Judge.EFFECTS,
        "pg-optimistic": Judge.EFFECTS,
        "pg-serializable": Judge.EFFECTS,
        "layered": Judge.GUARD,
    }


def test_each_strategy_takes_what_the_axes_offer_only_where_its_row_says():
    def those(fact: str) -> list[str]:
        return [name for name, strategy in CATALOGUE.items() if getattr(strategy, fact)]

    assert those("shares") == ["read-write", "pg-advisory", "pg-row"]
    assert those("nests") == ["reentrant"]
    assert those("takes_many_keys") == ["multilock", "redisson-multilock", "pg-row"]
    own = ["pg-advisory", "pg-row", "pg-serializable"]
    assert those("owns_connection") == ["fair", "fair-queue", "replicated", *own]
    assert [name for name in CATALOGUE if name not in those("shares_connections")] == own
    assert those("subscribes") == ["notify"]
    assert those("acknowledges_places") == ["fair", "fair-queue"]
    assert those("extends_lease") == ["watchdog", "notify", "fenced"]


@pytest.mark.parametrize(
    ("written", "servers", "replicas", "permits", "commands"),
    [
        ("mutex", 1, 0, 1, 2),
        ("redlock", 5, 0, 1, 10),
        ("redlock(nodes=2)", 2, 0, 1, 4),
        ("replicated(replicas=3)", 1, 3, 1, 3),
        ("redisson-multilock", 1, 0, 1, 3),
        ("redisson-multilock(nodes=3)", 3, 0, 1, 3),
        ("semaphore", 1, 0, 4, 2),
        ("semaphore(permits=1)", 1, 0, 1, 2),
        ("pg-row", 1, 0, 1, 2),
        ("layered", 2, 0, 1, 5),
        ("none", 1, 0, 1, 0),
    ],
)
def test_what_a_cell_needs_follows_from_the_arguments(written, servers, replicas, permits, commands):
    name, arguments = parse_strategy(written)
    strategy = CATALOGUE[name]
    assert (strategy.servers(arguments), strategy.replicas(arguments)) == (servers, replicas)
    assert (strategy.permits(arguments), strategy.commands_of_a_grant(arguments)) == (permits, commands)


@pytest.mark.parametrize(
    ("written", "own", "shared"),
    [
        ("mutex", False, True),
        ("fair", True, True),
        ("pg-advisory", True, False),
        ("pg-advisory(session=shared, wait=try)", False, True),
        ("pg-row", True, False),
        ("pg-serializable", True, False),
        ("pg-lease", False, True),
        ("pg-optimistic", False, True),
        ("layered", False, True),
    ],
)
def test_sessions_are_dear_and_opened_only_where_they_are_used(written, own, shared):
    name, arguments = parse_strategy(written)
    strategy = CATALOGUE[name]
    assert (strategy.opens_own_connections(arguments), strategy.opens_shared_connections(arguments)) == (own, shared)


def test_each_strategy_says_which_kinds_of_server_it_needs_in_the_order_of_the_core():
    redis, postgres = ServerKind.REDIS, ServerKind.POSTGRES
    others = {name: strategy.server_kinds for name, strategy in CATALOGUE.items() if strategy.server_kinds != (redis,)}
    assert others == {
        "none": (),
        "atomic": (),
        **dict.fromkeys(("pg-advisory", "pg-row", "pg-lease", "pg-optimistic", "pg-serializable"), (postgres,)),
        "layered": (redis, postgres),
    }


def test_settings_of_sessions_are_no_arguments_of_the_lock():
    name, arguments = parse_strategy("pg-row(wait=nowait, synchronous_commit=off, lock_timeout_ms=5)")
    assert CATALOGUE[name].arguments_of_lock(arguments) == (("wait", "nowait"),)


@pytest.mark.parametrize(
    ("written", "most_ms"),
    [
        ("none", None),
        ("mutex", 500),
        ("naive", 1_000),
        ("watchdog", None),
        ("watchdog(max_hold_ms=3000)", 3_000),
        ("watchdog(max_hold_ms=300)", 500),
        ("fenced", None),
        ("fenced(renew=off)", 500),
        ("notify", 500),
        ("notify(renew=ttl/3)", None),
        ("pg-row", None),
        ("pg-lease", 500),
    ],
)
def test_how_long_a_hold_is_covered_counts_its_renewals(written, most_ms):
    name, arguments = parse_strategy(written)
    assert CATALOGUE[name].longest_hold_ms(500, arguments) == most_ms


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("watchdog(renewals_per_ttl=1)", "at least 2"),
        ("watchdog(renewals_per_ttl=21)", "at most 20"),
        ("fenced(renew=on)", None),
        ("notify(renew=ttl)", "did you mean ttl/3?"),
        ("reentrant(count=here)", "did you mean server?"),
        ("semaphore(permits=1001)", "at most 1000"),
        ("read-write(prefer=reader)", "did you mean readers?"),
        ("replicated(replicas=9)", "at most 8"),
        ("redlock(nodes=33)", "at most 32"),
        ("redlock(drift_factor=0.2)", "at most 0.1"),
        ("redlock(fanout=serial)", "did you mean sequential?"),
        ("redisson-redlock(nodes=0)", "at least 1"),
        ("redisson-multilock(fanout=sequential)", "known: nodes, wait_budget_ms"),
        ("pg-advisory(wait=nowait)", None),
        ("pg-row(wait=skip_locked)", "did you mean skip-locked?"),
        ("pg-lease(synchronous_commit=of)", "did you mean off?"),
    ],
)
def test_arguments_outside_of_their_range_are_refused(written, told):
    with pytest.raises(BadValue) as caught:
        parse_strategy(written)
    assert caught.value.hint == told


@pytest.mark.parametrize(
    ("name", "ttl_ms", "lease_ms"),
    [
        ("none", 1, None),
        ("naive", 1, 1_000),
        ("naive", 1_000, 1_000),
        ("naive", 1_001, 2_000),
        ("naive", 2**53, 2**53 + 8),
        ("mutex", 1, 1),
        ("mutex", 1_001, 1_001),
    ],
)
def test_the_lease_that_a_server_gets_is_in_its_own_unit(name, ttl_ms, lease_ms):
    assert CATALOGUE[name].lease_ms(ttl_ms) == lease_ms


@pytest.mark.parametrize(
    "written",
    [
        "redlock(nodes=7, fanout=sequential)",
        "redlock( fanout = sequential,nodes=7 )",
        {"redlock": {"nodes": 7, "fanout": "sequential"}},
    ],
)
def test_the_same_arguments_are_the_same_strategy_however_written(written):
    name, arguments = parse_strategy(written, KNOWN)
    assert (name, arguments) == ("redlock", (("fanout", "sequential"), ("nodes", 7)))
    assert arguments_text(arguments) == "fanout=sequential, nodes=7"
    assert strategy_text(name, arguments) == "redlock(fanout=sequential, nodes=7)"
    assert parse_strategy(strategy_text(name, arguments), KNOWN) == (name, arguments)


@pytest.mark.parametrize(
    "written", ["redlock", "redlock()", "redlock(nodes=5, drift=0.01)", {"redlock": None}, {"redlock": {"nodes": "5"}}]
)
def test_arguments_at_their_defaults_are_not_named(written):
    assert parse_strategy(written, KNOWN) == ("redlock", ())
    assert arguments_text(()) == ""


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("mutx", 'there is no strategy "mutx"', "did you mean mutex?"),
        ("Mutex", 'there is no strategy "Mutex"', "did you mean mutex?"),
        ("zookeeper", 'there is no strategy "zookeeper"', "known: redlock, mutex"),
        ("mutex(ttl=3)", 'the strategy mutex has no argument "ttl"', "mutex takes no arguments"),
        ("redlock(node=5)", 'the strategy redlock has no argument "node"', "did you mean nodes?"),
        ("redlock(nodes=0)", "redlock's nodes: 0 is out of range", "at least 1"),
        ("redlock(nodes=five)", 'redlock\'s nodes: "five" is not a whole number', "use a number from 1 to 25"),
        (
            "redlock(fanout=serial)",
            'redlock\'s fanout: "serial" is not one of parallel, sequential',
            "did you mean sequential?",
        ),
        ("redlock(drift=nan)", 'redlock\'s drift: "nan" is not a number', None),
        ("redlock(5)", 'the argument "5" of "redlock(5)" has no name', "write name=value"),
        ("redlock(nodes=5", 'the parentheses of "redlock(nodes=5" do not match', None),
        ({"redlock": 5}, "the arguments of redlock are not a mapping: 5", "write a mapping of names to values"),
        (
            {"a": {}, "b": {}},
            "a strategy given as a mapping has exactly one key, its name",
            "write {mutex: {}} or mutex",
        ),
        (5, "5 is not a strategy", "write a name such as mutex"),
        (None, "nothing is not a strategy", "write a name such as mutex"),
    ],
)
def test_an_unknown_strategy_or_argument_is_refused_with_the_nearest(written, message, hint):
    with pytest.raises(BadValue) as caught:
        parse_strategy(written, KNOWN)
    assert (caught.value.message, caught.value.hint) == (message, hint)
