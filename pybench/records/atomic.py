"""Writing a file whole or not at all, and saying in the user's words what kept it from being written or read."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pybench.errors import RecordError

TEMPORARY_SUFFIX = ".tmp"

SHOWN_PATH = 160
"""Signs of a path that a message quotes."""


def write_atomically(path: Path, data: bytes) -> None:
    """Put `data` at `path`, beside which it is written first: a reader sees the old file or the new one, no mixture.

    Raises OSError; what was at `path` then still is.
    """
    # The process in the name: two that write the same file must not write into each other.
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def absolute(path: str | Path) -> Path:
    """`path` wherever the process goes. Raises RecordError where it begins in a working folder that was removed."""
    try:
        return Path(path).absolute()
    except FileNotFoundError:
        raise RecordError(
            f"{shortened(Path(path))} cannot be found: the folder that pybench was called in was removed",
            hint="cd to a folder that exists, or name one from / on",
        ) from None


def remove_temporaries(folder: Path) -> None:
    """Remove what a killed writer left in `folder`."""
    for leftover in folder.glob(f".*{TEMPORARY_SUFFIX}"):
        leftover.unlink(missing_ok=True)


@contextmanager
def explained(folder: Path, *, begun: bool = True) -> Iterator[None]:
    """Turn an OSError about `folder` or a file of it into a RecordError that says what to do.

    `begun`: it is a run folder already, and not about to become one.
    """
    try:
        yield
    except OSError as error:
        raise _explanation(error, folder, begun=begun) from error


def _explanation(error: OSError, folder: Path, *, begun: bool) -> RecordError:
    where = f"the run folder {shortened(folder)}"
    elsewhere = "name another folder with --out"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return RecordError(
            f"no space is left for {where}",
            hint="make room; the trials that were saved before are whole" if begun else f"make room, or {elsewhere}",
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return RecordError(
            f"{where} cannot be written or read: {error.strerror}",
            hint="see that you may write there; the trials that were saved before are whole"
            if begun
            else "name a folder that you own with --out",
        )
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return RecordError(f"{where} cannot be there: a file is in the way", hint=elsewhere)
    if error.errno == errno.ENAMETOOLONG:
        return RecordError(f"{where} cannot be there: its path is too long", hint=elsewhere)
    if error.errno == errno.ENOENT and not begun:
        return RecordError(f"{where} cannot be made there", hint=elsewhere)
    if error.errno == errno.ENOENT:
        return RecordError(
            f"{where}, or a file of it, is gone",
            hint="was it moved or removed while the run was going on? A new run needs a new folder",
        )
    return RecordError(f"{where} cannot be used: {error.strerror or error}", hint=elsewhere)


def shortened(path: Path) -> str:
    """`path` for people, its middle left out where it is longer than a message should be."""
    text = str(path)
    return text if len(text) <= SHOWN_PATH else f"{text[: SHOWN_PATH // 2]}...{text[-SHOWN_PATH // 2 :]}"
