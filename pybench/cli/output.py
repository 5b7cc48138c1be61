"""Where output goes: data to stdout, messages to stderr. NO_COLOR is honoured, and a pipe gets plain text."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

from pybench.errors import InputError, RecordError
from pybench.exits import MEANINGS, Exit
from pybench.notation import visible

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console


LEAST_COLUMNS = 20
"""The least width of a line; on a narrower terminal lines are longer than the terminal."""


def data(text: str) -> None:
    """Write data to stdout at once. Raises InputError if stdout cannot be written, such as a file on a full disk."""
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
        # The reader of the pipe (`| head`) has ended, or the terminal is closed: the command continues without output.
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        _to_nowhere(stream)


def _to_nowhere(stream: TextIO) -> None:
    """Discard all later output to `stream`, also what Python flushes when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def data_json(value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write `value` as JSON to stdout; the caller has replaced NaN by None."""
    data(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Write one line to stderr at once, without control characters. A stderr that cannot be written raises nothing."""
    try:
        _write(sys.stderr, f"{visible(text)}\n")
    except OSError:
        _to_nowhere(sys.stderr)


def complain(message: str, *, hint: str | None) -> None:
    """Print an error, and a hint at what to do next, to stderr."""
    say(f"error: {message}")
    if hint:
        say(f"hint: {hint}")


def say_meaning(code: Exit) -> None:
    """Explain an exit code that is a result; an error, an interrupt and success explain themselves."""
    if code not in (Exit.OK, Exit.BAD_INPUT, Exit.SERVER_UNREACHABLE, Exit.INTERRUPTED):
        say(f"exit code {code.value}: {MEANINGS[code]}")


def shown_path(path: Path) -> str:
    """`path` relative to the working folder if it lies below it, and never in a form that looks like an option."""
    try:
        relative = os.path.relpath(path)
    except FileNotFoundError:  # The working folder was removed.
        relative = os.pardir
    shown = str(path) if relative.startswith(os.pardir) else relative
    return f"./{shown}" if shown.startswith("-") else shown


def write_file(path: Path, text: str) -> None:
    """Write `text` to the file that a user named, and say so. Raises RecordError."""
    from pybench.records.atomic import absolute, write_named

    place = absolute(path)
    write_named(place, text.encode("utf-8"))
    say(f"written: {shown_path(place)}")


def require_files(**files: Path | None) -> None:
    """Check the files that a user named by options, before the work that fills them. Raises InputError."""
    from pybench.records.atomic import absolute, require_writable

    for option, path in files.items():
        if path is None:
            continue
        try:
            require_writable(absolute(path))
        except RecordError as error:
            raise InputError(f"--{option}: {error.message}", hint=error.hint) from None


def data_console() -> Console:
    """A console that collects text for `data`, see `printed`: as wide as stdout, and styled if it is a terminal."""
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


def printed(console: Console) -> str:
    """All that was printed to a `data_console`."""
    text = console.file
    assert isinstance(text, io.StringIO), "a console of data keeps what is printed"
    return text.getvalue()


UNBOUNDED = 10_000
"""A width in columns that no table reaches."""


def is_unbounded() -> bool:
    """Whether lines may have any length: stdout is a pipe or a file, and COLUMNS sets no width."""
    return _columns() is None and not sys.stdout.isatty()


def takes_styles(console: Console) -> bool:
    """Whether `console` supports colours: its terminal has a known type, or FORCE_COLOR is set."""
    known = os.environ.get("TERM") or os.environ.get("FORCE_COLOR")
    return bool(console.is_terminal and not console.is_dumb_terminal and known)


def stderr_console() -> Console:
    """A console for messages."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, markup=False, width=_columns())


def versions() -> str:
    """The versions of pybench and of its core, for a bug report; "no core" if the core is not built."""
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
    """The width of running text: that of the terminal, at most 100 columns; 80 columns without a terminal."""
    return max(LEAST_COLUMNS, min(100, shutil.get_terminal_size((80, 24)).columns))


def _columns() -> int | None:
    """The width that COLUMNS sets; None: the console determines it. Some terminals set 0, which means 80 here."""
    said = os.environ.get("COLUMNS", "")
    return None if not said.isdecimal() else (max(LEAST_COLUMNS, int(said)) if int(said) else 80)
