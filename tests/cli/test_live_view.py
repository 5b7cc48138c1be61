from __future__ import annotations

import io
import re
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import pexpect
import pyte
import pytest
from command_line import environment
from rich.console import Console

from pybench.analysis.verdicts import Verdict
from pybench.cli.live import LiveView, PlainLines, labels_of, line_of
from pybench.matrix import expand, matrix_from_options
from pybench.running.watch import Around, Finished, Progress, Slot
from tests.unit.support.trials import cell as cell_of


def slot(number: int, seconds: float = 2.5, cell: str = "mutex concurrency=64") -> Slot:
    return Slot(number=number, cell=replace(cell_of("mutex"), id=cell), block=1, planned_s=seconds)


def finished(verdict: Verdict = Verdict.SAFE, violations: int = 0) -> Finished:
    return Finished(grants_per_s=21_500.0, p99_us=12_500.0, violations=violations, verdict=verdict)


def test_a_verdict_that_is_the_probes_says_so():
    judged = replace(finished(), by_probe=True)
    assert line_of(slot(1), judged, 2, {}).endswith("p99 12.5 ms, SAFE by its probe: mutex concurrency=64")


class Running:
    """A trial that runs; the core's own is read in test_terminal.py."""

    def progress(self) -> Progress:
        return Progress(elapsed_ns=1_200_000_000, grants_per_s=20_900.0, p99_ns=1_250_000, errors=3)


def screen_of(output: str, columns: int = 80) -> list[str]:
    screen = pyte.Screen(columns, 24)
    pyte.Stream(screen).feed(output.replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display]


def test_the_view_shows_the_cell_its_figures_of_now_and_the_time_left():
    out = io.StringIO()
    view = LiveView(Console(file=out, force_terminal=True, width=80, color_system="standard"))
    view.run_begins("quickstart", Path("results/quickstart"), [slot(1), slot(2)], total=2)
    view.trial_begins(slot(1), Running())
    view.trial_ends(slot(1), finished())
    view.trial_begins(slot(2), Running())
    time.sleep(0.6)
    shown = screen_of(out.getvalue())
    view.run_ends()
    assert any(line.startswith("1/2 ") and line.endswith("s left") for line in shown)
    assert any("[1/2] 21,500 grants/s, p99 12.5 ms, SAFE: mutex" in line for line in shown)
    assert any("20,900 grants/s" in line and "3 errors" in line for line in shown)


@pytest.mark.parametrize("columns", [20, 40, 80, 300])
def test_the_view_never_takes_more_than_its_lines_on_a_narrow_terminal(columns: int):
    out = io.StringIO()
    view = LiveView(Console(file=out, force_terminal=True, width=columns, height=24))
    view.run_begins("q", Path("r"), [slot(1, cell="redlock(nodes=5) concurrency=64 hold=lognormal(2ms, 0.8)")], total=1)
    view.trial_begins(slot(1), Running())
    lines = view.console.render_lines(view.picture(), pad=False)
    view.run_ends()
    assert len(lines) == 3
    # What is no wider than this survives most changes of a terminal's width.
    assert sum(segment.cell_length for segment in lines[0]) <= min(columns, 100)


@pytest.mark.parametrize("rows", [2, 3, 4, 7, 24])
def test_the_view_is_never_as_high_as_the_terminal_and_keeps_its_bar_longest(rows: int):
    view = LiveView(Console(file=io.StringIO(), force_terminal=True, width=80, height=rows))
    view.run_begins("q", Path("r"), [slot(number) for number in range(1, 10)], total=9)
    for number in range(1, 9):
        view.trial_begins(slot(number), Running())
        view.trial_ends(slot(number), finished())
    lines = ["".join(segment.text for segment in line) for line in view.console.render_lines(view.picture())]
    view.run_ends()
    assert len(lines) == {2: 1, 3: 1, 4: 3, 7: 6, 24: 9}[rows]
    assert any(line.startswith("8/9 ") for line in lines)


