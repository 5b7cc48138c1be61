"""A PgBouncer in transaction mode before a Postgres of ours, as Debian packages it: in a folder of its own, as the user
whom Postgres runs as, for it refuses root, too."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pybench.servers.postgres import account
from pybench.servers.postgres.endpoint import PostgresEndpoint

PORT = 6432
SESSIONS = 4
"""That the pooler has with the server, for all of its clients."""
STARTS_WITHIN_S = 20.0

CONFIG = """
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
logfile = {folder}/log
pidfile =
"""


@contextlib.contextmanager
def pooler(server: PostgresEndpoint) -> Iterator[PostgresEndpoint]:
    """Of the server on this Unix socket: where the pooler listens."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("no PgBouncer")
    runs_as = account.account()
    identity = {} if runs_as is None else {"user": runs_as.user, "group": runs_as.group, "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="pb-") as place:
        folder = Path(place)
        values = {"data": server.folder, "port": server.port, "own_port": PORT, "folder": folder, "sessions": SESSIONS}
        (folder / "pgbouncer.ini").write_text(CONFIG.format(**values), encoding="utf-8")
        (folder / "users").write_text(f'"{server.user}" ""\n', encoding="utf-8")
        if runs_as is not None:
            os.chown(folder, runs_as.user, runs_as.group)
        command = [program, "-q", str(folder / "pgbouncer.ini")]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **identity)
        try:
            _await(folder, server, process)
            yield PostgresEndpoint(server.user, server.database, folder=str(folder), port=PORT)
        finally:
            process.terminate()
            process.wait(STARTS_WITHIN_S)


def _await(folder: Path, server: PostgresEndpoint, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    address = {"host": str(folder), "port": PORT, "user": server.user, "dbname": server.database}
    while True:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(**address):
            return
        log = folder / "log"
        said = log.read_text(encoding="utf-8") if log.exists() else "nothing"
        assert process.poll() is None and time.monotonic() < deadline, f"no PgBouncer answers; it said {said}"  # noqa: PT018
        time.sleep(0.02)
