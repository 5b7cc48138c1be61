"""What a run that goes on must have in common with its earlier part."""

from __future__ import annotations

import pytest

from pybench.running.resume import _other_machine, _other_settings

SERVER = {"label": "postgres 17.2", "settings": {"fsync": True, "synchronous_commit": "on", "max_wal_size_bytes": 1}}
MACHINE = {"cpu": "a chip", "cores": 2, "memory_bytes": 8, "kernel": "6.1"}


def test_the_same_server_and_machine_differ_in_nothing():
    assert not list(_other_settings([SERVER], [SERVER]))
    assert not list(_other_machine(MACHINE, MACHINE))


def test_a_setting_that_explains_a_result_is_named_with_both_values():
    unsafe = {**SERVER, "settings": {**SERVER["settings"], "fsync": False}}
    assert list(_other_settings([SERVER], [unsafe])) == ["postgres 17.2 had fsync on, and now has off"]


def test_a_setting_that_only_one_record_has_is_not_asked():
    older = {"label": "postgres 17.2", "settings": {"fsync": True}}
    assert not list(_other_settings([older], [SERVER]))
    assert not list(_other_settings([{"label": "postgres 17.2"}], [SERVER]))


@pytest.mark.parametrize("name", MACHINE)
def test_another_machine_is_named_by_what_differs(name: str):
    [told] = _other_machine(MACHINE, {**MACHINE, name: "other"})
    assert "this machine has other" in told
    assert not list(_other_machine({**MACHINE, name: None}, MACHINE)), "an older record does not say"


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        (None, 0.5, "the run had no CPU quota, and this one would have a CPU quota of 0.5 cores"),
        (0.5, None, "the run had a CPU quota of 0.5 cores, and this one would have no CPU quota"),
        (
            0.5,
            1.5,
            "the run had a CPU quota of 0.5 cores, and this one would have a CPU quota of 1.5 cores",
        ),
        (0.5, 0.5, None),
        (None, 2.0, None),
    ],
)
def test_another_quota_on_cpu_time_is_another_machine(then, now, told):
    before, after = ({**MACHINE, "cores_allowed": 2, "cpu_quota": quota} for quota in (then, now))
    assert list(_other_machine(before, after)) == ([] if told is None else [told])


def test_a_record_of_before_quotas_were_read_is_not_asked_for_one():
    assert not list(_other_machine(MACHINE, {**MACHINE, "cpu_quota": 0.5}))
