"""The bans of the pure crates are on, and they fire: each banned call is written into each crate, and clippy names it.

Warnings are errors here as in `make lint`, so what is named here stops CI.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.house.workspace import PURE, ROOT

SINS = {
    "std::time::Instant::now": "let _ = std::time::Instant::now();",
    "std::time::SystemTime::now": "let _ = std::time::SystemTime::now();",
    "std::thread::sleep": "std::thread::sleep(std::time::Duration::ZERO);",
    "std::thread::spawn": "let _ = std::thread::spawn(|| ());",
    "std::thread::scope": "std::thread::scope(|_| ());",
    "std::net::TcpStream::connect": 'let _ = std::net::TcpStream::connect("127.0.0.1:1");',
    "std::net::TcpListener::bind": 'let _ = std::net::TcpListener::bind("127.0.0.1:0");',
    "std::net::UdpSocket::bind": 'let _ = std::net::UdpSocket::bind("127.0.0.1:0");',
    "std::os::unix::net::UnixStream::connect": 'let _ = std::os::unix::net::UnixStream::connect("s");',
    "std::env::var": 'let _ = std::env::var("HOME");',
    "std::env::var_os": 'let _ = std::env::var_os("HOME");',
    "std::process::Command::new": 'let _ = std::process::Command::new("true");',
    "std::fs::read": 'let _ = std::fs::read("a");',
    "std::fs::write": 'let _ = std::fs::write("a", "b");',
    "std::fs::File::open": 'let _ = std::fs::File::open("a");',
    "std::collections::HashMap": "let _: std::collections::HashMap<u8, u8>;",
    "std::collections::HashSet": "let _: std::collections::HashSet<u8>;",
    "std::hash::RandomState": "let _: std::hash::RandomState;",
    "std::time::Instant": "let _: std::time::Instant;",
    "std::time::SystemTime": "let _: std::time::SystemTime;",
    "std::net::TcpStream": "let _: std::net::TcpStream;",
    "std::net::UdpSocket": "let _: std::net::UdpSocket;",
    "std::os::unix::net::UnixStream": "let _: std::os::unix::net::UnixStream;",
}
"""A line of Rust for each path that clippy.toml bans."""

SINS_OF_ONE = {
    "wire": {
        "postgres_protocol::authentication::sasl::ScramSha256::new": (
            "let _ = postgres_protocol::authentication::sasl::ScramSha256::new("
            'b"", postgres_protocol::authentication::sasl::ChannelBinding::unsupported());'
        ),
        "postgres_protocol::password::scram_sha_256": 'let _ = postgres_protocol::password::scram_sha_256(b"");',
    }
}
"""The same for what only one crate could call, since it alone is linked with it."""

BANNED = re.compile(r"use of a disallowed (?:method|type) `([\w:]+)`")


TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
"""Where what the crates are made of has been looked at already, if `make lint` was run before."""


@pytest.fixture(scope="module")
def copy() -> Path:
    """The pure crates alone, in a workspace with our lints and bans, and with every sin in each."""
    # At the same place each time, or what the compiler keeps of each copy would pile up.
    place = TARGET / "pure"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    members = ", ".join(f'"rust_core/{crate}"' for crate in PURE)
    alone, replaced = re.subn(r"members = \[.*?\]", f"members = [{members}]", manifest, flags=re.DOTALL)
    assert replaced == 1
    (place / "Cargo.toml").write_text(alone, encoding="utf-8")
    for name in ("Cargo.lock", "clippy.toml"):
        shutil.copy(ROOT / name, place)
    for crate in PURE:
        shutil.copytree(ROOT / "rust_core" / crate, place / "rust_core" / crate, ignore=shutil.ignore_patterns("fuzz"))
        lib = place / "rust_core" / crate / "src/lib.rs"
        lib.write_text(lib.read_text(encoding="utf-8") + "\nmod sins;\n", encoding="utf-8")
        lib.with_name("sins.rs").write_text(sinful_module(crate), encoding="utf-8")
    return place


def sins_of(crate: str) -> dict[str, str]:
    return SINS | SINS_OF_ONE.get(crate, {})


def sinful_module(crate: str) -> str:
    lines = enumerate(sins_of(crate).values())
    functions = (f"pub(crate) fn sin_{number}() {{\n    {line}\n}}" for number, line in lines)
    return '#![expect(dead_code, reason = "only to be looked at")]\n' + "\n\n".join(functions) + "\n"


def named_by_clippy(place: Path, crate: str) -> tuple[int, set[str]]:
    """What clippy answers for one crate, and each banned path that it reports as an error."""
    # Compiled before as a dependency, where nothing is linted, it would be taken for clean.
    (place / "rust_core" / crate / "src/lib.rs").touch()
    done = subprocess.run(
        ["cargo", "clippy", "--offline", "-p", crate, "--no-deps", "--message-format=json", "--", "-D", "warnings"],
        cwd=place,
        env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)},
        capture_output=True,
        text=True,
        check=False,
    )
    messages = [told["message"] for line in done.stdout.splitlines() if (told := json.loads(line)).get("message")]
    named = {
        found[1] for message in messages if message["level"] == "error" and (found := BANNED.search(message["message"]))
    }
    assert named or done.returncode == 0, done.stderr
    return done.returncode, named


def test_every_ban_has_its_sin():
    bans = tomllib.loads((ROOT / "clippy.toml").read_text(encoding="utf-8"))
    assert {ban["path"] for ban in bans["disallowed-methods"] + bans["disallowed-types"]} == {
        *SINS,
        *SINS_OF_ONE["wire"],
    }


@pytest.mark.parametrize("crate", PURE)
def test_a_pure_crate_switches_the_bans_on_and_nothing_in_it_switches_them_off(crate):
    sources = ROOT / "rust_core" / crate / "src"
    assert "#![warn(clippy::disallowed_methods, clippy::disallowed_types)]" in (sources / "lib.rs").read_text("utf-8")
    spared = [
        path.name
        for path in sources.rglob("*.rs")
        if re.search(r"(allow|expect)\([^)]*disallowed", path.read_text("utf-8"))
    ]
    assert spared == []


@pytest.mark.parametrize("crate", PURE)
def test_each_banned_call_stops_the_build_of_each_pure_crate(copy, crate):
    code, named = named_by_clippy(copy, crate)
    assert code != 0
    assert set(sins_of(crate)) - named == set()


def test_make_lint_takes_the_bans_as_errors():
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "lint"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert "cargo clippy --workspace --all-targets --locked -- -D warnings" in done.stdout
