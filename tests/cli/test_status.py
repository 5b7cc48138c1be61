"""What a command shows while it prints nothing: on a terminal a line that goes away, in a log at most one line."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pexpect
import pyte
import pytest
from command_line import ROOT, environment

from pybench.cli.status import reading_s, working, writing_s
from pybench.errors import RecordError
from pybench.planning.ending import ending_s, gathering_s

REFERENCE = ROOT / "results" / "reference"
WORKS = """
import time
from pybench.cli.output import data
from pybench.cli.status import working
with working("gathering the trials", 60.0):
    time.sleep(1.2)
data("the table")
try:
    with working("writing"):
        raise KeyboardInterrupt
except KeyboardInterrupt:
    data("interrupted")
"""


def test_a_terminal_shows_what_is_done_and_keeps_nothing_of_it():
    terminal = pexpect.spawn(sys.executable, ["-c", WORKS], env={**environment(), "TERM": "xterm"}, dimensions=(24, 80))
    terminal.expect_exact("gathering the trials: 1 s of about 1 min 00 s", timeout=60)
    shown = terminal.before + terminal.after
    terminal.expect(pexpect.EOF, timeout=60)
    screen = pyte.Screen(80, 24)
    pyte.ByteStream(screen).feed(shown + terminal.before)
    assert [line.rstrip() for line in screen.display if line.strip()] == ["the table", "interrupted"]
    assert not screen.cursor.hidden


def test_stdout_is_clean_and_a_log_has_one_line_of_long_work_only(tmp_path: Path):
    line = shlex.join([sys.executable, "-c", WORKS])
    pexpect.run(shlex.join(["bash", "-c", f"{line} >{tmp_path}/out 2>{tmp_path}/err"]), env=environment(), timeout=60)
    assert (tmp_path / "out").read_text() == "the table\ninterrupted\n"
    assert (tmp_path / "err").read_text() == "gathering the trials, about 1 min 00 s\n"


def test_an_error_of_the_work_is_raised():
    with pytest.raises(RecordError), working("reading"):
        raise RecordError("it is damaged", hint="restore it")


def test_the_time_for_a_folder_is_that_of_its_cells_and_trials(tmp_path: Path):
    assert reading_s(REFERENCE) == gathering_s(24, 24 * 4)
    assert writing_s(REFERENCE) == ending_s(24, 24 * 4)
    with pytest.raises(RecordError, match="not a run folder"):
        reading_s(tmp_path)
