"""The private folder of one server that pybench started: its socket, configuration, log, and a lock of its owner.

Promises: only this user and the user of the server can enter the folder; its path leaves room for a socket. The kernel
releases the lock when the last process that holds it dies: the lock, and not a pid, tells whether an owner lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pybench.errors import ServerError
from pybench.notation import is_text
from pybench.servers.processes import ProcessId

PREFIX = "pybench-srv-"
SOCKET = "s.sock"
LOG = "server.log"
CONFIG = "server.conf"
LOCK = "owner.lock"
SERVER = "server.json"

SOCKET_PATH_MAX = 107
"""Bytes that Linux takes."""

YOUNG_S = 60.0
"""A folder in which its owner has written nothing may be this old and still be in the making."""

_NAME = re.compile(re.escape(PREFIX) + r"[A-Za-z0-9_]{8}")


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """A folder that this process made and owns."""

    path: Path
    lock: int
    """An open file descriptor; the folder is owned for as long as any process has it open."""

    @classmethod
    def create(cls, *, socket: str = SOCKET, group: int | None = None) -> ServerFolder:
        """Make a new folder in `place_for_sockets`. Raises ServerError.

        `socket` is the server's, relative to the folder. `group` may pass through the folder to files of its own.
        """
        place = place_for_sockets(socket, for_others=group is not None)
        try:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            if group is not None:
                os.chown(path, -1, group)
                path.chmod(0o710)
            lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Written under the lock: an empty file tells a reaper that the lock is about to be taken.
            os.write(lock, f"{os.getpid()}\n".encode())
        except OSError as error:
            raise ServerError(
                f"cannot make a folder for a server in {place}: {error.strerror}",
                hint="set TMPDIR to a local folder that can be written",
            ) from error
        return cls(path, lock)

    def note_server(self, server: ProcessId) -> None:
        """Write down the process of the server, which has to be ended if this process and the keeper are killed."""
        new = self.path / f"{SERVER}.new"
        new.write_text(json.dumps({"pid": server.pid, "started": server.started}), encoding="utf-8")
        new.replace(self.path / SERVER)

    def remove(self) -> None:
        """Remove the folder with its files, and release the lock. The keeper may have removed it before."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def place_for_sockets(socket: str = SOCKET, *, for_others: bool = False) -> Path:
    """The first of `places` where the path of a socket is short enough. Raises ServerError.

    `for_others`: only one that other users can pass through.
    """
    open_to_us = [place for place in places() if not for_others or _is_passable(place)]
    for place in open_to_us:
        if _socket_fits(place, socket):
            return place
    if not open_to_us:
        raise ServerError(
            f"no other user can reach the temporary folder {places()[0]}, and root cannot run this server",
            hint="set TMPDIR to a folder that all users can pass through, such as /tmp",
        )
    longest = SOCKET_PATH_MAX - len(f"/{PREFIX}12345678/{socket}")
    raise ServerError(
        f"the path of the temporary folder is too long for a Unix socket: {places()[0]}",
        hint=f"set TMPDIR to a folder with a path of at most {longest} bytes",
    )


def places() -> list[Path]:
    """Where such folders are made: the folder for temporary files, and /tmp where its path is too long."""
    try:
        asked = [tempfile.gettempdir()]
    except FileNotFoundError:
        asked = []  # No folder can be written to. That is an error only once a server is to be started.
    # The path goes into the configuration of the server, which is UTF-8 text.
    return list(dict.fromkeys(Path(place).resolve() for place in (*asked, "/tmp") if is_text(place)))


def all_of_this_user() -> Iterator[Path]:
    """Every server folder of this user, with or without an owner."""
    for place in places():
        try:
            names = sorted(entry.name for entry in os.scandir(place) if _NAME.fullmatch(entry.name))
        except OSError:
            continue
        for name in names:
            path = place / name
            try:
                status = path.lstat()
            except OSError:
                continue  # Somebody removed it meanwhile.
            if status.st_uid == os.geteuid() and path.is_dir() and not path.is_symlink():
                yield path


def is_abandoned(path: Path) -> bool:
    """Whether no process owns the folder any more."""
    try:
        lock = os.open(path / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return _is_old(path) and not any(path.iterdir())
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return bool(os.read(lock, 1)) or _is_old(path)
    except OSError:
        return False
    finally:
        os.close(lock)


def noted_server(path: Path) -> ProcessId | None:
    """The process that `note_server` wrote down; None when no note can be read."""
    try:
        noted = json.loads((path / SERVER).read_text(encoding="utf-8"))
        return ProcessId(int(noted["pid"]), str(noted["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _socket_fits(place: Path, socket: str) -> bool:
    return len(os.fsencode(place / f"{PREFIX}12345678" / socket)) <= SOCKET_PATH_MAX


def _is_passable(place: Path) -> bool:
    try:
        return all(folder.stat().st_mode & stat.S_IXOTH for folder in (place, *place.parents))
    except OSError:
        return False


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > YOUNG_S
    except OSError:
        return False
