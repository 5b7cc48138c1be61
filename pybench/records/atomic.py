"""Atomic writes of files, and errors of reading and writing in plain words."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pybench.errors import RecordError

TEMPORARY_SUFFIX = ".tmp"

SHOWN_PATH = 160
"""How many characters of a path a message quotes."""


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` by way of a temporary file: a reader sees the old file or the new one, never a mixture.

    Raises OSError, and leaves the old file in place.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`, which takes its place at the end. An error leaves the old file in place."""
    temporary = _temporary(path)
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _temporary(path: Path) -> Path:
    # The name contains the process id, so that two processes do not write to the same temporary file.
    return path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")


def absolute(path: str | Path) -> Path:
    """`path` as an absolute path. Raises RecordError for a relative path whose working folder was removed."""
    try:
        return Path(path).absolute()
    except FileNotFoundError:
        raise RecordError(
            f"{shortened(Path(path))} cannot be found: the folder that pybench was called in was removed",
            hint="cd to a folder that exists, or pass an absolute path",
        ) from None


def write_named(path: Path, data: bytes) -> None:
    """Write `data` to the file that a user named, with the folders above it. Raises RecordError."""
    with _explained_file(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)


def require_writable(path: Path) -> None:
    """Make the folders above the file that a user named. Raises RecordError if `write_named` would fail.

    For before a measurement or another long work: a wrong name must not cost the minutes that it takes.
    """
    with _explained_file(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        temporary = _temporary(path)
        temporary.touch()
        temporary.unlink()


@contextmanager
def _explained_file(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordError(f"{shortened(path)} cannot be written: {reason}", hint="name another file") from error


def remove_temporaries(folder: Path) -> None:
    """Remove the temporary files of killed writers from `folder`."""
    for leftover in folder.glob(f".*{TEMPORARY_SUFFIX}"):
        leftover.unlink(missing_ok=True)


@contextmanager
def explained(folder: Path, *, begun: bool = True) -> Iterator[None]:
    """Turn an OSError about `folder` or a file in it into a RecordError with a hint.

    `begun` says that the folder is already a run folder, and is not just being created.
    """
    try:
        yield
    except OSError as error:
        raise _explanation(error, folder, begun=begun) from error


def _explanation(error: OSError, folder: Path, *, begun: bool) -> RecordError:
    where = f"the run folder {shortened(folder)}"
    elsewhere = "choose another folder with --out"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return RecordError(
            f"no space is left for {where}",
            hint="free some space; the trials saved so far are intact" if begun else f"free some space, or {elsewhere}",
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return RecordError(
            f"{where} cannot be written or read: {error.strerror}",
            hint="check the permissions; the trials saved so far are intact"
            if begun
            else "choose a folder that you own with --out",
        )
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return RecordError(f"{where} cannot be created: a file blocks this path", hint=elsewhere)
    if error.errno == errno.ENAMETOOLONG:
        return RecordError(f"{where} cannot be created: its path is too long", hint=elsewhere)
    if error.errno == errno.ENOENT and not begun:
        return RecordError(f"{where} cannot be created", hint=elsewhere)
    if error.errno == errno.ENOENT:
        return RecordError(
            f"{where}, or a file in it, no longer exists",
            hint="if it was moved or removed during the run, start a new run in a new folder",
        )
    return RecordError(f"{where} cannot be used: {error.strerror or error}", hint=elsewhere)


def shortened(path: Path) -> str:
    """`path` for a message, without its middle where it is too long."""
    text = str(path)
    return text if len(text) <= SHOWN_PATH else f"{text[: SHOWN_PATH // 2]}...{text[-SHOWN_PATH // 2 :]}"
