"""Loopback before a real server: what is sent goes through this, and what is done with it each proxy says itself."""

from __future__ import annotations

import selectors
import socket
import threading
from dataclasses import replace
from types import TracebackType
from typing import Self

from pybench.servers.redis.endpoint import Endpoint

CHUNK = 65536


class Proxy:
    """Listens on loopback before the server at `target`. A context manager; one thread, gone when it is left.

    As it is, it passes everything on. A client that connects while the server is away finds its connection closed.
    """

    def __init__(self, target: Endpoint) -> None:
        self._target = target
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
        """The same, with the credentials and the database of the server."""
        return replace(self._target, unix=None, host="127.0.0.1", port=self._listening.getsockname()[1])

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

    def of_client(self, client: socket.socket, data: bytes) -> None:
        """`data` came from `client`."""
        self._peers[client].sendall(data)

    def of_server(self, client: socket.socket, data: bytes) -> None:
        """`data` came from the server for `client`."""
        client.sendall(data)

    def gone(self, client: socket.socket) -> None:
        """`client` is about to be closed."""

    def drop(self, client: socket.socket) -> None:
        """Close both connections, to `client` and for it."""
        self.gone(client)
        for half in (client, self._peers[client]):
            self._selector.unregister(half)
            half.close()
            del self._peers[half]
        self._clients.discard(client)

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
                    self._pass_on(one)

    def _accept(self) -> None:
        client, _ = self._listening.accept()
        try:
            server = self._reach()
        except OSError:
            client.close()
            return
        self._clients.add(client)
        for one, other in ((client, server), (server, client)):
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _reach(self) -> socket.socket:
        if self._target.unix is None:
            return socket.create_connection((self._target.host, self._target.port))
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._target.unix)
        except OSError:
            server.close()
            raise
        return server

    def _pass_on(self, one: socket.socket) -> None:
        client = one if one in self._clients else self._peers[one]
        try:
            data = one.recv(CHUNK)
            if not data:
                self.drop(client)
            elif one is client:
                self.of_client(client, data)
            else:
                self.of_server(client, data)
        except OSError:
            self.drop(client)
