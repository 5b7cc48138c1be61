"""A real Postgres for the core, of PATH, in a folder of its own; as another user when we are root, whom it refuses."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

USER = "pybench"
NOBODY = 65534
TABLE = '"test"."locks"'


@dataclass
class Postgres:
    """A server that runs. Its Unix socket asks for no password, its port asks for one by SCRAM-SHA-256."""

    folder: Path
    port: int
    password: str = field(repr=False)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    def core_spec(self, *, tcp: bool = False, **fields: object) -> dict[str, Any]:
        """As the core takes it; any field can be said anew."""
        spec: dict[str, Any] = {
            "kind": "postgres",
            "unix": None if tcp else str(self.folder / f".s.PGSQL.{self.port}"),
            "host": "127.0.0.1" if tcp else None,
            "port": self.port,
            "user": USER,
            "password": self.password if tcp else None,
            "database": "postgres",
            "table": TABLE,
            "settings": {},
            "prepare": "named",
        }
        return spec | fields

    def connect(self) -> psycopg.Connection[Any]:
        """A session of its own, each statement a transaction."""
        return psycopg.connect(host=str(self.folder), port=self.port, user=USER, dbname="postgres", autocommit=True)

    def make_table(self, keys: int) -> None:
        """The table of locks, new, with a row for each key."""
        with self.connect() as session:
            session.execute("SET client_min_messages = error")
            session.execute("DROP SCHEMA IF EXISTS test CASCADE")
            session.execute("CREATE SCHEMA test")
            session.execute(
                f"CREATE TABLE {TABLE} (id int PRIMARY KEY, fence bigint DEFAULT 0, version bigint DEFAULT 0,"
                " value bigint DEFAULT 0, owner uuid, expires_at timestamptz DEFAULT '-infinity')"
            )
            session.execute(f"INSERT INTO {TABLE} (id) SELECT generate_series(0, {keys - 1})")

    def stop(self, how: str = "fast") -> None:
        """`smart`, `fast` or `immediate`."""
        _run("pg_ctl", "stop", "-w", "-m", how, "-D", str(self.folder))

    def start(self) -> None:
        """Until it takes sessions."""
        _run("pg_ctl", "start", "-w", "-D", str(self.folder), "-l", str(self.folder / "log"))


@contextlib.contextmanager
def running(**settings: object) -> Iterator[Postgres]:
    """A server with these settings, e.g. `max_connections=20`."""
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        pytest.skip("no Postgres on PATH")
    with tempfile.TemporaryDirectory(prefix="pybench-pg-") as place:
        folder = Path(place) / "data"
        folder.mkdir(mode=0o700)
        if os.getuid() == 0:
            for passed in (folder.parent, folder.parent.parent):
                passed.chmod(passed.stat().st_mode | 0o011)
            os.chown(folder, NOBODY, NOBODY)
        password = secrets.token_hex(16)
        _run("initdb", "-D", str(folder), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        server = Postgres(folder, _free_port(), password)
        (folder / "pg_hba.conf").write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        wanted = {
            "listen_addresses": "127.0.0.1",
            "port": server.port,
            "unix_socket_directories": str(folder),
            "shared_buffers": "32MB",
            "fsync": "off",
            **settings,
        }
        with (folder / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in wanted.items())
        server.start()
        try:
            with server.connect() as session:
                session.execute(f"ALTER ROLE {USER} PASSWORD '{password}'")
            yield server
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                server.stop("immediate")


def _run(*command: str) -> None:
    as_another = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.getuid() == 0 else []
    # Its output goes to a file: a server keeps the pipe of whoever started it open.
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run([*as_another, *command], cwd="/", stdout=said, stderr=said, check=False)
        if done.returncode:
            said.seek(0)
            raise subprocess.CalledProcessError(done.returncode, command, said.read())


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
