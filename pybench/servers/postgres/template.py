"""A new data folder: initdb runs once for each version of the server, and later folders are copies.

initdb takes 0.7 s, a copy 0.1 s. A template holds no password, and is closed to other users.
"""

from __future__ import annotations

import hashlib
import os
import signal
from dataclasses import replace
from pathlib import Path

from pybench.errors import ServerError
from pybench.servers.folder import ServerFolder
from pybench.servers.keeper import POSTGRES_DATA
from pybench.servers.postgres import cache
from pybench.servers.postgres.account import Account, require_name
from pybench.servers.postgres.binaries import beside
from pybench.servers.postgres.config import FILES_WANTED, ROLE
from pybench.servers.programs import Binary
from pybench.servers.supervised import Launch, Supervised

INITDB_S = 120.0
"""Time for initdb on a very busy machine."""

_SHAPE = 1
"""The version of the arguments of initdb below: it changes with them."""


def make_data(binary: Binary, runs_as: Account | None, target: Path) -> None:
    """Make `target` the data folder of a new server, which belongs to `runs_as`. Raises ServerError, OSError."""
    owner = None if runs_as is None else runs_as.numbers
    kept = cache.find(_key(binary))
    if kept is not None:
        cache.copy_tree(kept / POSTGRES_DATA, target, owner=owner)
        return
    if runs_as is None:
        require_name()
    made = _initdb(binary, runs_as)
    try:
        made.await_success(INITDB_S)
        data = made.folder / POSTGRES_DATA
        try:
            kept = cache.keep(_key(binary), {POSTGRES_DATA: data}) / POSTGRES_DATA
        except ServerError:
            kept = data  # Without a cache every start takes the time of initdb.
        cache.copy_tree(kept, target, owner=owner)
    finally:
        made.stop()


def _key(binary: Binary) -> str:
    told = binary.path.stat()
    identity = f"{_SHAPE} {binary.source} {binary.version} {told.st_size} {os.uname().machine}"
    return f"data-{binary.version}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"


def _initdb(binary: Binary, runs_as: Account | None) -> Supervised:
    """Initdb under a keeper of its own, in a folder that is removed when it is stopped."""
    initdb = beside(binary, "initdb")
    folder = ServerFolder.create(socket=POSTGRES_DATA, group=None if runs_as is None else runs_as.group)
    try:
        data = folder.path / POSTGRES_DATA
        data.mkdir(mode=0o700)
        if runs_as is not None:
            os.chown(data, *runs_as.numbers)
        launch = Launch(
            [
                *(str(initdb), "--pgdata", str(data), "--username", ROLE, "--auth", "trust"),
                *("--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"),
            ],
            files=FILES_WANTED,
            user=None if runs_as is None else runs_as.numbers,
            endings=(signal.SIGINT,),
        )
        return Supervised(replace(binary, path=initdb), folder, launch)
    except BaseException:
        folder.remove()
        raise
