"""A real server behind a door that goes bad when it is told to: what is sent through is passed on until then."""

from __future__ import annotations

import selectors
import socket
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pybench.servers.endpoint import Endpoint

CHUNK = 65536


@dataclass(frozen=True)
class Fault:
    """What is said to everything that a client sends, instead of what the server would say."""

    says: bytes | None = None
    """None: nothing, ever."""
    hangs_up: bool = False


class FaultProxy:
    """Listens on loopback before the server at `target`. A context manager; one thread, gone when it is left.

    It turns bad once `trigger` passes through on its way to the server.
    """

    def __init__(self, target: Endpoint, fault: Fault, trigger: bytes) -> None:
        assert target.unix is not None, "the server that is guarded listens on a socket"
        self._target = target.unix
        self._fault = fault
        self._trigger = trigger
        self.is_bad = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._selector = selectors.DefaultSelector()
        self._peers: dict[socket.socket, socket.socket] = {}
        self._clients: set[socket.socket] = set()
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._serve)

    @property
    def url(self) -> str:
        """Where a user is told that the server is."""
        return f"redis://127.0.0.1:{self.endpoint.port}/0"

    @property
    def endpoint(self) -> Endpoint:
        """The same, parsed."""
        return Endpoint(host="127.0.0.1", port=self._listening.getsockname()[1])

    def __enter__(self) -> Self:
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wake.close()
        self._thread.join()
        for one in (*self._peers, self._listening, self._woken):
            one.close()
        self._selector.close()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                one = key.fileobj
                assert isinstance(one, socket.socket)
                if one is self._woken:
                    return
                if one is self._listening:
                    self._accept()
                elif one in self._peers:  # Its other half may have been closed a moment ago.
                    try:
                        self._pass_on(one)
                    except OSError:
                        self._drop(one)

    def _accept(self) -> None:
        client, _ = self._listening.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._target)
        self._clients.add(client)
        for one, other in ((client, server), (server, client)):
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, one: socket.socket) -> None:
        data = one.recv(CHUNK)
        if not data:
            self._drop(one)
            return
        if one in self._clients and self._trigger in data:
            self.is_bad.set()
        if not self.is_bad.is_set():
            self._peers[one].sendall(data)
        elif one in self._clients:
            if self._fault.says is not None:
                one.sendall(self._fault.says)
            if self._fault.hangs_up:
                self._drop(one)

    def _drop(self, one: socket.socket) -> None:
        for half in (one, self._peers[one]):
            self._selector.unregister(half)
            half.close()
            del self._peers[half]
            self._clients.discard(half)
