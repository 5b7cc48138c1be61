"""How a run is watched: a live view on a terminal, elsewhere one plain line for each trial. Both write to stderr."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from pybench.analysis.comparison.entrants import load_axes, lock_labels
from pybench.cli.clock import Clock
from pybench.cli.figures import latency
from pybench.cli.output import say, shown_path
from pybench.cli.status import LONG_S, LiveLines, live_console, working
from pybench.columns import COLUMNS
from pybench.matrix.conditions import condition_texts
from pybench.notation import visible
from pybench.numbers import plural
from pybench.report.rules import promises_nothing
from pybench.running.watch import NOTHING_AROUND, Around

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType

    from pybench.running.watch import Finished, Running, Slot, Watch

LAST_SHOWN = 6
ALWAYS_SHOWN = 3
"""The line of the bar and the two lines of the running trial."""
WIDEST_BAR = 100


def watch() -> Watch:
    """The watcher that fits stderr."""
    console = live_console()
    return PlainLines() if console is None else LiveView(console)


class PlainLines:
    """One line for each finished trial, and the time left after each tenth of a long run: for logs and pipes."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self.labels: Mapping[str, str] = {}
        self.clock = Clock([])

    def run_begins(
        self, name: str, folder: Path, left: list[Slot], total: int, around: Around = NOTHING_AROUND
    ) -> None:
        """Print what will run, and into which folder."""
        self.total, self.done, self.labels = total, total - len(left), labels_of(left)
        self.clock = Clock(left, around)
        say(f"{name}: {_share(left, total)}, {self.clock.left().text}, into {shown_path(folder)}")

    def trial_begins(self, slot: Slot, trial: Running) -> None:
        """Note when the trial began, for the time that is left."""
        self.clock.begin(slot)

    def phase_ends(self, slot: Slot, text: str) -> None:
        """Print the phase: a search may take minutes, and a probe is too little for a line."""
        say(f"[{slot.number}/{self.total}] {text}: {_label(slot, self.labels)}")

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        """Print the result of the trial."""
        self.clock.end(slot)
        say(line_of(slot, finished, self.total, self.labels))
        tenths = self.done * 10 // max(1, self.total)
        self.done += not slot.is_control
        time = self.clock.left()
        if self.done * 10 // max(1, self.total) > tenths and time.seconds >= LONG_S:
            say(f"{self.done:,} of {plural(self.total, 'trial')} done, {time.text} left")

    def note(self, text: str) -> None:
        """Print the text."""
        say(text)

    def run_ends(self) -> None:
        """Nothing to do: each line is complete."""

    def working(self, text: str, expected_s: float = 0.0) -> AbstractContextManager[None]:
        """Print what is being done, if it takes long."""
        return working(text, expected_s)


def _share(left: Sequence[Slot], total: int) -> str:
    """How many trials are left; of a resumed run also of how many."""
    trials = plural(total, "trial")
    return trials if len(left) == total else f"{len(left):,} of {trials}"


def labels_of(slots: Sequence[Slot]) -> dict[str, str]:
    """Cell id -> its lock, and its load by the axes that vary between the cells of `slots`: `fair, 16 clients`."""
    rows = {slot.cell.id: {"cell": slot.cell.id, **slot.cell.columns()} for slot in slots if not slot.is_control}
    listed = list(rows.values())
    locks = lock_labels(listed)
    varied = [axis for axis in (load_axes(listed) if listed else ()) if len({row[axis] for row in listed}) > 1]
    return {
        cell: ", ".join([locks[cell], *condition_texts((axis, row[axis]) for axis in varied)])
        for cell, row in rows.items()
    }


def line_of(slot: Slot, finished: Finished, total: int, labels: Mapping[str, str]) -> str:
    """The result of a trial on one line. It begins with the result, because labels are of any length."""
    violations = plural(finished.violations, "violation")
    if slot.is_control:
        return f"[control] {'caught' if finished.violations else 'NOT CAUGHT'}, {violations}: {slot.cell.id}"
    by_probe = " by its probe" if finished.by_probe else ""
    return (
        f"[{slot.number}/{total}] {_RATE.text(finished.grants_per_s)} grants/s, p99 {latency(finished.p99_us)}, "
        f"{finished.verdict.value}{by_probe}{f', {violations}' if finished.violations else ''}"
        f"{f', {finished.limit}' if finished.limit else ''}: {_label(slot, labels)}"
    )


