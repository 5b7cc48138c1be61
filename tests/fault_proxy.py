"""A real server behind a door that goes bad when it is told to: what is sent through is passed on until then."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass

from pybench.servers.proxy import Proxy
from pybench.servers.redis.endpoint import Endpoint


@dataclass(frozen=True)
class Fault:
    """What is said to everything that a client sends, instead of what the server would say."""

    says: bytes | None = None
    """None: nothing, ever."""
    hangs_up: bool = False


class FaultProxy(Proxy):
    """It turns bad once `trigger` passes through on its way to the server."""

    def __init__(self, target: Endpoint, fault: Fault, trigger: bytes) -> None:
        super().__init__(target)
        self._fault = fault
        self._trigger = trigger
        self.is_bad = threading.Event()

    def of_client(self, client: socket.socket, data: bytes) -> None:
        if self._trigger in data:
            self.is_bad.set()
        if not self.is_bad.is_set():
            super().of_client(client, data)
            return
        if self._fault.says is not None:
            client.sendall(self._fault.says)
        if self._fault.hangs_up:
            self.drop(client)

    def of_server(self, client: socket.socket, data: bytes) -> None:
        if not self.is_bad.is_set():
            super().of_server(client, data)
