"""`pybench serve` as users run it, servers that can be killed and started again, and plain HTTP."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from pybench.servers.redis import binaries
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: Any
    """Parsed, where it is JSON."""


class Running:
    """A service in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log
        self.port = 0

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines()

    def logged(self, **fields: object) -> list[dict[str, Any]]:
        """The lines of the log that have all of `fields`."""
        found = [json.loads(line) for line in self.lines if line.startswith("{")]
        return [line for line in found if fields.items() <= line.items()]

    def send(self, method: str, path: str, body: object = None, *, seconds: float = 20.0, **headers: str) -> Reply:
        """One request on a connection of its own; a body that is no bytes is sent as JSON."""
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(method, path, raw, named)
            answer = connection.getresponse()
            told = answer.read()
        finally:
            connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return Reply(answer.status, answer.headers, json.loads(told) if is_json else told.decode())

    def post(self, path: str, body: object = None, **headers: str) -> Reply:
        return self.send("POST", path, body, **headers)

    def get(self, path: str) -> Reply:
        return self.send("GET", path)

    def reset(self, product: object, stock: int) -> None:
        assert self.post("/reset", {"product_id": product, "stock": stock}).status == 200

    def buy(self, product: object, strategy: str = "safe", query: str = "", quantity: int = 1, **headers: str) -> Reply:
        body = {"product_id": product, "quantity": quantity, "lock_strategy": strategy}
        return self.post(f"/purchase{query}", body, **headers)

    def at_once(self, count: int, path: str, body: object = None, **headers: str) -> list[Reply]:
        """So many equal requests, each by a thread; all begin together."""
        replies: list[Reply] = []
        together = threading.Barrier(count)

        def one() -> None:
            together.wait()
            replies.append(self.post(path, body, **headers))

        threads = [threading.Thread(target=one) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return replies

    def begin(self, method: str, path: str, body: bytes = b"", **headers: str) -> socket.socket:
        """Send a request and do not wait for its answer; the caller closes the connection."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        )
        connection.sendall(head.encode() + body)
        return connection

    def waiting(self) -> int:
        """How many requests wait for a lock now, as `/metrics` has it."""
        text = self.get("/metrics").body
        return int(float(next(line for line in text.splitlines() if line.startswith("pybench_waiting ")).split()[1]))

    def figure(self, name: str) -> float:
        """One line of `/metrics`; 0 where it is missing."""
        found = [line for line in self.get("/metrics").body.splitlines() if line.startswith(name + " ")]
        return float(found[0].split()[1]) if found else 0.0

    def is_closed(self) -> bool:
        """Whether it accepts no more connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except ConnectionRefusedError:
            return True
        return False

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to end, and wait; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)


def whole_answer(connection: socket.socket) -> bytes:
    """What comes until the service closes the connection."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def command(*options: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "pybench", "serve", "--port", "0", *options]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYBENCH_")}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


@contextmanager
def serving(folder: Path, *options: str, **variables: str) -> Iterator[Running]:
    """A service that listens; it is told to end when the block is left, if it has not ended yet."""
    log = folder / "serve.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command(*options), cwd=folder, env=environment(**variables), stdout=subprocess.DEVNULL, stderr=stderr
        )
    running = Running(process, log)
    try:
        wait_until(lambda: process.poll() is not None or "serving on" in log.read_text("utf-8"), "the service starts")
        line = next((line for line in running.lines if line.startswith("serving on")), None)
        assert line is not None, log.read_text("utf-8")
        running.port = int(line.split()[2].rpartition(":")[2])
        yield running
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()
            process.wait()


class OwnRedis:
    """A Redis of a user: it can be killed and started again at the same port."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        binary = str(binaries.find("auto").path)
        settings = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen([binary, *settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, "the server answers")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, protocol=2, socket_timeout=20)

    def keys(self, pattern: str = "*") -> list[bytes]:
        with self.client() as client:
            return sorted(client.keys(pattern))

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False


@contextmanager
def several_redis(folders: pytest.TempPathFactory, name: str, count: int) -> Iterator[list[OwnRedis]]:
    """So many servers, each in a folder of its own."""
    servers = [OwnRedis(folders.mktemp(name)) for _ in range(count)]
    try:
        yield servers
    finally:
        for server in servers:
            server.kill()
