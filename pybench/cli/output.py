"""Where output goes: data to stdout, talk to stderr. NO_COLOR is honoured, and a pipe gets plain text."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

from pybench.errors import InputError
from pybench.notation import visible

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console


LEAST_COLUMNS = 20
"""Less is no width to write in: lines are longer than that then."""


def data(text: str) -> None:
    """Write data, whole, to stdout. Raises InputError when stdout takes none, such as a file on a full disk."""
    try:
        _write(sys.stdout, text if text.endswith("\n") else f"{text}\n")
    except OSError as error:
        _to_nowhere(sys.stdout)
        raise InputError(f"stdout cannot be written: {error.strerror}", hint="nothing else was lost") from error


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # Whoever read it (`| head`) has what it wanted, or the terminal is closed: the command goes on without.
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        _to_nowhere(stream)


def _to_nowhere(stream: TextIO) -> None:
    """Let what is still to come, and what Python flushes at its end, go to nobody."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def data_json(value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write `value` as JSON to stdout; NaN and other absent figures must be None already."""
    data(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Write one line of talk to stderr, now; no terminal obeys what is in it. What cannot be written ends nothing."""
    try:
        _write(sys.stderr, f"{visible(text)}\n")
    except OSError:
        _to_nowhere(sys.stderr)


def complain(message: str, *, hint: str | None) -> None:
    """Say on stderr what went wrong and what to do next."""
    say(f"error: {message}")
    if hint:
        say(f"hint: {hint}")


def shown_path(path: Path) -> str:
    """`path` as seen from here, where it lies below, and such that no command takes it for an option."""
    try:
        relative = os.path.relpath(path)
    except FileNotFoundError:  # The working folder was removed: nothing is seen from there.
        relative = os.pardir
    shown = str(path) if relative.startswith(os.pardir) else relative
    return f"./{shown}" if shown.startswith("-") else shown


def data_console() -> Console:
    """A console that keeps what is printed, for `data`: as wide as stdout, and styled where that is a terminal."""
    from rich.console import Console

    real = Console(highlight=False, emoji=False, markup=False, width=_columns())
    return Console(
        file=io.StringIO(),
        force_terminal=takes_styles(real),
        width=real.width,
        highlight=False,
        emoji=False,
        markup=False,
    )


UNBOUNDED = 10_000
"""Letters that no table takes."""


def is_unbounded() -> bool:
    """Whether stdout is a pipe or a file, whose lines may be of any length, and COLUMNS does not say how long."""
    return _columns() is None and not sys.stdout.isatty()


def takes_styles(console: Console) -> bool:
    """Whether what `console` writes to knows colours: a terminal of a kind that is known, or FORCE_COLOR says so."""
    known = os.environ.get("TERM") or os.environ.get("FORCE_COLOR")
    return bool(console.is_terminal and not console.is_dumb_terminal and known)


def stderr_console() -> Console:
    """A console for talk."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, markup=False, width=_columns())


def versions() -> str:
    """The versions of pybench and of its core, for a report of a fault; "no core" when it is not built."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("pybench")
    except PackageNotFoundError:
        own = "of a source tree"
    try:
        from pybench import _core
    except ImportError:
        return f"pybench {own}, no core"
    return f"pybench {own}, core {_core.version} ({_core.build_profile})"


def width() -> int:
    """Columns for running text: those of the terminal up to 100, 80 where there is none."""
    return max(LEAST_COLUMNS, min(100, shutil.get_terminal_size((80, 24)).columns))


def _columns() -> int | None:
    """The width that COLUMNS says; None: the console finds out. A width of 0, which some terminals say, is none."""
    said = os.environ.get("COLUMNS", "")
    return None if not said.isdecimal() else (max(LEAST_COLUMNS, int(said)) if int(said) else 80)