WHO_WATCHES = """
import os, sys
from pybench.cli.live import watch
from pybench.cli.output import data_console
for setting in sys.argv[1:]:
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR"):
        os.environ.pop(name, None)
    os.environ.update(pair.split("=") for pair in setting.split())
    console = data_console()
    console.print("struck", style="strike red")
    print(type(watch()).__name__, repr(console.file.getvalue()))
"""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_of_a_known_kind_is_watched_live_and_forced_colours_move_nothing(terminal: bool):
    settings = ["TERM=xterm", "TERM=xterm NO_COLOR=1", "TERM=dumb", "", "FORCE_COLOR=1", "TERM=dumb FORCE_COLOR=1"]
    # Its output is the terminal's, or goes through `cat`; both streams are of one kind.
    line = 'python=$0; "$python" "$@" 2>&1' + ("" if terminal else " | cat")
    told = pexpect.run(
        shlex.join(["bash", "-c", line, sys.executable, "-c", WHO_WATCHES, *settings]), env=environment(), timeout=None
    )
    coloured, struck, plain = "'\\x1b[9;31mstruck\\x1b[0m\\n'", "'\\x1b[9mstruck\\x1b[0m\\n'", "'struck\\n'"
    assert told.decode().splitlines() == (
        [
            f"LiveView {coloured}",
            f"LiveView {struck}",
            f"PlainLines {plain}",
            f"PlainLines {plain}",
            f"LiveView {coloured}",
            f"PlainLines {plain}",
        ]
        if terminal
        else [f"PlainLines {plain}"] * 4 + [f"PlainLines {coloured}", f"PlainLines {plain}"]
    )


def test_the_end_leaves_nothing_of_the_view_on_the_terminal():
    out = io.StringIO()
    view = LiveView(Console(file=out, force_terminal=True, width=80))
    view.run_begins("quickstart", Path("results/quickstart"), [slot(1)], total=1)
    view.trial_begins(slot(1), Running())
    time.sleep(0.3)
    view.run_ends()
    view.run_ends()
    assert [line for line in screen_of(out.getvalue()) if line] == ["quickstart: 1 trial, into results/quickstart"]


def test_without_a_terminal_each_trial_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]):
    lines = PlainLines()
    lines.run_begins("quickstart", Path("results/quickstart"), [slot(1), slot(2)], total=2)
    for number in (1, 2):
        lines.trial_begins(slot(number), Running())
        lines.trial_ends(slot(number), finished())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "quickstart: 2 trials, about 5 s, into results/quickstart",
        "[1/2] 21,500 grants/s, p99 12.5 ms, SAFE: mutex",
        "[2/2] 21,500 grants/s, p99 12.5 ms, SAFE: mutex",
    ]


def test_without_a_terminal_a_long_run_says_after_each_tenth_how_long_it_still_takes(
    capsys: pytest.CaptureFixture[str],
):
    lines = PlainLines()
    slots = [slot(number, seconds=60) for number in range(5, 41)]
    lines.run_begins("long", Path("results/long"), slots, total=40, around=Around(overhead_s=0.0))
    for each in slots[:4]:
        lines.trial_begins(each, Running())
        lines.trial_ends(each, finished())
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("long: 36 of 40 trials, about 36 min")
    told = [line for line in said if "left" in line]
    assert len(told) == 1
    assert re.fullmatch(r"8 of 40 trials done, about 3[12] min \d\d s left", told[0])


def test_a_line_names_of_a_cell_its_lock_and_the_axes_that_vary_in_the_run():
    fixed = cell_of("mutex")
    cells = [
        replace(fixed, id="a", strategy="redlock", args=(("nodes", 5),), concurrency=8, keys=1),
        replace(fixed, id="b", concurrency=8, keys=9),
        replace(fixed, id="c", concurrency=64, keys=9),
    ]
    slots = [replace(slot(1), cell=one) for one in cells]
    assert list(labels_of(slots).values()) == [
        "redlock(nodes=5), 8 clients, 1 key",
        "mutex, 8 clients, 9 keys",
        "mutex, 64 clients, 9 keys",
    ]
    assert list(labels_of(slots[:1]).values()) == ["redlock(nodes=5)"]
    assert line_of(slots[2], finished(), 3, labels_of(slots)).endswith("SAFE: mutex, 64 clients, 9 keys")


def test_a_setting_that_one_kind_of_server_lacks_names_no_cell():
    cells = expand(matrix_from_options(strategy="mutex,pg-lease", concurrency="1,8"))
    slots = [replace(slot(1), cell=one) for one in cells]
    assert list(labels_of(slots).values()) == [
        "mutex, 1 client",
        "mutex, 8 clients",
        "pg-lease, 1 client",
        "pg-lease, 8 clients",
    ]


def test_a_control_begins_with_whether_it_was_caught():
    control = replace(slot(0), cell=replace(cell_of("none"), id="control of redis"))
    caught = line_of(control, finished(Verdict.UNSAFE, 5_000), 9, {})
    assert caught == "[control] caught, 5,000 violations: control of redis"
    assert line_of(control, finished(Verdict.VOID, 0), 9, {}).startswith("[control] NOT CAUGHT, ")


def test_a_lock_that_sends_nothing_has_no_latency():
    assert "p99 -, UNSAFE" in line_of(slot(1), replace(finished(Verdict.UNSAFE, 5), p99_us=0.0), 9, {})
