from __future__ import annotations

import pytest

from pybench.analysis.assumptions import badges, caveats, entry_of, when_holder_dies, would_not_survive
from pybench.strategies import CATALOGUE, Exclusion, parse_strategy


def row(strategy: str, args: str = "", **fields: object) -> dict[str, object]:
    return {"strategy": strategy, "args": args, "verdict": "SAFE", "contended_grants": 500, **fields}


def of(text: str):
    name, arguments = parse_strategy(text)
    return caveats(CATALOGUE[name], arguments)


def test_every_lock_that_promises_exclusion_says_what_it_would_not_survive():
    for strategy in CATALOGUE.values():
        if strategy.exclusion is not Exclusion.NOTHING:
            assert caveats(strategy, ()), strategy.name
            assert when_holder_dies(strategy, ()), strategy.name


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("mutex", "work past the ttl"),
        ("watchdog", "a holder that is paused past the ttl"),
        ("notify", "work past the ttl"),
        ("notify(renew=ttl/3)", "a holder that is paused past the ttl"),
        ("pg-lease", "work past the ttl where the resource does not check the fence"),
        ("fenced(renew=off)", "work past the ttl where the resource does not check the fence"),
        ("layered", "a write that does not compare the fence"),
    ],
)
def test_work_past_the_lease_is_named_where_it_does_harm(text, last):
    assert of(text)[-1] == last


def test_a_lock_of_a_session_has_no_lease_to_outlive():
    assert not any("ttl" in phrase for phrase in of("pg-advisory"))
    assert when_holder_dies(CATALOGUE["pg-row"], ()).endswith("once the server sees its connection end")


def test_arguments_change_what_would_not_be_survived():
    assert "a pooler in transaction mode" in of("pg-advisory")
    assert "a pooler in transaction mode" not in of("pg-advisory(scope=transaction)")
    assert "a crash of the server (synchronous_commit=off)" in of("pg-lease(synchronous_commit=off)")
    # A row lock is a session's, whatever its commit waits for.
    assert "a crash of the server (synchronous_commit=off)" not in of("pg-row(synchronous_commit=off)")
    assert "work past max_hold_ms=500" in of("watchdog(max_hold_ms=500)")


def test_safe_always_says_healthy_servers():
    assert badges(row("mutex")) == ("healthy servers",)
    assert badges(row("mutex", contended_grants=0)) == ("healthy servers", "not contended")
    assert badges(row("mutex", contended_grants=3, judged_by_probe=True)) == ("healthy servers", "judged by its probe")
    assert badges(row("naive")) == ("healthy servers", "only while no client crashes or works past the ttl")
    assert badges(row("mutex", verdict="UNSAFE")) == ()


def test_a_record_from_before_there_were_probes_has_its_words():
    assert badges(row("mutex", judged_by_probe=None, contended_grants=float("nan"))) == ("healthy servers",)


def test_a_lock_of_another_version_is_given_no_words():
    assert badges(row("lock-of-tomorrow")) == ("healthy servers",)
    assert entry_of(row("lock-of-tomorrow")) is None
    assert entry_of(row("mutex", args="of=tomorrow")) is None


def test_the_words_beside_safe_name_what_ends_it():
    assert would_not_survive(CATALOGUE["mutex"], ()) == (
        "would not survive a restart that loses data, a failover, a clock jump or work past the ttl"
    )
    assert would_not_survive(CATALOGUE["none"], ()) == ""