def _label(slot: Slot, labels: Mapping[str, str]) -> str:
    label = labels.get(slot.cell.id, slot.cell.id)
    return f"{slot.side}: {label}" if slot.side else label


_RATE = COLUMNS["grants_per_s"].format


class LiveView:
    """A bar with the time left, the running trial with its current figures, and the last finished trials."""

    def __init__(self, console: Console) -> None:
        self.console = console
        # Guards the fields that the runner's thread writes and the refreshing thread reads.
        self.lock = threading.Lock()
        self.clock = Clock([])
        self.total = self.done = 0
        self.name = ""
        self.labels: Mapping[str, str] = {}
        self.running: Slot | None = None
        self.trial: Running | None = None
        self.last: deque[tuple[Slot, Finished]] = deque(maxlen=LAST_SHOWN)
        self.lines = LiveLines(console, self.picture)

    def run_begins(
        self, name: str, folder: Path, left: list[Slot], total: int, around: Around = NOTHING_AROUND
    ) -> None:
        """Print what will run, and into which folder."""
        with self.lock:
            self.name, self.total, self.done, self.labels = name, total, total - len(left), labels_of(left)
            self.clock = Clock(left, around)
        self._print(f"{name}: {_share(left, total)}, into {shown_path(folder)}")
        self.lines.start()

    def trial_begins(self, slot: Slot, trial: Running) -> None:
        """Show the trial as the running one."""
        with self.lock:
            self.running, self.trial = slot, trial
            self.clock.begin(slot)

    def phase_ends(self, slot: Slot, text: str) -> None:
        """Nothing to do: the view shows each probe."""

    def trial_ends(self, slot: Slot, finished: Finished) -> None:
        """Show the trial among the last finished ones."""
        with self.lock:
            self.clock.end(slot)
            self.done += not slot.is_control
            self.running = self.trial = None
            self.last.append((slot, finished))

    def note(self, text: str) -> None:
        """Print the text above the view."""
        self._print(text)

    def run_ends(self) -> None:
        """Remove the view."""
        self.lines.stop()

    def working(self, text: str, expected_s: float = 0.0) -> AbstractContextManager[None]:
        """Show what is being done, where the view was."""
        return working(text, expected_s)

    def _print(self, text: str) -> None:
        with suppress(OSError):
            self.console.print(visible(text), soft_wrap=True)

    def picture(self) -> RenderableType:
        """The current view; the refreshing thread calls it."""
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
                f"{self.clock.left().text} left",
            )
            running = self._running()
            # One line stays free: a view as high as the terminal could not be removed again.
            if self.console.height <= ALWAYS_SHOWN:
                return head
            room = max(0, self.console.height - ALWAYS_SHOWN - 1)
            last = list(self.last)[-room:] if room else []
            past = [
                Text(line_of(slot, finished, self.total, self.labels), style=_style(slot, finished))
                for slot, finished in last
            ]
        lines = [Text(text, no_wrap=True, overflow="ellipsis") for text in running]
        for line in past:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*past, Constrain(head, WIDEST_BAR), *lines)

    def _running(self) -> list[str]:
        """The current figures of the running trial, and the label of its cell."""
        if self.running is None or self.trial is None:
            return ["", ""]
        progress = self.trial.progress()
        figures = [f"  {progress.phase} {progress.elapsed_ns / 1e9:.1f} s"]
        if progress.grants_per_s:
            figures += [f"{_RATE.text(progress.grants_per_s)} grants/s", f"p99 {latency(progress.p99_ns / 1e3)}"]
        counts = ((progress.errors, "errors"), (progress.reconnects, "reconnects"))
        figures += [f"{count:,} {what}" for count, what in counts if count]
        probe = f", {self.running.probe_text}" if self.running.probe else ""
        block = "" if self.running.is_control else f" (block {self.running.block}{probe})"
        return ["   ".join(figures), f"  {_label(self.running, self.labels)}{block}"]


def _style(slot: Slot, finished: Finished) -> str:
    if slot.is_control:
        return "" if finished.violations else "yellow"
    if finished.verdict.value == "UNSAFE":
        # Overlaps of a lock that promises nothing are expected.
        return "dim" if promises_nothing(slot.cell.columns()) else "red"
    return "" if finished.verdict.value == "SAFE" else "yellow"
