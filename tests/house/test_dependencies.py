"""What may lean on what: the pure crates on nothing that reaches the machine, and every arrow one way."""

from __future__ import annotations

import tomllib

import pytest

from tests.house.workspace import PURE, ROOT, Workspace

ALLOWED = {
    "rand_core": "the traits of generators; without features it has no source of entropy",
    "rand_xoshiro": "a generator that is nothing but its seed",
    "memchr": "finds a byte in a slice",
    "sha1_smol": "SHA-1 of a slice, for the names of scripts",
    **dict.fromkeys(("serde", "serde_core", "serde_json", "itoa", "zmij"), "JSON: bytes to values, and back"),
    "thiserror": "writes `Display` and `Error` for error enums",
}
"""Each crate that the pure ones may be linked with, and why it can do no harm."""

MESSAGES = "postgres-protocol"
"""Lays out the messages of Postgres and reads them: bytes to bytes, without a socket. `wire` alone uses it.

Two of its functions draw lots, so generators and the kernel's entropy are behind it. `clippy.toml` bans both functions
from the pure crates: whoever logs in draws the nonce and hands it in.
"""

OF_MESSAGES = {
    "base64": "the proofs of a log-in as text",
    "byteorder": "numbers to bytes",
    "bytes": "a buffer that grows",
    "fallible-iterator": "iterators whose next element may be missing",
    "sha2": "SHA-256 of a slice, also for the names of advisory locks",
    **dict.fromkeys(
        ("hmac", "md-5", "digest", "block-buffer", "crypto-common", "hybrid-array", "typenum", "const-oid"),
        "hashes of a slice",
    ),
    **dict.fromkeys(("ctutils", "cmov"), "compare in a time that tells nothing"),
    **dict.fromkeys(
        ("stringprep", "unicode-bidi", "unicode-normalization", "unicode-properties", "tinyvec"),
        "a password in the one form that is hashed",
    ),
    **dict.fromkeys(("cfg-if", "cpufeatures"), "choose the fastest code that the processor has"),
    **dict.fromkeys(("rand", "chacha20", "getrandom", "libc", "r-efi"), "behind the two functions that are banned"),
}
"""What comes with it."""

ARROWS = {
    "locks": set(),
    "wire": {"locks"},
    "check": {"locks"},
    "history": {"locks", "check"},
    "load": {"locks", "wire", "check", "history"},
    "sim": {"locks", "check", "history", "load"},
    "pybench-core": {"locks", "wire", "check", "history", "load", "sim"},
}

REACH_THE_MACHINE = {"rustix", "libc", "nix", "mio", "socket2", "tokio", "io-uring", "polling"}


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    return Workspace.read()


@pytest.mark.parametrize("crate", ["locks", "check", "history"])
def test_a_pure_crate_is_linked_with_nothing_that_has_sockets_clocks_or_entropy(workspace, crate):
    assert workspace.behind(crate) <= {*ALLOWED, *PURE}


def test_the_wire_is_linked_with_one_crate_more_that_only_lays_out_messages(workspace):
    assert workspace.behind("wire") - {*ALLOWED, *PURE} == {MESSAGES, *OF_MESSAGES}
    assert not workspace.behind(MESSAGES) & (REACH_THE_MACHINE - {"libc"})
    bans = tomllib.loads((ROOT / "clippy.toml").read_text(encoding="utf-8"))["disallowed-methods"]
    assert {ban["path"] for ban in bans if ban.get("allow-invalid")} == {
        "postgres_protocol::authentication::sasl::ScramSha256::new",
        "postgres_protocol::password::scram_sha_256",
    }


def test_no_crate_stays_on_the_allow_list_without_being_used(workspace):
    linked = set().union(*(workspace.behind(crate) for crate in PURE)) - set(PURE)
    assert linked == {*ALLOWED, MESSAGES, *OF_MESSAGES}


@pytest.mark.parametrize("crate", ["rand_core", "rand_xoshiro"])
def test_no_generator_seeds_itself(workspace, crate):
    assert not workspace.features(crate) & {"os_rng", "std", "getrandom", "thread_rng", "sys_rng"}


def test_the_arrows_between_the_crates_point_one_way(workspace):
    members = workspace.members()
    assert {crate: workspace.direct(crate) & members for crate in members} == ARROWS


def test_only_the_driver_touches_the_machine_itself(workspace):
    touching = {crate for crate in workspace.members() if workspace.direct(crate) & REACH_THE_MACHINE}
    assert touching == {"load"}
