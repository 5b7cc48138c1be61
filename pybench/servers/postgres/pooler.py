"""A PgBouncer in transaction mode before a Postgres that pybench started: it lends a session for each transaction.

Promises: as `supervised`; the pooler runs as the user of the database, because it refuses root, too, and listens on a
Unix socket in a private folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg

from pybench.errors import ServerError
from pybench.servers.folder import ServerFolder
from pybench.servers.postgres import account
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.servers.programs import Binary
from pybench.servers.supervised import Launch, Supervised, launched

PROGRAM = "pgbouncer"
PORT = 6432
SESSIONS = 4
"""Sessions of the pooler with the server, for all of its clients."""
FILES_WANTED = 1_024
LOOK_S = 1
"""Time for one connection to a pooler that starts, in seconds."""
_OWN = "pool"
"""The folder of its socket and settings, which belongs to the user that runs it."""

_CONFIG = """
[databases]
* = host={data} port={port}
[pgbouncer]
listen_addr =
listen_port = {own_port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
pidfile =
"""


def find() -> Path:
    """The program. Raises ServerError where there is none."""
    # Debian installs it where only root looks.
    program = shutil.which(PROGRAM, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise ServerError("there is no pgbouncer on this machine", hint="apt install pgbouncer")
    return Path(program)


class SupervisedPooler(Supervised):
    """A pooler that `pooler` started."""

    def __init__(self, binary: Binary, endpoint: PostgresEndpoint, folder: ServerFolder, launch: Launch) -> None:
        super().__init__(binary, folder, launch)
        self.endpoint = endpoint

    def wait_until_ready(self) -> PostgresEndpoint:
        """Wait until it lends a session. Raises ServerError with the end of its log when it does not."""
        return self.await_ready(self._look)

    def _look(self) -> PostgresEndpoint | None:
        where = self.endpoint
        try:
            psycopg.connect(
                host=where.folder,
                port=where.port,
                user=where.user,
                dbname=where.database,
                connect_timeout=LOOK_S,
            ).close()
        except psycopg.OperationalError:
            return None
        return where


@contextlib.contextmanager
def pooler(server: PostgresEndpoint, *, sessions: int = SESSIONS) -> Iterator[PostgresEndpoint]:
    """A pooler of the server at this Unix socket, which asks for no password; yields where it listens.

    Raises ServerError.
    """
    binary = Binary(find(), PROGRAM, "", f"path {PROGRAM}")
    supervised, endpoint = launched(lambda: _launch(binary, server, sessions), SupervisedPooler.wait_until_ready)
    try:
        yield endpoint
    finally:
        supervised.stop()


def _launch(binary: Binary, server: PostgresEndpoint, sessions: int) -> SupervisedPooler:
    runs_as = account.account()
    folder = ServerFolder.create(socket=f"{_OWN}/.s.PGSQL.{PORT}", group=None if runs_as is None else runs_as.group)
    try:
        own = folder.path / _OWN
        own.mkdir(mode=0o700)
        values = {"data": server.folder, "port": server.port, "own_port": PORT, "folder": own, "sessions": sessions}
        (own / "pgbouncer.ini").write_text(_CONFIG.format(**values), encoding="utf-8")
        (own / "users").write_text(f'"{server.user}" ""\n', encoding="utf-8")
        if runs_as is not None:
            for path in (own, own / "pgbouncer.ini", own / "users"):
                os.chown(path, *runs_as.numbers)
        launch = Launch(
            (str(binary.path), str(own / "pgbouncer.ini")),
            files=FILES_WANTED,
            user=None if runs_as is None else runs_as.numbers,
        )
        endpoint = PostgresEndpoint(server.user, server.database, folder=str(own), port=PORT)
        return SupervisedPooler(binary, endpoint, folder, launch)
    except BaseException:
        folder.remove()
        raise
