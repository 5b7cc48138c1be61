"""Locks broken on purpose, one change each: a default run finds each of them. Slow, for the core is built each time.

Each run is `--quick`, and has the default hold, 0: there a lock that excludes nobody hardly shows itself in its cells.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pybench.exits import Exit
from tests import mutants
from tests.mutants import Mutation

OF_SETS = ("multilock", "--keys", "100", "--keys-per-grant", "3")

RELEASE_OF_A_SET = """\
for _, key in ipairs(KEYS) do
    -- pcall: a key that another program turned into a list must not stop the release of the others.
    if redis.pcall('GET', key) == ARGV[1] then
        deleted = deleted + redis.call('DEL', key)
    end
end
return deleted == #KEYS and 1 or 0
"""
RELEASE_OF_ITS_FIRST = """\
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
    deleted = redis.call('DEL', KEYS[1])
end
return deleted
"""
TAKE_EACH = "if not redis.call('SET', key, ARGV[1], 'NX', 'PX', ARGV[2]) then"
TAKE_THE_FIRST = (
    "if taken > 1 then redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) "
    "elseif not redis.call('SET', key, ARGV[1], 'NX', 'PX', ARGV[2]) then"
)

BROKEN = {
    "mutex without NX": (
        Mutation(
            "wire/src/encode.rs",
            'Text("SET"), Key, Token, Text("NX"), Text("PX"), Number',
            'Text("SET"), Key, Token, Text("PX"), Number',
        ),
        ("mutex",),
        "double grant",
    ),
    "mutex that deletes without asking whose the key is": (
        Mutation("locks/src/mutex.rs", "turn.compare_and_delete()", "Command::Del { key: turn.key() }"),
        ("mutex",),
        "double grant",
    ),
    "mutex that believes past its lease": (
        Mutation(
            "locks/src/shell/carry_out.rs",
            "let until = self.lock.lease(&self.turn.core.spec).until(self.turn.core.sent);",
            "let until = self.turn.core.sent.after(Nanos::from_secs(3_600));",
        ),
        ("mutex",),
        "double grant",
    ),
    "pg-row without FOR UPDATE": (
        Mutation(
            "locks/src/statement.rs",
            'RowLock = Transaction, [Row], "SELECT id FROM {locks} WHERE id = $1 FOR UPDATE"',
            'RowLock = Transaction, [Row], "SELECT id FROM {locks} WHERE id = $1"',
        ),
        ("pg-row",),
        "double grant",
    ),
    "pg-advisory without its transaction": (
        Mutation("locks/src/statement.rs", "TransactionLock = Transaction,", "TransactionLock = Nothing,"),
        ("pg-advisory(scope=transaction)",),
        "double grant",
    ),
    "pg-optimistic that does not compare the version": (
        Mutation("locks/src/statement.rs", "WHERE id = $1 AND version = $2 RETURNING", "WHERE id = $1 RETURNING"),
        ("pg-optimistic",),
        "lost update",
    ),
    "redlock with a quorum short by one": (
        Mutation("locks/src/quorum/server_states.rs", "self.count() / 2 + 1", "self.count() / 2"),
        ("redlock",),
        "double grant",
    ),
    "multilock that takes only the first of its keys": (
        Mutation("locks/src/lua/take_all.lua", TAKE_EACH, TAKE_THE_FIRST),
        OF_SETS,
        "double grant",
    ),
    "multilock that releases only its first key": (
        Mutation("locks/src/lua/release_all.lua", RELEASE_OF_A_SET, RELEASE_OF_ITS_FIRST),
        OF_SETS,
        "left-over key",
    ),
    "notify that wakes nobody": (
        Mutation("locks/src/lua/notify_release.lua", "redis.call('PUBLISH', KEYS[2], 'free')\n", ""),
        ("notify",),
        "missed wake-up",
    ),
}
"""What is changed, of which lock a run is made then, and the kind of violation that it has to find."""


@pytest.fixture(scope="module")
def sources() -> None:
    mutants.copy_sources()


def run(package: Path, folder: Path, lock: Sequence[str]) -> tuple[int, dict[str, Any], str]:
    """The exit code of a run with the core in `package`, its JSON, and its report."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYBENCH_")}
    done = subprocess.run(
        [sys.executable, "-m", "pybench", "run", "-s", *lock, "--quick", "--json", "--out", str(folder / "run")],
        cwd=package,
        env={**kept, "PYTHONPATH": str(package)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), (folder / "run" / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize(("mutation", "lock", "kind"), BROKEN.values(), ids=BROKEN)
def test_a_broken_lock_is_found_in_a_default_run(tmp_path: Path, mutation: Mutation, lock: Sequence[str], kind: str):
    code, told, report = run(mutants.build(mutation), tmp_path, lock)
    assert code == told["exit_code"] == Exit.PROMISE_BROKEN
    [cell] = told["cells"]
    assert cell["verdict"] == "UNSAFE"
    assert kind in report


@pytest.mark.slow
@pytest.mark.parametrize("lock", sorted({lock for _, lock, _ in BROKEN.values()}))
def test_the_same_run_of_the_honest_lock_blames_nobody(tmp_path: Path, lock: Sequence[str]):
    code, told, _ = run(mutants.ROOT, tmp_path, lock)
    assert code == told["exit_code"] == Exit.OK
    assert [cell["verdict"] for cell in told["cells"]] == ["SAFE"]
