from __future__ import annotations

import os
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from pybench.errors import InputError, ServerError
from pybench.servers import Endpoint
from pybench.servers.postgres import PostgresEndpoint, binaries, config, probe, supervisor
from pybench.servers.postgres.connecting import connect
from pybench.servers.postgres.connecting import session as open_session
from pybench.servers.postgres.greeting import Greeting
from pybench.servers.postgres.supervisor import SupervisedPostgres
from pybench.servers.redis import supervisor as redis_supervisor
from pybench.servers.redis.binaries import find as find_redis

SECRET = "s3cret-w0rd"


@pytest.fixture(scope="module")
def guarded() -> Iterator[SupervisedPostgres]:
    """A server on TCP that asks for a password."""
    server, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    with connect(server.private) as session:
        session.execute(f"CREATE ROLE ann LOGIN PASSWORD '{SECRET}'")
        session.execute(f"CREATE ROLE one LOGIN PASSWORD '{SECRET}' CONNECTION LIMIT 1")
        session.execute(f"CREATE ROLE reader LOGIN PASSWORD '{SECRET}'")
        session.execute("ALTER ROLE reader SET default_transaction_read_only = on")
        session.execute(f"CREATE ROLE hasty LOGIN PASSWORD '{SECRET}'")
        session.execute("ALTER ROLE hasty SET idle_in_transaction_session_timeout = '1ms'")
        session.execute("CREATE DATABASE theirs")
        session.execute("GRANT CREATE ON DATABASE postgres TO ann, one, reader, hasty")
    yield server
    server.stop()


def url(guarded: SupervisedPostgres, user: str = f"ann:{SECRET}", database: str = "postgres") -> str:
    return f"postgresql://{user}@127.0.0.1:{guarded.endpoint.port}/{database}"


def of(address: Endpoint, password: str | None = SECRET) -> PostgresEndpoint:
    """Postgres is looked for there."""
    secret = None if password is None else SecretStr(password)
    return PostgresEndpoint("ann", "db", host=address.host, port=address.port, password=secret)


def refused(endpoint: PostgresEndpoint | str, seconds: float = 2.0) -> str:
    """The error of probing it, which must come in time, and with a hint."""
    begin = time.monotonic()
    with pytest.raises(ServerError) as caught:
        probe(endpoint, seconds=seconds)
    assert time.monotonic() - begin < seconds + 1
    assert caught.value.hint
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)
    return str(caught.value)


def test_the_right_password_lets_in(guarded: SupervisedPostgres):
    facts = probe(url(guarded))
    assert facts.peer == "127.0.0.1"
    assert not facts.superuser
    assert (facts.sessions_free, facts.limit) == (100 - 3, "max_connections")
    assert probe(url(guarded).replace("127.0.0.1", "localhost")).peer == "127.0.0.1"


def test_a_password_that_is_not_asked_for_does_no_harm(guarded: SupervisedPostgres):
    assert probe(replace(guarded.private, password=SecretStr(SECRET))).transport == "unix"


def test_no_password_and_a_wrong_one_are_told_apart(guarded: SupervisedPostgres):
    assert "asks for a password" in refused(url(guarded, "ann"))
    assert "refuses this user and password" in refused(url(guarded, "ann:wrong"))
    assert "refuses this user and password" in refused(url(guarded, f"nobody:{SECRET}"))


def test_a_database_that_is_not_there(guarded: SupervisedPostgres):
    assert "has no database 'absent'" in refused(url(guarded, database="absent"))
    assert "has no database 'absent'" in refused(replace(guarded.private, database="absent"))


def test_a_user_who_is_not_let_in_without_password(guarded: SupervisedPostgres):
    told = refused(replace(guarded.private, user="stranger"))
    assert 'does not let this user in: role "stranger" does not exist' in told


def test_it_is_known_whether_a_user_may_create_schemas(guarded: SupervisedPostgres):
    assert probe(url(guarded)).may_create
    assert not probe(url(guarded, database="theirs")).may_create


def test_a_user_who_may_only_read(guarded: SupervisedPostgres):
    told = refused(url(guarded, f"reader:{SECRET}"))
    assert "lets reader read only: default_transaction_read_only is on" in told
    assert 'ALTER ROLE "reader" SET default_transaction_read_only = off' in told


