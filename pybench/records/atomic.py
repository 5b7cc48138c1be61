"""Writing a file whole or not at all, and saying in the user's words what kept it from being written or read."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pybench.errors import RecordError

TEMPORARY_SUFFIX = ".tmp"


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


def remove_temporaries(folder: Path) -> None:
    """Remove what a killed writer left in `folder`."""
    for leftover in folder.glob(f".*{TEMPORARY_SUFFIX}"):
        leftover.unlink(missing_ok=True)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn an OSError about `folder` or a file of it into a RecordError that says what to do."""
    try:
        yield
    except OSError as error:
        raise _explanation(error, folder) from error


def _explanation(error: OSError, folder: Path) -> RecordError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return RecordError(
            f"no space is left for the run folder {folder}",
            hint=f"make room, then: pybench run --resume {folder} (trials saved before are whole)",
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return RecordError(
            f"the run folder {folder} cannot be written or read: {error.strerror}",
            hint="name a folder that you own with --out",
        )
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return RecordError(
            f"the run folder {folder} cannot be there: a file is in the way", hint="name another folder with --out"
        )
    if error.errno == errno.ENOENT:
        return RecordError(
            f"the run folder {folder}, or a file of it, is gone",
            hint="was it moved or removed while the run was going on? A new run needs a new folder",
        )
    return RecordError(
        f"the run folder {folder} cannot be used: {error.strerror or error}", hint="name another folder with --out"
    )
