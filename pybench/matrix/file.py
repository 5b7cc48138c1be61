"""The file of a matrix as text: read once and whole, up to a size limit, from any kind of file."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pybench.errors import InputError

MOST_BYTES = 256 * 1024
HINT = "`pybench init` writes a matrix to start from"

Position = tuple[int, int]
"""Line and column, from 1."""


def read_text(file: Path) -> str:
    """The text of `file`, its lines ended by newlines, without a byte order mark.

    Raises InputError for a file that cannot be read, is larger than `MOST_BYTES`, or is not UTF-8.
    """
    try:
        with os.fdopen(_open(file), "rb") as handle:
            data = handle.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise InputError(f"{file} is a folder, not a matrix", hint=HINT) from None
    except FileNotFoundError:
        raise InputError(f"there is no file {file}", hint=HINT) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{file} cannot be read: {reason}", hint=HINT) from error
    if len(data) > MOST_BYTES:
        message = f"{file} is larger than {MOST_BYTES // 1024} KiB"
        raise InputError(message, hint="give an axis several values in place of repeated entries")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = end_of(data[: error.start].decode("utf-8-sig"))
        message = f"{file}:{line}:{column}: the file is not UTF-8 (byte 0x{data[error.start]:02x})"
        raise InputError(message, hint="save the file as UTF-8") from None
    return re.sub(r"\r\n?", "\n", text)


def end_of(text: str) -> Position:
    """The position of the next character after `text`."""
    return text.count("\n") + 1, len(text) - text.rfind("\n")


def _open(file: Path) -> int:
    # Opening a named pipe would wait for a writer; without one, the pipe counts as empty.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return descriptor
