"""Where output goes: data to stdout, talk to stderr. NO_COLOR is honoured, and a pipe gets plain text."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console


def data(text: str) -> None:
    """Write data, whole, to stdout."""
    _write(sys.stdout, text if text.endswith("\n") else f"{text}\n")


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # Whoever read it (`| head`) has what it wanted; the command goes on, and so does the run that it reports.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def data_json(value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write `value` as JSON to stdout; NaN and other absent figures must be None already."""
    data(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Write one line of talk to stderr, now."""
    _write(sys.stderr, f"{text}\n")


def complain(message: str, *, hint: str | None) -> None:
    """Say on stderr what went wrong and what to do next."""
    say(f"error: {message}")
    if hint:
        say(f"hint: {hint}")


def shown_path(path: Path) -> str:
    """`path` as seen from here, where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def stdout_console() -> Console:
    """A console for data: styled on a terminal, plain text elsewhere."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False)


def stderr_console() -> Console:
    """A console for talk."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, markup=False)


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
    return min(100, shutil.get_terminal_size((80, 24)).columns)