def test_a_time_limit_of_the_server_s_is_told_by_its_name(guarded: SupervisedPostgres):
    def slow() -> None:
        with open_session(PostgresEndpoint.parse(url(guarded))) as session:
            session.execute("SET statement_timeout = 1")
            session.execute("SELECT pg_sleep(1)")

    def idle() -> None:
        with open_session(PostgresEndpoint.parse(url(guarded, f"hasty:{SECRET}"))) as session:
            session.execute("BEGIN")
            select.select([session.fileno()], [], [], 5)  # The server tells us that it ends.
            session.execute("SELECT 1")

    for do, told in ((slow, "statement_timeout was over"), (idle, "idle_in_transaction_session_timeout was over")):
        with pytest.raises(ServerError, match=told) as caught:
            do()
        assert "to 0 for this user" in (caught.value.hint or "")


def test_no_session_left(guarded: SupervisedPostgres):
    taken = [psycopg.connect(url(guarded)) for _ in range(97)]
    assert "has no session left" in refused(url(guarded))
    taken += [connect(guarded.endpoint) for _ in range(3)]
    assert "has no session left" in refused(guarded.private)
    for session in taken:
        session.close()


def test_a_limit_of_the_user_counts(guarded: SupervisedPostgres):
    facts = probe(url(guarded, f"one:{SECRET}"))
    assert (facts.sessions_free, facts.limit) == (1, "CONNECTION LIMIT of the user or the database")
    with psycopg.connect(url(guarded, f"one:{SECRET}")):
        assert "has no session left" in refused(url(guarded, f"one:{SECRET}"))


def test_the_environment_of_libpq_changes_nothing(guarded: SupervisedPostgres, monkeypatch, tmp_path):
    for name, value in {
        "PGHOST": "nowhere.invalid",
        "PGHOSTADDR": "192.0.2.1",
        "PGPORT": "1",
        "PGUSER": "somebody",
        "PGDATABASE": "absent",
        "PGPASSWORD": SECRET,
        "PGSSLMODE": "verify-full",
        "PGOPTIONS": "-c nonsense=1",
        "PGTARGETSESSIONATTRS": "standby",
    }.items():
        monkeypatch.setenv(name, value)
    assert probe(url(guarded)).version
    assert probe(guarded.private).transport == "unix"
    assert "asks for a password" in refused(url(guarded, "ann"))
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:*:{SECRET}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    with pytest.raises(ServerError, match="password"):
        connect(PostgresEndpoint.parse(url(guarded, "ann")))


def test_probing_changes_nothing(guarded: SupervisedPostgres):
    with connect(guarded.private) as session:
        count = "SELECT count(*) FROM pg_class, pg_namespace"
        before = session.execute(count).fetchone()
        probe(guarded.endpoint)
        assert session.execute(count).fetchone() == before


def test_a_server_that_shuts_down():
    server, _ = supervisor.start(binaries.find("auto"))
    with connect(server.endpoint) as session:
        session.execute("SELECT 1")
        os.kill(server.pid, signal.SIGTERM)  # It waits for its clients, and takes no others.
        deadline = time.monotonic() + 5
        told = ""
        while "is starting up, recovering or shutting down" not in told and time.monotonic() < deadline:
            try:
                probe(server.endpoint)
            except ServerError as error:
                told = str(error)
    server.stop()
    assert "is starting up, recovering or shutting down" in told


def test_a_standby(monkeypatch):
    write = config.write

    def as_standby(data: Path, *, sessions: int, port: int | None) -> None:
        write(data, sessions=sessions, port=port)
        (data / "standby.signal").touch()

    monkeypatch.setattr(config, "write", as_standby)
    monkeypatch.setattr(supervisor, "probe", lambda endpoint, seconds: None)
    server, _ = supervisor.start(binaries.find("auto"))
    told = refused(server.endpoint)
    server.stop()
    assert "is a standby: it takes no locks" in told


def test_a_server_that_hangs():
    server, _ = supervisor.start(binaries.find("auto"))
    session = connect(server.endpoint)
    os.kill(server.pid, signal.SIGSTOP)
    assert "accepts connections but does not answer within 400 ms" in refused(server.endpoint, 0.4)
    session.close()
    server.stop()


