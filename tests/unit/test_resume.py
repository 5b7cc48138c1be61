"""What a run that goes on must have in common with its earlier part."""

from __future__ import annotations

import pytest

from pybench.resume import _other_machine, _other_settings

SERVER = {"label": "postgres 17.2", "settings": {"fsync": True, "synchronous_commit": "on", "max_wal_size_bytes": 1}}
MACHINE = {"cpu": "a chip", "cores": 2, "memory_bytes": 8, "kernel": "6.1"}


def test_the_same_server_and_machine_differ_in_nothing():
    assert not list(_other_settings([SERVER], [SERVER]))
    assert not list(_other_machine(MACHINE, MACHINE))


def test_a_setting_that_explains_a_result_is_named_with_both_values():
    unsafe = {**SERVER, "settings": {**SERVER["settings"], "fsync": False}}
    assert list(_other_settings([SERVER], [unsafe])) == ["postgres 17.2 had fsync on, now it has off"]


def test_a_setting_that_only_one_record_has_is_not_asked():
    older = {"label": "postgres 17.2", "settings": {"fsync": True}}
    assert not list(_other_settings([older], [SERVER]))
    assert not list(_other_settings([{"label": "postgres 17.2"}], [SERVER]))


@pytest.mark.parametrize("name", MACHINE)
def test_another_machine_is_named_by_what_differs(name: str):
    [told] = _other_machine(MACHINE, {**MACHINE, name: "other"})
    assert "this is other" in told
    assert not list(_other_machine({**MACHINE, name: None}, MACHINE)), "an older record does not say"
