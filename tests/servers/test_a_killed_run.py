from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pybench.servers import folder, leftovers, processes
from pybench.servers.folder import ServerFolder
from pybench.servers.processes import ProcessId
from pybench.servers.redis import binaries, supervisor

RUN = """
import os, signal, sys, time
from pybench.servers.redis import binaries, supervisor
server, _ = supervisor.start(binaries.find("auto"))
print(server.pid, server._keeper.pid, server.folder, flush=True)
"""


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch) -> Iterator[Path]:
    """So that these tests neither see nor end what somebody else left."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pb-") as place:
        monkeypatch.setattr(tempfile, "tempdir", place)
        monkeypatch.setattr(folder, "places", lambda: [Path(place).resolve()])
        monkeypatch.setenv("TMPDIR", place)
        yield Path(place)


def a_run(then: str) -> tuple[subprocess.Popen[str], int, int, Path]:
    run = subprocess.Popen([sys.executable, "-c", RUN + then], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    server, keeper, path = run.stdout.readline().split()
    run.stdout.close()
    return run, int(server), int(keeper), Path(path)


def wait_until(condition, seconds: float = 2.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize(
    "then",
    ["", "raise KeyError", "raise KeyboardInterrupt", "sys.exit(3)", "os._exit(0)", "os.abort()"],
    ids=["normal end", "exception", "interrupt", "exit", "immediate exit", "abort"],
)
def test_a_server_ends_however_its_run_ends(then: str):
    run, server, keeper, path = a_run(then)
    run.wait()
    assert wait_until(lambda: not runs(server) and not runs(keeper) and not path.exists())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_server_ends_within_a_second_of_a_signal_to_its_run(number: signal.Signals):
    run, server, keeper, path = a_run("time.sleep(60)")
    run.send_signal(number)
    run.wait()
    assert wait_until(lambda: not runs(server) and not runs(keeper) and not path.exists(), 1.0)


def test_a_server_ends_with_its_run_also_while_a_forked_child_goes_on():
    run, server, keeper, path = a_run("if os.fork() == 0:\n    time.sleep(3); os._exit(0)\ntime.sleep(60)")
    time.sleep(0.2)
    run.kill()
    run.wait()
    assert wait_until(lambda: not runs(server) and not runs(keeper) and not path.exists())


def test_the_end_of_a_forked_child_leaves_the_servers_of_its_parent_alone():
    then = "child = os.fork()\nif child == 0: sys.exit(0)\nos.waitpid(child, 0)\ntime.sleep(60)"
    run, server, _, path = a_run(then)
    assert not wait_until(lambda: not runs(server), 0.7)
    assert path.exists()
    run.kill()
    run.wait()
    assert wait_until(lambda: not path.exists())


def test_what_a_run_leaves_when_its_keeper_is_killed_with_it_is_cleared():
    run, server, keeper, path = a_run("time.sleep(60)")
    os.kill(keeper, signal.SIGKILL)
    run.kill()
    run.wait()
    assert wait_until(lambda: not runs(server), 1.0)
    assert path.exists()

    cleared = leftovers.clear_leftovers()

    assert [one.folder for one in cleared] == [path]
    assert not path.exists()
    assert leftovers.clear_leftovers() == []


def test_a_server_that_nobody_owns_any_more_is_ended_and_said(own_temporary_folder: Path):
    path, process = an_orphan()
    try:
        cleared = leftovers.clear_leftovers()
        assert [(one.folder, one.ended) for one in cleared] == [(path, process.pid)]
        assert str(process.pid) in str(cleared[0])
        assert process.wait(1) == 0
        assert not path.exists()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("lie", ["another start time", "another process"])
def test_a_recycled_pid_is_not_killed(lie: str):
    path, orphan = an_orphan()
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        noted = ProcessId.of(orphan.pid if lie == "another start time" else bystander.pid)
        assert noted is not None
        if lie == "another start time":
            noted = replace(noted, started="1")
        (path / folder.SERVER).write_text(f'{{"pid": {noted.pid}, "started": "{noted.started}"}}')
        cleared = leftovers.clear_leftovers()
        assert [(one.folder, one.ended) for one in cleared] == [(path, None)]
        assert orphan.poll() is None
        assert bystander.poll() is None
    finally:
        for process in (orphan, bystander):
            process.kill()
            process.wait()


def test_a_process_is_the_same_one_after_somebody_has_set_the_clock(monkeypatch: pytest.MonkeyPatch):
    before = ProcessId.of(os.getpid())
    monkeypatch.setattr(psutil._pslinux, "boot_time", lambda: 1_000_000_000)
    assert psutil.Process().create_time() < 1_500_000_000, "psutil takes the new clock"
    assert ProcessId.of(os.getpid()) == before


def test_a_live_run_is_left_alone():
    run, server, _, path = a_run("time.sleep(60)")
    mine, _ = supervisor.start(binaries.find("auto"))
    assert leftovers.clear_leftovers() == []
    assert runs(server)
    assert path.exists()
    assert mine.folder.exists()
    assert mine.is_running()
    mine.stop()
    run.terminate()
    run.wait()
    assert wait_until(lambda: not path.exists())


def test_what_is_not_ours_is_left_alone(own_temporary_folder: Path):
    names = ["pybench-srv-", "pybench-srv-short", "pybench-srv-waytoolong", "other-srv-abcdefgh"]
    for name in names:
        (own_temporary_folder / name).mkdir()
    full = own_temporary_folder / "pybench-srv-abcdefgh"
    full.mkdir()
    (full / "thesis.txt").write_text("the only copy")
    os.utime(full, (1, 1))
    elsewhere = own_temporary_folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / folder.LOCK).write_text("1\n")
    (own_temporary_folder / "pybench-srv-linklink").symlink_to(elsewhere)

    assert leftovers.clear_leftovers() == []

    assert (full / "thesis.txt").exists()
    assert (elsewhere / folder.LOCK).exists()
    assert all((own_temporary_folder / name).exists() for name in names)


def test_a_folder_in_the_making_is_left_alone_and_cleared_when_nothing_came_of_it(own_temporary_folder: Path):
    bare, locked = own_temporary_folder / "pybench-srv-aaaaaaaa", own_temporary_folder / "pybench-srv-bbbbbbbb"
    bare.mkdir()
    locked.mkdir()
    (locked / folder.LOCK).touch()
    assert leftovers.clear_leftovers() == []
    for path in (bare, locked):
        os.utime(path, (1, 1))
    assert [one.folder for one in leftovers.clear_leftovers()] == [bare, locked]


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path):
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    identity = ProcessId.of(process.pid)
    assert identity is not None
    assert not processes.end(identity, tmp_path / "another folder")
    assert process.poll() is None
    assert processes.end(identity, tmp_path.resolve(), patience_s=0.1)
    assert process.wait() == -signal.SIGKILL


def an_orphan() -> tuple[Path, subprocess.Popen[bytes]]:
    """A server as a killed run leaves it where the kernel knows no parent-death signal, and its folder."""
    made = ServerFolder.create()
    config = made.path / folder.CONFIG
    config.write_text(f"port 0\nunixsocket {made.path}/s.sock\nsave ''\ndir {made.path}\n")
    process = subprocess.Popen(
        [binaries.find("auto").path, config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    identity = ProcessId.of(process.pid)
    assert identity is not None
    made.note_server(identity)
    assert wait_until((made.path / "s.sock").exists)
    os.close(made.lock)
    return made.path, process


def runs(pid: int) -> bool:
    return ProcessId.of(pid) is not None
