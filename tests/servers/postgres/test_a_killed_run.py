from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pybench.servers import folder, leftovers
from pybench.servers.folder import ServerFolder
from pybench.servers.postgres import account, binaries, config, template
from pybench.servers.processes import ProcessId
from tests.servers.postgres.conftest import processes_of, runs, shared_memory, shared_memory_of

RUN = """
import os, signal, sys, time
from pybench.servers import postgres
supervised, server = postgres.start("auto")
print(supervised.pid, supervised._keeper.pid, supervised.folder, flush=True)
"""


@pytest.fixture(autouse=True)
def own_temporary_folder(monkeypatch) -> Iterator[Path]:
    """So that these tests neither see nor end what somebody else left."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pb-") as place:
        Path(place).chmod(0o711)
        monkeypatch.setattr(tempfile, "tempdir", place)
        monkeypatch.setattr(folder, "places", lambda: [Path(place).resolve()])
        monkeypatch.setenv("TMPDIR", place)
        yield Path(place)


@dataclass
class Run:
    process: subprocess.Popen[str]
    server: int
    keeper: int
    folder: Path

    def __post_init__(self) -> None:
        self.segment = shared_memory_of(self.folder)
        self.everything = processes_of(self.server)

    def is_gone(self) -> bool:
        """With all that it had."""
        left = [pid for pid in [*self.everything, self.keeper] if runs(pid)]
        return not left and not self.folder.exists() and self.segment not in shared_memory()


def a_run(then: str) -> Run:
    process = subprocess.Popen([sys.executable, "-c", RUN + then], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    server, keeper, path = process.stdout.readline().split()
    process.stdout.close()
    return Run(process, int(server), int(keeper), Path(path))


def wait_until(condition, seconds: float = 4.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("then", ["sys.stdin.readline()", "sys.stdin.readline(); os._exit(0)"], ids=["end", "exit"])
def test_a_server_ends_with_its_run(then: str):
    process = subprocess.Popen(
        [sys.executable, "-c", RUN + then], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    server, keeper, path = process.stdout.readline().split()
    run = Run(process, int(server), int(keeper), Path(path))
    process.communicate("\n")
    assert wait_until(run.is_gone)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_with_a_signal_to_its_run(number: signal.Signals):
    run = a_run("time.sleep(60)")
    run.process.send_signal(number)
    run.process.wait()
    assert wait_until(run.is_gone)


def test_ctrl_c_while_initdb_works_leaves_nothing(own_temporary_folder: Path, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("PYBENCH_CACHE", str(tmp_path / "cache"))
    before = shared_memory()
    process = subprocess.Popen([sys.executable, "-c", RUN], stderr=subprocess.DEVNULL, start_new_session=True)
    assert wait_until(lambda: any(own_temporary_folder.glob("*/data/PG_VERSION")), 20)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait() == -signal.SIGINT
    assert wait_until(lambda: not any(own_temporary_folder.iterdir()))
    # What tests beside this one have goes with them.
    assert wait_until(lambda: not shared_memory() - before, 20)


def test_what_a_run_leaves_when_its_keeper_is_killed_with_it_is_cleared():
    run = a_run("time.sleep(60)")
    os.kill(run.keeper, signal.SIGKILL)
    run.process.kill()
    run.process.wait()
    assert wait_until(lambda: not any(runs(pid) for pid in run.everything))
    assert run.folder.exists()
    assert run.segment in shared_memory(), "nobody was there to remove it"

    cleared = leftovers.clear_leftovers()

    assert [one.folder for one in cleared] == [run.folder]
    assert run.is_gone()


def test_a_server_that_nobody_owns_any_more_is_ended_with_all_its_processes():
    made, process = an_orphan()
    everything, segment = processes_of(process.pid), shared_memory_of(made.path)
    assert len(everything) > 4
    # One that cannot see that the server is gone.
    os.kill(everything[-1], signal.SIGSTOP)
    cleared = leftovers.clear_leftovers()
    assert [(one.folder, one.ended) for one in cleared] == [(made.path, process.pid)]
    process.wait()
    assert wait_until(lambda: not any(runs(pid) for pid in everything))
    assert segment not in shared_memory()
    assert not made.path.exists()


def test_a_live_run_and_what_only_looks_on_are_left_alone():
    run = a_run("time.sleep(60)")
    onlooker = subprocess.Popen(["sleep", "60"], cwd=run.folder / "data")
    assert leftovers.clear_leftovers() == []
    os.kill(run.keeper, signal.SIGKILL)
    run.process.kill()
    run.process.wait()
    assert wait_until(lambda: not runs(run.server))
    leftovers.clear_leftovers()
    assert onlooker.poll() is None
    onlooker.kill()
    onlooker.wait()
    assert wait_until(run.is_gone)


def an_orphan() -> tuple[ServerFolder, subprocess.Popen[bytes]]:
    """A server as a killed run leaves it where the kernel knows no parent-death signal, and its folder."""
    runs_as = account.account()
    made = ServerFolder.create(socket="data/.s.PGSQL.5432", group=None if runs_as is None else runs_as.group)
    binary = account.executable(binaries.find("auto"), runs_as)
    template.make_data(binary, runs_as, made.path / "data")
    config.write(made.path / "data", sessions=0, port=None)
    identity = {} if runs_as is None else {"user": runs_as.user, "group": runs_as.group, "extra_groups": []}
    process = subprocess.Popen(
        [binary.path, "-D", made.path / "data"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **identity
    )
    noted = ProcessId.of(process.pid)
    assert noted is not None
    made.note_server(noted)
    assert wait_until(lambda: "ready" in _postmaster_pid(made.path))
    os.close(made.lock)
    return made, process


def _postmaster_pid(path: Path) -> str:
    try:
        return (path / "data/postmaster.pid").read_text()
    except OSError:
        return ""
