"""A real terminal of 80 columns: the live view, the table, Ctrl-C once and twice."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pexpect
import pyte
import pytest
from command_line import COMMAND, LEFT_AT_ONCE, QUICK, environment

WAIT_S = 60.0


class Terminal:
    """A process in a terminal, and the text on its screen."""

    def __init__(
        self, arguments: list[str], where: Path, *, program: Sequence[str] = COMMAND, **variables: str
    ) -> None:
        command, *rest = [*program, *arguments]
        env = environment(TERM="xterm-256color", **variables)
        # The terminal sets the size.
        del env["COLUMNS"]
        self.process = pexpect.spawn(command, rest, cwd=str(where), env=env, dimensions=(40, 80), encoding="utf-8")
        self.screen = pyte.HistoryScreen(80, 40, history=1000)
        self.stream = pyte.Stream(self.screen)
        self.raw = ""

    @property
    def lines(self) -> list[str]:
        """The text on the screen."""
        return [line.rstrip() for line in self.screen.display]

    def read_until(self, found: Callable[[list[str]], bool]) -> list[str]:
        """Read until `found` is true of the screen; returns the screen."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if found(self.lines):
                return self.lines
            if not self._read():
                break
        pytest.fail("never seen; the screen was:\n" + "\n".join(self.lines))

    def reads_for(self, seconds: float) -> bool:
        """Read for `seconds`; returns whether the process is still running."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self._read():
                return False
        return True

    def read_to_the_end(self) -> int:
        """Read until the process ends; returns its exit code, and fails if a signal ended it."""
        while self._read():
            pass
        self.process.close()
        assert self.process.signalstatus is None
        return self.process.exitstatus

    def _read(self) -> bool:
        try:
            text = self.process.read_nonblocking(65_536, timeout=1)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += text
        self.stream.feed(text)
        return True


LONG = [
    "run",
    "-s",
    "mutex",
    "--concurrency",
    "4,8",
    "--trials",
    "2",
    "--warmup",
    "0",
    "--duration",
    "3s",
    "--out",
    "f",
]


def shows(text: str) -> Callable[[list[str]], bool]:
    return lambda lines: any(text in line for line in lines)


def test_the_live_view_shows_the_running_trial_and_leaves_only_the_table(tmp_path: Path):
    terminal = Terminal(
        ["run", "-s", "none,mutex", "--concurrency", "8", "--hold", "200us", *QUICK, "--out", "f"], tmp_path
    )
    terminal.read_until(shows("s left"))
    terminal.read_until(shows("measuring"))
    assert terminal.read_to_the_end() == 0
    assert not any("left" in line for line in terminal.lines)
    assert any(re.match(r"1  mutex", line) for line in terminal.lines)
    assert any(line.startswith("report: f/report.html") for line in terminal.lines)


STRUCK, RED = re.compile(r"\x1b\[[\d;]*\b9(;|m)"), re.compile(r"\x1b\[[\d;]*31m")


def test_an_unsafe_lock_is_struck_through_on_a_terminal_and_without_colour_where_none_is_wanted(tmp_path: Path):
    # Work that outlives its ttl overlaps with the next holder's.
    arguments = ["run", "-s", "mutex", "--concurrency", "4", "--hold", "30ms", "--ttl", "10ms"]
    arguments += ["--allow", "hold-beyond-ttl", *QUICK]
    coloured = Terminal(arguments, tmp_path)
    coloured.read_to_the_end()
    plain = Terminal(arguments, tmp_path, NO_COLOR="1")
    plain.read_to_the_end()
    assert STRUCK.search(coloured.raw)
    assert RED.search(coloured.raw)
    assert not re.search(r"\x1b\[[\d;]*3[0-7]m", plain.raw)


def test_overlaps_of_clients_without_a_lock_are_expected_and_neither_struck_nor_red(tmp_path: Path):
    terminal = Terminal(["run", "-s", "none", "--concurrency", "8", "--hold", "200us", *QUICK], tmp_path)
    terminal.read_to_the_end()
    assert any("UNSAFE" in line for line in terminal.lines)
    assert not STRUCK.search(terminal.raw)
    assert not RED.search(terminal.raw)


def test_ctrl_c_keeps_the_running_trial_and_shows_how_to_resume(tmp_path: Path):
    terminal = Terminal(LONG, tmp_path)
    terminal.read_until(shows("measuring 1."))
    terminal.process.sendintr()
    assert terminal.read_to_the_end() == 130
    assert any("pybench run --resume f" in line for line in terminal.lines)
    assert any(line.startswith("Interrupted") for line in terminal.lines)
    assert "Traceback" not in terminal.raw


def test_a_second_ctrl_c_exits_at_once_without_a_traceback(tmp_path: Path):
    terminal = Terminal(LONG, tmp_path, program=LEFT_AT_ONCE)
    terminal.read_until(shows("measuring 1."))
    terminal.process.sendintr()
    # Two signals before the first is handled count as one; a signal while Python ends would end it.
    while "error: interrupted" not in terminal.raw:
        time.sleep(0.3)
        terminal.process.sendintr()
        if not terminal.reads_for(1.0):
            break
    assert terminal.read_to_the_end() == 130
    assert "Traceback" not in terminal.raw
    assert "error: interrupted" in terminal.raw
    # The cursor that the live view hid is back.
    assert terminal.raw.rfind("\x1b[?25h") > terminal.raw.rfind("\x1b[?25l")