def test_a_closed_port_and_an_absent_socket(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as was_open:
        port = was_open.getsockname()[1]
    assert "nothing listens" in refused(f"postgresql://ann:{SECRET}@127.0.0.1:{port}/db")
    assert "no such socket" in refused(f"postgresql://ann:{SECRET}@/db?host={tmp_path}")


def test_a_name_that_does_not_exist():
    assert "no such host" in refused("postgresql://ann@no-such-host.invalid/db")


def test_a_port_that_never_answers(listener):
    assert "does not answer within 400 ms" in refused(of(listener(lambda connection: time.sleep(0.6))), 0.4)


def test_a_web_server_and_a_redis(web_server: Endpoint):
    assert "is a web server, not Postgres" in refused(of(web_server))
    server, _ = redis_supervisor.start(find_redis("auto"), transport="tcp")
    told = refused(of(server.endpoint))
    told_without = refused(of(server.endpoint, None))
    server.stop()
    assert "does not speak the Postgres protocol" in told
    assert 'does not speak the Postgres protocol: "-ERR' in told_without


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def error(code: str, text: str) -> bytes:
    return message(b"E", f"SFATAL\0VFATAL\0C{code}\0M{text}\0\0".encode())


def says(text: bytes) -> Callable[[socket.socket], None]:
    def play(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(text)
        connection.recv(4096)

    return play


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (error("57P03", "das Datenbanksystem startet"), "is starting up"),
        (error("53300", "tut mir leid"), "has no session left"),
        (error("28000", "no pg_hba.conf entry for host"), "does not let this user in: no pg_hba.conf entry"),
        (error("XX000", f"odd {SECRET}"), "answers with an error: odd ***"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak"),
        (b"\x15\x03\x03\x00\x02\x02\x16", "asks for TLS"),
        (b"R\xff\xff\xff\xff", "does not speak"),
        (b"R\x00\x00\x00\x01", "does not speak"),
        (b"R\x00\x00", "only part of a reply"),
    ],
)
def test_what_is_no_usable_postgres_is_named(listener, text: bytes, told: str):
    assert told in refused(of(listener(says(text))), 0.4)


@pytest.mark.parametrize(
    ("way", "password", "told"),
    [
        (7, SECRET, "asks for a log-in other than by password"),
        (99, SECRET, "asks for a log-in other than by password"),
        (5, None, "asks for a password"),
    ],
)
def test_a_log_in_that_we_cannot_do_is_named(way: int, password: str | None, told: str):
    def ask_twice() -> None:
        for _ in range(2):  # The greeting and psycopg.
            connection, _ = listening.accept()
            with connection:
                says(message(b"R", struct.pack("!I", way) + bytes(4)))(connection)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=ask_twice)
        thread.start()
        port = listening.getsockname()[1]
        assert told in refused(of(Endpoint(host="127.0.0.1", port=port), password))
        thread.join()


def test_a_server_that_hangs_up(listener):
    assert "closed the connection without an answer" in refused(of(listener(lambda connection: connection.recv(1))))


def test_a_server_that_hangs_up_once_it_has_let_in_has_let_in(tmp_path):
    """As Postgres does that was slow: it reads the line's end that a web server was waiting for after it has let in."""
    endpoint = PostgresEndpoint.parse(f"postgresql://ann@/db?host={tmp_path}")

    def let_in_and_hear_no_more(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(4096)
            connection.shutdown(socket.SHUT_RD)
            connection.sendall(message(b"R", struct.pack("!I", 0)) + message(b"Z", b"I"))
            heard.wait(5)

    heard = threading.Event()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(endpoint.unix))
        listening.listen()
        thread = threading.Thread(target=let_in_and_hear_no_more, args=[listening])
        thread.start()
        with Greeting(endpoint, seconds=2) as greeting:
            greeting.greet()
        heard.set()
        thread.join()


def test_a_log_in_that_never_ends(listener):
    asks = says(message(b"R", struct.pack("!I", 10) + b"SCRAM-SHA-256\0\0"))
    assert "accepts connections but does not complete the log-in within" in refused(of(listener(asks)), 0.4)


def test_a_url_is_read_before_anything_is_asked():
    with pytest.raises(InputError, match="TLS comes in a later step"):
        probe("postgresql://localhost/db?sslmode=require")


def test_the_settings_that_a_resumed_run_compares_are_read(server):
    settings = probe(server.endpoint).settings
    assert {"wal_sync_method", "commit_delay", "log_statement", "jit", "default_transaction_isolation"} <= set(settings)
    newer = int(probe(server.endpoint).version.split(".")[0]) >= 17
    assert ("transaction_timeout_ms" in settings) is newer
