"""`pybench serve` as a command: its servers, its messages, its exit codes, its log."""

from __future__ import annotations

import importlib.util
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pybench.cli.line import answer
from tests.service.running import OwnRedis, serving
from tests.waiting import wait_until

NOTHING = "redis://127.0.0.1:1"


def test_without_a_server_named_it_starts_all_and_stops_them(tmp_path: Path):
    with serving(tmp_path) as service:
        started = [child for child in psutil.Process(service.pid).children(recursive=True) if "valkey" in child.name()]
        assert len(started) == 6
        roles = [server["role"] for server in service.get("/health").body["servers"]]
        assert roles == ["redis", *["redlock"] * 5, "postgres"]
        assert {server["address"] for server in service.get("/health").body["servers"]} == {None}
        for strategy in ("simple", "redlock", "redlock(nodes=3)", "pg-advisory", "pg-row", "layered"):
            assert service.post(f"/api/locks/{strategy}/r").status == 200, strategy
        assert "are refused" not in service.log.read_text("utf-8")
        assert service.end(signal.SIGINT) == 0
    assert not any(child.is_running() for child in started)
    assert "Traceback" not in service.log.read_text("utf-8")


def answered(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *options: str) -> tuple[int, str]:
    """The exit code and the messages of a command that does not get to listen."""
    monkeypatch.delenv("PYBENCH_REDIS_URL", raising=False)
    monkeypatch.delenv("PYBENCH_POSTGRES_URL", raising=False)
    code = answer(["serve", "--port", "0", *options])
    return code, capsys.readouterr().err


def test_a_port_that_is_taken_is_told(own_redis: OwnRedis, capsys, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, told = answered(capsys, monkeypatch, "--redis", own_redis.url, "--port", port)
    assert code == 40
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in told


def test_a_server_that_does_not_answer_is_told(own_redis: OwnRedis, capsys, monkeypatch):
    for options in (["--redis", NOTHING], ["--redis", own_redis.url, "--redlock", NOTHING]):
        code, told = answered(capsys, monkeypatch, *options)
        assert code == 41
        assert "127.0.0.1:1" in told


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--workers", "0"], "--workers"),
        (["--port", "65536"], "--port"),
        (["--work", "5"], "no unit"),
        (["--work", "2m"], "too long"),
        (["--stock", "mysql"], "--stock"),
        (["--log-level", "loud"], "--log-level"),
        (["--stock-row-lock"], "--stock postgres"),
        (["--stock", "postgres", "--redis", NOTHING], "--postgres"),
        (["--redlock", NOTHING], "--redis"),
        (["--redis", "http://x"], "not the URL"),
        (["--host", "no.such.host.invalid"], "--host"),
        (["--breaker", "-1"], "--breaker"),
    ],
)
def test_options_that_make_no_sense_are_told(options: list[str], reason: str, capsys, monkeypatch):
    code, told = answered(capsys, monkeypatch, *options)
    assert code == 40
    assert reason in told


def test_a_missing_extra_is_told_with_the_command_that_installs_it(capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    assert answer(["serve"]) == 40
    told = capsys.readouterr().err
    assert "pybench serve needs uvicorn" in told
    assert "pip install 'pybench[service]'" in told


def test_the_command_line_loads_without_the_extra():
    script = (
        "import sys; from pybench.cli.app import app;"
        "print([name for name in ('fastapi', 'uvicorn', 'prometheus_client', 'hiredis') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_every_request_is_a_line_of_json_and_no_line_has_a_password(own_redis: OwnRedis, tmp_path: Path):
    with own_redis.client() as client:
        client.acl_setuser(
            "shop", enabled=True, passwords=["+s3cret-pass"], keys=["*"], channels=["*"], categories=["+@all"]
        )
    url = own_redis.url.replace("redis://", "redis://shop:s3cret-pass@")
    # The environment is where a password is not seen by others.
    with serving(tmp_path, "--log-level", "debug", PYBENCH_REDIS_URL=url) as service:
        service.reset("p", 1)
        given = service.buy("p", X_Request_ID="trace-17", Authorization="Bearer t0ken-t0ken")
        assert given.headers["X-Request-ID"] == "trace-17"
        made = service.post("/api/locks/simple/order", X_Request_ID="not a sane id")
        assert made.headers["X-Request-ID"] not in ("", "not a sane id")
        body = service.get("/health").body
        assert "s3cret" not in json.dumps(body)
        assert "shop" not in json.dumps(body)
        wait_until(lambda: service.logged(route="/health"), "the last request is logged")
        assert service.end() == 0
    told = service.log.read_text("utf-8")
    assert "s3cret" not in told
    assert "t0ken" not in told
    [line] = service.logged(request_id="trace-17")
    assert (line["route"], line["status"], line["strategy"], line["resource"]) == ("/purchase", 200, "safe", "p")
    assert line["duration_ms"] > 0
    [line] = service.logged(request_id=made.headers["X-Request-ID"])
    assert (line["route"], line["resource"]) == ("/api/locks/{strategy}/{resource}", "order")
    for line in service.lines:
        assert line.startswith(("serving on", "{")), line
