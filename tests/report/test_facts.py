"""What a manifest says, in words."""

from __future__ import annotations

from pybench.report import run_facts


def entry(**fields: object):
    usual = {"backend": "redis", "appendfsync": "off", "poll": "block"}
    return {**usual, "round_trip_us": 18.6, "client_cpu_us_per_grant": 0.409, **fields}


def test_a_baseline_is_one_sentence():
    assert run_facts.baseline_sentences({"baseline": [entry()]}) == [
        "One idle call takes 18.6 µs, and the client's own work takes 409 ns per grant."
    ]


def test_baselines_name_the_settings_that_differ():
    assert run_facts.baseline_sentences({"baseline": [entry(), entry(appendfsync="always", round_trip_us=None)]}) == [
        "With appendfsync off, one idle call takes 18.6 µs, and the client's own work takes 409 ns per grant.",
        "With appendfsync always, an idle call was not measured, and the client's own work takes 409 ns per grant.",
    ]


def test_a_record_without_a_baseline_says_nothing_of_one():
    assert run_facts.baseline_sentences({}) == []


def test_a_hypervisor_without_a_name_is_a_virtual_machine_all_the_same():
    assert ("Virtual machine", "yes") in run_facts.machine_rows({"machine": {"virtualisation": "hypervisor"}})
    assert ("Virtual machine", "KVM") in run_facts.machine_rows({"machine": {"virtualisation": "KVM"}})
    assert ("Virtual machine", "not detected") in run_facts.machine_rows({"machine": {"cpu": "a"}})


def test_of_the_settings_of_a_database_those_that_tell_most_come_first_with_their_units():
    settings = {"version": "18.6", "fsync": True, "autovacuum": True, "shared_buffers_bytes": 128 * 2**20,
                "deadlock_timeout_ms": 1_000, "checkpoint_timeout_s": 300}  # fmt: skip
    server = {
        "label": "postgres 18.6",
        "product": "postgres",
        "version": "18.6",
        "source": "given",
        "settings": settings,
    }
    (row,) = run_facts.server_rows({"servers": [server]})
    assert row.settings == "fsync yes, shared_buffers 128 MiB, deadlock_timeout 1s"
    assert row.further == "autovacuum yes, checkpoint_timeout 5m"


def test_a_limit_that_a_database_has_off_is_shown_as_off():
    server = {"label": "postgres 18.1", "product": "postgres", "settings": {"log_min_duration_statement_ms": -1}}
    (row,) = run_facts.server_rows({"servers": [server]})
    assert row.further == "log_min_duration_statement off"


def test_what_pybench_adds_to_a_round_trip_is_named_beside_the_fixed_overhead():
    cells = [{"rtt": "0"}, {"rtt": "1ms"}, {"rtt": "exp(20ms)"}, {"rtt": "1ms"}, {}]
    assert run_facts.baseline_sentences({"cells": cells}) == [
        "To every call pybench itself adds a round-trip time: rtt 1ms or exp(20ms)."
    ]
    assert run_facts.baseline_sentences({"cells": cells[:1]}) == []
