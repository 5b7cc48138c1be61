"""Real servers for the tests of this folder, and what plays a server that is none."""

from __future__ import annotations

import functools
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import redis

from pybench.matrix.durations import MS
from pybench.planning import control, trial_spec
from pybench.running import observer, trial_servers
from pybench.servers import Server, read_figures
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.binaries import Binary
from pybench.servers.redis.endpoint import Endpoint
from tests.redis_client import connect
from tests.servers.queue_scripts import Queue

BINARIES = {binary.source.split()[0]: binary for binary in reversed(binaries.find_all()[0])}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What surrounds the trials of a run, in less time: for runs that are not about figures."""
    # A baseline has 20 calls with a hold of 1 ms between them, or else the longer one follows.
    times = {"CONTROL_NS": 60, "BASELINE_NS": 40, "LONGER_BASELINE_NS": 400, "BASELINE_WARMUP_NS": 5}
    for name, ms in times.items():
        monkeypatch.setattr(control, name, ms * MS)
    monkeypatch.setattr(trial_spec, "REPLY_TIMEOUT_NS", 500 * MS)
    monkeypatch.setattr(trial_spec, "DRAIN_NS", 1_000 * MS)
    monkeypatch.setattr(trial_servers, "read_figures", functools.partial(read_figures, seconds=0.5))
    monkeypatch.setattr(observer, "PARTING_S", 0.2)


@pytest.fixture(params=["wheel", "path"])
def binary(request: pytest.FixtureRequest) -> Binary:
    if request.param not in BINARIES:
        pytest.skip(f"no server binary: {request.param}")
    return BINARIES[request.param]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One for the tests of a file that only put keys into it or ask it something."""
    binary = binaries.find("auto")
    supervised, facts = supervisor.start(binary)
    yield Server(supervised.endpoint, facts, binary.source, supervised.pid)
    supervised.stop()


Play = Callable[[socket.socket], None]
"""What to do with a connection."""


@pytest.fixture
def listener() -> Iterator[Callable[[Play], Endpoint]]:
    """Listens on loopback and treats the one connection it takes as told."""
    with ExitStack() as stack:

        def listen(play: Play) -> Endpoint:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            listening.settimeout(5)

            def serve() -> None:
                try:
                    connection, _ = listening.accept()
                    with connection:
                        connection.settimeout(5)
                        play(connection)
                except OSError:
                    pass  # The other side has seen enough.

            thread = threading.Thread(target=serve)
            thread.start()
            stack.callback(thread.join)
            return Endpoint(host="127.0.0.1", port=listening.getsockname()[1])

        yield listen


@pytest.fixture
def web_server() -> Iterator[Endpoint]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield Endpoint(host="127.0.0.1", port=web.server_port)
        web.shutdown()
        thread.join()


@pytest.fixture
def client(binary: Binary) -> Iterator[redis.Redis]:
    """Another user of a server of its own."""
    server, _ = supervisor.start(binary)
    with connect(server.endpoint) as client:
        yield client
    server.stop()


@pytest.fixture
def queue(client: redis.Redis) -> Queue:
    return Queue(client)
