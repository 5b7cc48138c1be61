"""A cache of data folders and programs of Postgres, which take time to make and are the same for every run.

Promises: only this user can write to it, and an incomplete entry is not found. Symbolic links are neither followed nor
copied: a source may be a folder of another user.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pybench.errors import ServerError

ENVIRONMENT: Final = "PYBENCH_CACHE"
"""The environment variable that names another folder."""

COMPLETE = "complete.json"
CONTENT = "content"
_NEW = "new-"
STALE_S = 3600.0


def folder() -> Path:
    """The folder, made where it is not there yet. Raises ServerError when it cannot be used."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        path = Path(named).resolve()
    elif os.geteuid() == 0:
        # Not below the home folder of root, where the user that a server is run as sees nothing.
        path = Path("/var/cache/pybench")
    else:
        path = Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache", "pybench")
    try:
        if not path.exists():
            path.mkdir(parents=True)
            path.chmod(0o755)
        _must_be_ours(path)
    except OSError as error:
        raise ServerError(
            f"cannot use {path} to keep server programs and templates: {error.strerror}",
            hint=f"set {ENVIRONMENT} to a folder of this user's",
        ) from error
    return path


def _home() -> Path:
    """The folder of this user. Raises ServerError where there is none."""
    try:
        return Path.home()
    except RuntimeError:
        raise ServerError(
            "this user has no home folder to keep server programs and templates in",
            hint=f"set {ENVIRONMENT} to a folder of this user's",
        ) from None


def find(key: str) -> Path | None:
    """The entry `key`; None when there is none, or it is incomplete."""
    try:
        path = folder() / key
        _must_be_ours(path)
        told = json.loads((path / COMPLETE).read_text(encoding="utf-8"))
    except (ServerError, OSError, ValueError):
        return None
    return path / CONTENT if told == _sizes(path / CONTENT) else None


def keep(key: str, sources: dict[str, Path]) -> Path:
    """Copy each folder of `sources` under its name into the entry `key`. Raises ServerError.

    An entry that another process has finished meanwhile stays.
    """
    place = folder()
    _remove_stale(place)
    try:
        new = Path(tempfile.mkdtemp(prefix=_NEW, dir=place))
    except OSError as error:
        raise ServerError(
            f"cannot write into {place}: {error.strerror}", hint=f"set {ENVIRONMENT} to a folder of this user's"
        ) from error
    try:
        for name, source in sources.items():
            _open_folders(new / CONTENT / name, below=place)
            copy_tree(source, new / CONTENT / name)
        (new / COMPLETE).write_text(json.dumps(_sizes(new / CONTENT)), encoding="utf-8")
        if find(key) is None:
            shutil.rmtree(place / key, ignore_errors=True)
            with contextlib.suppress(OSError):  # Another process was faster.
                new.rename(place / key)
    except OSError as error:
        raise ServerError(f"cannot write into {place}: {error.strerror}", hint="free some space there") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    found = find(key)
    if found is None:
        raise ServerError(f"what was just kept in {place / key} is gone", hint="try again")
    return found


def copy_tree(source: Path, target: Path, *, owner: tuple[int, int] | None = None) -> None:
    """Copy folders and plain files with their modes, for `owner` (numbers of user and group). Raises OSError.

    It works on open folders and not on paths, which another user could replace in between.
    """
    folders: list[Path] = []
    for name, _, files, here in os.fwalk(source, follow_symlinks=False):
        made = target / Path(name).relative_to(source)
        made.mkdir(mode=0o700)
        made.chmod(stat.S_IMODE(os.fstat(here).st_mode))
        folders.append(made)
        for file in files:
            _copy_file(file, here, made / file, owner)
    if owner is not None:
        # Last, so that the new owner cannot change the copy while it is made.
        for made in reversed(folders):
            os.chown(made, *owner)


def _copy_file(name: str, folder: int, target: Path, owner: tuple[int, int] | None) -> None:
    try:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return
        raise
    try:
        told = os.fstat(source)
        if not stat.S_ISREG(told.st_mode):
            return
        made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            left = told.st_size
            while left > 0 and (sent := os.sendfile(made, source, None, left)):
                left -= sent
            os.fchmod(made, stat.S_IMODE(told.st_mode))
            if owner is not None:
                os.fchown(made, *owner)
        finally:
            os.close(made)
    finally:
        os.close(source)


def _open_folders(path: Path, *, below: Path) -> None:
    """Make the folders that lead to `path`, and let all users pass through them, whatever our umask is."""
    for folder in reversed([parent for parent in path.parents if below in parent.parents]):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def _must_be_ours(path: Path) -> None:
    told = path.lstat()
    if not stat.S_ISDIR(told.st_mode) or told.st_uid != os.geteuid() or told.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(1, "it is not a folder that this user alone can write")


def _sizes(folder: Path) -> dict[str, int]:
    """How many files and bytes: after a crash a machine may have names of files without their contents."""
    sizes = list(_file_sizes(folder))
    return {"files": len(sizes), "bytes": sum(sizes)}


def _file_sizes(folder: Path) -> Iterator[int]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _file_sizes(Path(entry.path))
        else:
            yield entry.stat(follow_symlinks=False).st_size


def _remove_stale(place: Path) -> None:
    """Remove entries that a killed process left unfinished."""
    for path in place.glob(f"{_NEW}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_S:
                shutil.rmtree(path, ignore_errors=True)
