"""What a command does while it prints nothing: a line on stderr that goes away when the work is done.

On a terminal the line is there from the beginning to the end of the work. In a log, work that takes long is announced
by one line, and other work by none.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pybench.cli.figures import wall_time
from pybench.cli.output import say, stderr_console, takes_styles
from pybench.notation import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

LONG_S = 10.0
"""A log mentions no time, left or needed, below so many seconds."""
REFRESHES_PER_S = 4


def live_console() -> Console | None:
    """The console of stderr where its lines can be replaced. FORCE_COLOR colours a log, but replaces nothing."""
    console = stderr_console() if sys.stderr.isatty() else None
    return console if console is not None and takes_styles(console) else None


class LiveLines:
    """Lines at the end of a terminal, which are drawn again several times a second, and are removed at the end."""

    def __init__(self, console: Console, picture: Callable[[], RenderableType]) -> None:
        """`picture` draws the lines; a thread calls it."""
        from rich.live import Live

        self._live = Live(console=console, get_renderable=picture, refresh_per_second=REFRESHES_PER_S, transient=True)

    def start(self) -> None:
        """Show the lines."""
        # Writing to a closed terminal fails, and must not end the work.
        with suppress(OSError):
            self._live.start()

    def stop(self) -> None:
        """Remove the lines. A second call does nothing."""
        with suppress(OSError):
            self._live.stop()


@contextmanager
def working(text: str, expected_s: float = 0.0) -> Iterator[None]:
    """Say that `text` is being done, while the block does it. `expected_s` is how long it takes, in seconds."""
    began = time.monotonic()

    def so_far() -> str:
        took_s = time.monotonic() - began
        of = f" of about {wall_time(expected_s)}" if expected_s >= max(LONG_S, took_s) else ""
        return f"{text}: {wall_time(took_s)}{of}"

    if expected_s >= LONG_S and live_console() is None:
        say(f"{text}, about {wall_time(expected_s)}")
    with line(so_far):
        yield


@contextmanager
def line(text: Callable[[], str]) -> Iterator[LiveLines | None]:
    """A line on a terminal that shows what `text` returns at the time, while the block runs; nothing elsewhere.

    Yields it, so that the block can take it away while it asks the user; None where there is none.
    """
    console = live_console()
    if console is None:
        yield None
        return
    from rich.text import Text

    def picture() -> Text:
        return Text(visible(text()), no_wrap=True, overflow="ellipsis")

    lines = LiveLines(console, picture)
    lines.start()
    try:
        yield lines
    finally:
        lines.stop()


def reading_s(folder: Path) -> float:
    """The seconds for reading the run in `folder`. Raises RecordError where it is no run folder."""
    from pybench.planning.ending import gathering_s

    cells, trials = _size(folder)
    return gathering_s(cells, trials)


def writing_s(folder: Path) -> float:
    """The seconds for reading the run in `folder`, and for its table and report. Raises RecordError."""
    from pybench.planning.ending import ending_s

    cells, trials = _size(folder)
    return ending_s(cells, trials)


def _size(folder: Path) -> tuple[int, int]:
    """The cells of a run, and the trials of all of them."""
    from pybench.records.atomic import absolute
    from pybench.records.manifest import read_manifest

    manifest = read_manifest(absolute(folder))
    cells = len(manifest.get("cells", ()))
    return cells, cells * len(manifest.get("order", ()))
