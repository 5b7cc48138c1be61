"""One server of a run: where it is, what it is, where it came from."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import redis

from pybench.errors import ServerError
from pybench.servers.endpoint import Endpoint
from pybench.servers.probe import Facts

if TYPE_CHECKING:
    from pybench._core import ServerSpec

GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answered."""

    endpoint: Endpoint
    facts: Facts
    source: str
    """`wheel NAME VERSION` or `path FILE` for one that pybench started, otherwise `given`."""
    pid: int | None = None
    """Of the process that pybench started; None for a given server."""

    @property
    def product(self) -> str:
        """`valkey`, `redis`, or what else it calls itself."""
        return self.facts.product

    @property
    def version(self) -> str:
        """As the server says it."""
        return self.facts.version

    @property
    def label(self) -> str:
        """Product and version, for a table."""
        return f"{self.product} {self.version}"

    @property
    def started_by_us(self) -> bool:
        """Whether pybench started it, and so may do to it what it likes."""
        return self.pid is not None

    def is_local(self) -> bool:
        """Whether it is on this machine: a socket, or an address of one of this machine's interfaces."""
        return self.facts.peer is None or _is_of_this_machine(self.facts.peer)

    def core_spec(self) -> ServerSpec:
        """For the Rust core, which takes numeric addresses only: the one that answered."""
        password = self.endpoint.password
        return {
            "unix": self.endpoint.unix,
            "host": self.facts.peer,
            "port": self.endpoint.port,
            "username": self.endpoint.username,
            "password": None if password is None else password.get_secret_value(),
            "db": self.endpoint.db,
            "protocol": self.facts.protocol,
            "compare_and_delete": self.facts.compare_and_delete,
        }

    def manifest(self) -> dict[str, Any]:
        """For a record: no credentials."""
        return {
            "label": self.label,
            "product": self.product,
            "version": self.version,
            "source": self.source,
            "address": None if self.started_by_us else self.endpoint.address,
            "local": self.is_local(),
            "settings": self.facts.settings(),
        }

    @contextlib.contextmanager
    def client(self) -> Iterator[redis.Redis]:
        """A connection of the control plane. What goes wrong inside comes out as ServerError."""
        # The address that answered the probe: a name may stand for several servers.
        where = self.endpoint if self.facts.peer is None else replace(self.endpoint, host=self.facts.peer)
        connection = where.client()
        try:
            yield connection
        except redis.RedisError as error:
            raise ServerError(f"{self.endpoint} ({self.label}): {error}", hint="pybench doctor") from error
        finally:
            connection.close()


def _is_of_this_machine(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if parsed.is_loopback:
        return True
    # Only an address of an own interface can be bound; nothing is sent.
    with socket.socket(socket.AF_INET6 if parsed.version == 6 else socket.AF_INET, socket.SOCK_DGRAM) as own:
        try:
            own.bind((address, 0))
        except OSError:
            return False
    return True
