"""Machines and servers that lack what others have, or say strange things: a clear answer, and no traceback."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pybench.cli.output import LEAST_COLUMNS, data_console, stderr_console, width
from pybench.errors import InputError, ServerError
from pybench.matrix import matrix_from_options
from pybench.planning.limits import limits_of
from pybench.servers import Server, clear_leftovers
from pybench.servers import folder as folders
from pybench.servers.postgres import PostgresEndpoint, cache
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.probe import probe
from tests.redis_client import connect


def test_a_machine_without_a_temporary_folder_needs_none_for_a_given_server(monkeypatch: pytest.MonkeyPatch):
    def none_usable() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none_usable)
    assert folders.places() == [Path("/tmp").resolve()]
    assert isinstance(clear_leftovers(), list)


def test_a_temporary_folder_whose_name_is_no_text_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    assert folders.places() == [Path("/tmp").resolve()]


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(Path, "home", no_home)
    for name in ("XDG_CACHE_HOME", cache.ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ServerError) as caught:
        cache.folder()
    assert caught.value.hint == f"set {cache.ENVIRONMENT} to a folder of this user's"
    assert cache.find("anything") is None


def test_a_user_without_a_name_has_to_give_one(monkeypatch: pytest.MonkeyPatch):
    import getpass

    def no_name() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", no_name)
    with pytest.raises(InputError, match="the address names no user"):
        PostgresEndpoint.parse("postgresql://h/db")
    assert PostgresEndpoint.parse("postgresql://ann@h/db").user == "ann"


@pytest.mark.parametrize(("columns", "wide"), [("0", 80), ("1", LEAST_COLUMNS), ("120", 120)])
def test_a_terminal_of_no_width_is_written_to_as_one_of_80_columns(
    monkeypatch: pytest.MonkeyPatch, columns: str, wide: int
):
    monkeypatch.setenv("COLUMNS", columns)
    assert (data_console().width, stderr_console().width) == (wide, wide)
    assert width() >= LEAST_COLUMNS


def test_a_host_that_the_resolver_breaks_off_at_is_no_host():
    with pytest.raises(ServerError, match="no such host"):
        probe(Endpoint(host="a..b", port=1))


def test_no_terminal_obeys_the_version_of_a_server(listener: Callable[..., Endpoint]):
    def play(connection: socket.socket) -> None:
        info = b"redis_version:7.0\x1b[31m\x07" + b"x" * 200 + b"\r\nrole:master\r\n"
        while asked := connection.recv(4096):
            if b"PING" in asked:
                connection.sendall(b"+PONG\r\n")
            else:
                connection.sendall(b"$%d\r\n%s\r\n" % (len(info), info) if b"INFO" in asked else b"-ERR no\r\n")

    facts = probe(listener(play))
    assert facts.version.startswith(r"7.0\x1b[31m\x07x")
    assert facts.version.isprintable()
    assert len(facts.version) == 60


def test_connections_that_are_in_use_are_not_free(server: Server):
    matrix = matrix_from_options({}, strategy="mutex")
    with connect(server.endpoint) as one, connect(server.endpoint) as other:
        one.ping()
        other.ping()
        facts = probe(server.endpoint)
        assert facts.maxclients is not None
        assert facts.clients == 3
        assert facts.connections_free == facts.maxclients - 2
        limits = limits_of(matrix, [("redis", Server(server.endpoint, facts, "given"))])
        assert limits.maxclients == {"redis": facts.maxclients - 2}
