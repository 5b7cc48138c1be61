"""The search for what tests leave behind finds each kind of it: a session that leaves them fails and names them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

LEAVES = """
import subprocess, tempfile, threading, time
from pybench.servers import supervised
from pybench.servers.redis import binaries, supervisor

def test_that_cleans_nothing_up():
    server, _ = supervisor.start(binaries.find("auto"))
    supervised.running.discard(server)
    kept.append(server)
    subprocess.Popen(["sleep", "60"], start_new_session=True).returncode = 0
    tempfile.mkdtemp(prefix="thesis-")
    threading.Thread(target=time.sleep, args=(60,), name="forgotten", daemon=True).start()

kept = []
"""


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_session_that_leaves_processes_folders_and_threads_fails_and_names_them(tmp_path: Path, processes: str):
    conftest = (TESTS / "conftest.py").read_text().replace("PATIENCE_S = 3.0", "PATIENCE_S = 0.1")
    assert "PATIENCE_S = 0.1" in conftest
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_leaves.py").write_text(LEAVES)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:valkey",
            "-n",
            processes,
            str(tmp_path),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    left = done.stdout.partition("left behind by the tests")[2]
    # The server ends with the session that left it; the other process would go on.
    for pid in re.findall(r"process (\d+): sleep 60", left):
        os.kill(int(pid), signal.SIGTERM)
    assert "1 passed" in done.stdout
    assert done.returncode == 1
    for found in ("sleep 60", "valkey-server", "keeper.py", "pybench-srv-", "thesis-", "thread forgotten"):
        assert found in left, left
