"""A way to a server that can be cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.servers.proxy import Proxy

if TYPE_CHECKING:
    import socket


class Cable(Proxy):
    """Passes everything on until it is cut; then bytes of both sides are lost, and connections stay open."""

    is_cut = False

    def of_client(self, client: socket.socket, data: bytes) -> None:
        """See `Proxy`."""
        if not self.is_cut:
            super().of_client(client, data)

    def of_server(self, client: socket.socket, data: bytes) -> None:
        """See `Proxy`."""
        if not self.is_cut:
            super().of_server(client, data)
