"""How a run is watched: a live view on a terminal, one plain line a trial elsewhere. Both write to stderr."""

from __future__ import annotations

import re
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pybench.cli.clock import Clock
from pybench.cli.figures import latency, wall_time
from pybench.cli.output import say, shown_path, stderr_console, takes_styles
from pybench.notation import visible
from pybench.numbers import format_count, plural

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType

    from pybench import _core
    from pybench.running.watch import Finished, Slot, Watch

REFRESHES_PER_S = 4
LAST_SHOWN = 6
ALWAYS_SHOWN = 3
"""Lines of the bar and of the running trial."""
WIDEST_BAR = 100


def watch() -> Watch:
    """The watcher that fits stderr. A log takes colours where FORCE_COLOR says so, but no view that moves."""
    console = stderr_console()
    return LiveView(console) if sys.stderr.isatty() and takes_styles(console) else PlainLines()


class PlainLines:
    """One line for each trial that ended: for logs and pipes."""

    def __init__(self) -> None:
        self.total = 0
        self.labels: Mapping[str, str] = {}
        self.clock = Clock([])

    def run_begins(self, name: str, folder: Path, left: list[Slot], total: int) -> None:
        """Say what will run, and where to."""
        self.total, self.labels = total, labels_of(left)
        self.clock = Clock(left)
        about = wall_time(self.clock.left_s())
        say(f"{name}: {plural(len(left), 'trial')}, about {about}, into {shown_path(folder)}")

    def trial_begins(self, slot: Slot, trial: _core.Trial) -> None:
        """Note when it began."""
        self.clock.begin(slot)

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        """Say what it came to."""
        self.clock.end(slot)
        say(line_of(slot, finished, self.total, self.labels))

    def note(self, text: str) -> None:
        """Say it."""
        say(text)

    def run_ends(self) -> None:
        """Each line is complete already."""


def labels_of(slots: Sequence[Slot]) -> dict[str, str]:
    """Cell id -> its lock, and of its axes those by which the cells of `slots` differ."""
    words = {slot.cell.id: _words(slot.cell.id) for slot in slots}
    common = set.intersection(*map(set, words.values())) if words else set()
    return {
        cell: " ".join([lock, *(word for word in axes if word not in common)]) for cell, (lock, *axes) in words.items()
    }


def _words(cell: str) -> list[str]:
    """The lock and each axis of a cell's id: what stands in brackets may have spaces."""
    return re.findall(r"(?:[^\s()]|\((?:[^()]|\([^()]*\))*\))+", cell)


def line_of(slot: Slot, finished: Finished, total: int, labels: Mapping[str, str]) -> str:
    """What a trial came to, on one line: the result first, for labels are of any length."""
    if slot.is_control:
        caught = "caught" if finished.violations else "NOT CAUGHT"
        return f"[control] {slot.cell.id}: {caught}, {plural(finished.violations, 'violation')}"
    violations = f", {plural(finished.violations, 'violation')}" if finished.violations else ""
    by_probe = " by its probe" if finished.by_probe else ""
    return (
        f"[{slot.number}/{total}] {format_count(finished.grants_per_s)} grants/s, p99 {latency(finished.p99_us)}, "
        f"{finished.verdict.value}{by_probe}{violations}: {labels.get(slot.cell.id, slot.cell.id)}"
    )


class LiveView:
    """A bar with the time left, the running trial with its figures of now, and the last trials that ended."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self.console = console
        # Guards what the refreshing thread reads while the runner's thread moves on.
        self.lock = threading.Lock()
        self.clock = Clock([])
        self.total = self.done = 0
        self.name = ""
        self.labels: Mapping[str, str] = {}
        self.running: Slot | None = None
        self.trial: _core.Trial | None = None
        self.last: deque[tuple[Slot, Finished]] = deque(maxlen=LAST_SHOWN)
        self.live = Live(
            console=console, get_renderable=self.picture, refresh_per_second=REFRESHES_PER_S, transient=True
        )

    def run_begins(self, name: str, folder: Path, left: list[Slot], total: int) -> None:
        """Say what will run, and where to."""
        with self.lock:
            self.name, self.total, self.done, self.clock = name, total, total - len(left), Clock(left)
            self.labels = labels_of(left)
        self._print(f"{name}: {plural(len(left), 'trial')}, into {shown_path(folder)}")
        self.live.start()

    def trial_begins(self, slot: Slot, trial: _core.Trial) -> None:
        """Show it from now on."""
        with self.lock:
            self.running, self.trial = slot, trial
            self.clock.begin(slot)

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        """Put it among the last that ended."""
        with self.lock:
            self.clock.end(slot)
            self.done += not slot.is_control
            self.running = self.trial = None
            self.last.append((slot, finished))

    def note(self, text: str) -> None:
        """Say it above the view."""
        self._print(text)

    def run_ends(self) -> None:
        """Take the view away."""
        # A terminal that is closed takes nothing, and ends nothing.
        with suppress(OSError):
            self.live.stop()

    def _print(self, text: str) -> None:
        with suppress(OSError):
            self.console.print(visible(text), soft_wrap=True)

    def picture(self) -> RenderableType:
        """The view as it stands now; called by the refreshing thread."""
        from rich.console import Group
        from rich.constrain import Constrain
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        with self.lock:
            head = Table.grid(padding=(0, 1), expand=True)
            head.add_column(no_wrap=True)
            head.add_column(ratio=1)
            head.add_column(no_wrap=True)
            head.add_row(
                f"{self.done}/{self.total}",
                ProgressBar(total=max(1, self.total), completed=self.done),
                f"about {wall_time(self.clock.left_s())} left",
            )
            now = self._now()
            # One line stays free: a view as high as the terminal cannot be taken away again.
            if self.console.height <= ALWAYS_SHOWN:
                return head
            room = max(0, self.console.height - ALWAYS_SHOWN - 1)
            last = list(self.last)[-room:] if room else []
            past = [
                Text(line_of(slot, finished, self.total, self.labels), style=_style(slot, finished))
                for slot, finished in last
            ]
        lines = [Text(text, no_wrap=True, overflow="ellipsis") for text in now]
        for line in past:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*past, Constrain(head, WIDEST_BAR), *lines)

    def _now(self) -> list[str]:
        """What the running trial does at this moment."""
        if self.running is None or self.trial is None:
            return ["", ""]
        progress = self.trial.progress()
        figures_of_now = f"  {progress.phase} {progress.elapsed_ns / 1e9:.1f} s"
        if progress.grants_per_s:
            p99 = latency(progress.p99_ns / 1e3)
            figures_of_now += f"   {format_count(progress.grants_per_s)} grants/s   p99 {p99}"
        trouble = [
            f"{n:,} {word}" for n, word in ((progress.errors, "errors"), (progress.reconnects, "reconnects")) if n
        ]
        block = "" if self.running.is_control else f" (block {self.running.block})"
        label = self.labels.get(self.running.cell.id, self.running.cell.id)
        return [f"  {label}{block}", "   ".join([figures_of_now, *trouble])]


def _style(slot: Slot, finished: Finished) -> str:
    if slot.is_control:
        return "" if finished.violations else "yellow"
    return {"SAFE": "", "UNSAFE": "red"}.get(finished.verdict.value, "yellow")
