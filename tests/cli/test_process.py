"""Streams that are closed or full, and signals outside of a run: no traceback, the right exit code, nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COMMAND, ROOT, environment

from pybench.records import load

AT_ONCE = ["-s", "mutex", "--trials", "1", "--warmup", "0", "--duration", "30ms"]
# A leading dash, a byte that is not UTF-8, and characters with a meaning in shells, terminals and SCAN patterns.
FOLDER = b"-a \xff\x1b[31m*?[{}]\n"


def shell(line: str, where: Path, *arguments: str | bytes) -> subprocess.CompletedProcess[bytes]:
    """Run `line` in a shell, in which "$@" is the command with `arguments`; pipes keep the exit code of the command."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line, "bash", *COMMAND, *arguments],
        cwd=where,
        env=environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_a_run_without_any_stream_keeps_its_results_in_a_folder_of_any_name(tmp_path: Path):
    done = shell('"$@" <&- >&- 2>&-', tmp_path, "run", *AT_ONCE, b"--out=" + FOLDER)
    assert done.returncode == 0
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + FOLDER))
    assert load(folder).manifest["status"] == "complete"
    assert (folder / "report.html").exists()
    # A script gets the exact name; a terminal gets no control characters.
    again = shell('"$@"', tmp_path, "report", "--", FOLDER)
    assert (again.stdout, again.stderr) == (FOLDER + b"/report.html\n", b"")
    resumed = shell('"$@"', tmp_path, "run", "--resume", b"./" + FOLDER)
    assert resumed.returncode == 40
    assert b"-a \\xff\\x1b[31m" in resumed.stderr
    assert b"\x1b" not in resumed.stderr


@pytest.mark.parametrize("line", [["--help"], ["run", "--help"], ["--version"], ["strategies"]])
def test_a_reader_may_stop_early_and_a_full_disk_is_reported(tmp_path: Path, line: list[str]):
    unread = shell('"$@" | true', tmp_path, *line)
    assert (unread.returncode, unread.stderr) == (0, b"")
    full = shell('"$@" > /dev/full', tmp_path, *line)
    assert full.returncode == 40
    assert full.stderr == b"error: stdout cannot be written: No space left on device\nhint: nothing else was lost\n"


def test_a_full_disk_under_stdout_takes_nothing_from_the_run(tmp_path: Path):
    done = shell('"$@" > /dev/full', tmp_path, "run", *AT_ONCE, "--out", "folder")
    assert done.returncode == 40
    assert done.stderr.endswith(
        b"error: stdout cannot be written: No space left on device\nhint: nothing else was lost\n"
    )
    assert load(tmp_path / "folder").manifest["status"] == "complete"
    assert (tmp_path / "folder" / "report.html").exists()


INTERRUPTED = """
import atexit, os, sys
import pybench.cli.output, pybench.matrix
from pybench.cli import main

def interrupt(*_, **__):
    os.kill(os.getpid(), int(os.environ["NUMBER"]))

pybench.matrix.json_schema = interrupt
if "AGAIN" in os.environ:
    pybench.cli.output.complain = interrupt
atexit.register(interrupt)
sys.argv = ["pybench", "schema"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("more", "said"), [({}, b"error: interrupted\n"), ({"AGAIN": "1"}, b"")])
def test_a_command_that_is_interrupted_exits_130_whatever_comes_while_it_ends(
    tmp_path: Path, number: signal.Signals, more: dict[str, str], said: bytes
):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", INTERRUPTED],
        cwd=tmp_path,
        env=environment(NUMBER=str(int(number)), **more),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", said)


WHILE_LOADING = """
import os, sys
from pybench.cli import main

class Interrupting:
    left = int(os.environ["IMPORTS"])

    def find_spec(self, *_):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), 2)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["pybench", "strategies"]
main()
"""


@pytest.mark.parametrize("imports", [1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
def test_a_command_that_is_interrupted_while_it_loads_exits_130_without_a_traceback(tmp_path: Path, imports: int):
    # `-S` skips `site`, which would load much of what a command needs before the interrupt.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-S", "-c", WHILE_LOADING],
        cwd=tmp_path,
        env=environment(IMPORTS=str(imports), PYTHONPATH=os.pathsep.join([str(ROOT), *sys.path])),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"error: interrupted\n")


WHILE_A_CLASS_IS_MADE = """
import sys

import pybench.matrix
from pybench.cli import main

pybench.matrix.json_schema = lambda: exec("import os; os.kill(os.getpid(), 2)")
sys.argv = ["pybench", "schema"]
main()
"""


def test_a_command_that_is_interrupted_while_a_dataclass_is_made_exits_130_and_not_by_the_signal(tmp_path: Path):
    (tmp_path / "interrupted.py").write_text(WHILE_A_CLASS_IS_MADE)
    # A dataclass executes text, and only with `-m` does Python remember that this was interrupted.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "interrupted"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"error: interrupted\n")


def test_nothing_is_loaded_before_the_command_waits_for_an_interrupt(tmp_path: Path):
    script = "import sys; before = {*sys.modules}; import pybench.cli; print(*sorted({*sys.modules} - before))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["__future__", "pybench", "pybench.cli"]
