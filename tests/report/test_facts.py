"""What a manifest says, in words."""

from __future__ import annotations

from pybench.report import facts


def entry(**fields: object):
    usual = {"backend": "redis", "appendfsync": "off", "poll": "block"}
    return {**usual, "round_trip_us": 18.6, "client_cpu_us_per_grant": 0.409, **fields}


def test_a_baseline_is_one_sentence():
    assert facts.baseline_sentences({"baseline": [entry()]}) == [
        "One idle call takes 18.6 µs, and the client's own work takes 409 ns a grant."
    ]


def test_baselines_are_told_apart_by_what_differs():
    assert facts.baseline_sentences({"baseline": [entry(), entry(appendfsync="always", round_trip_us=None)]}) == [
        "With appendfsync off, one idle call takes 18.6 µs, and the client's own work takes 409 ns a grant.",
        "With appendfsync always, an idle call was not measured, and the client's own work takes 409 ns a grant.",
    ]


def test_a_record_without_a_baseline_says_nothing_of_one():
    assert facts.baseline_sentences({}) == []


def test_a_hypervisor_without_a_name_is_a_virtual_machine_all_the_same():
    assert ("Virtual machine", "yes") in facts.machine_rows({"machine": {"virtualisation": "hypervisor"}})
    assert ("Virtual machine", "KVM") in facts.machine_rows({"machine": {"virtualisation": "KVM"}})
    assert ("Virtual machine", "not detected") in facts.machine_rows({"machine": {"cpu": "a"}})
