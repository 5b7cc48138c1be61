"""What may lean on what: the pure crates on nothing that reaches the machine, and every arrow one way."""

from __future__ import annotations

import pytest

from tests.house.workspace import PURE, Workspace

ALLOWED = {
    "rand_core": "the traits of generators; without features it has no source of entropy",
    "rand_xoshiro": "a generator that is nothing but its seed",
    "memchr": "finds a byte in a slice",
    "sha1_smol": "SHA-1 of a slice, for the names of scripts",
    "thiserror": "writes `Display` and `Error` for error enums",
}
"""Each crate that the pure ones may be linked with, and why it can do no harm."""

ARROWS = {
    "locks": set(),
    "wire": {"locks"},
    "check": {"locks"},
    "load": {"locks", "wire", "check"},
    "pybench-core": {"locks", "wire", "check", "load"},
}

REACH_THE_MACHINE = {"rustix", "libc", "nix", "mio", "socket2", "tokio", "io-uring", "polling"}


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    return Workspace.read()


@pytest.mark.parametrize("crate", PURE)
def test_a_pure_crate_is_linked_with_nothing_that_has_sockets_clocks_or_entropy(workspace, crate):
    assert workspace.behind(crate) <= {*ALLOWED, *PURE}


def test_no_crate_stays_on_the_allow_list_without_being_used(workspace):
    assert set().union(*(workspace.behind(crate) for crate in PURE)) - set(PURE) == set(ALLOWED)


@pytest.mark.parametrize("crate", ["rand_core", "rand_xoshiro"])
def test_no_generator_seeds_itself(workspace, crate):
    assert not workspace.features(crate) & {"os_rng", "std", "getrandom", "thread_rng", "sys_rng"}


def test_the_arrows_between_the_crates_point_one_way(workspace):
    members = workspace.members()
    assert {crate: workspace.direct(crate) & members for crate in members} == ARROWS


def test_only_the_driver_touches_the_machine_itself(workspace):
    touching = {crate for crate in workspace.members() if workspace.direct(crate) & REACH_THE_MACHINE}
    assert touching == {"load"}
