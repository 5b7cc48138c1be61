"""What servers of both kinds share once they have answered: their address, their facts and where they came from."""

from __future__ import annotations

import ipaddress
import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    from pybench.servers.postgres.endpoint import PostgresEndpoint
    from pybench.servers.postgres.probe import PostgresFacts
    from pybench.servers.redis.endpoint import Endpoint
    from pybench.servers.redis.probe import Facts

MOST_OF_VERSION = 60
"""The most characters of a version that are shown: a server can report any text."""

GIVEN = "given"


E = TypeVar("E", bound="Endpoint | PostgresEndpoint")
F = TypeVar("F", bound="Facts | PostgresFacts")


@dataclass(frozen=True, slots=True)
class Answered(ABC, Generic[E, F]):
    """A server of either kind that has answered."""

    endpoint: E
    facts: F
    source: str
    """`wheel NAME VERSION` or `path FILE` for one that pybench started, otherwise `given`."""
    pid: int | None = None
    """The process of a server that pybench started; None for a given server."""

    @property
    @abstractmethod
    def product(self) -> str:
        """The name that the server reports."""

    @property
    def version(self) -> str:
        """The version that the server reports."""
        return self.facts.version

    @property
    def label(self) -> str:
        """Product and version, for a table."""
        return f"{self.product} {self.version}"

    def by_script(self) -> Self:
        """As this server, but locks release by the Lua script, also where it has a command of its own for that."""
        return self

    @property
    def started_by_us(self) -> bool:
        """Whether pybench started it. Load on such a server needs nobody's consent."""
        return self.pid is not None

    def is_local(self) -> bool:
        """Whether it is on this machine: a socket, or an address of one of this machine's interfaces."""
        return self.facts.peer is None or is_of_this_machine(self.facts.peer)

    def manifest(self) -> dict[str, Any]:
        """For a record: no credentials."""
        return {
            "label": self.label,
            "product": self.product,
            "version": self.version,
            "source": self.source,
            "address": None if self.started_by_us else self.endpoint.address,
            "local": self.is_local(),
            "settings": self.facts.record(),
        }


def is_of_this_machine(address: str) -> bool:
    """Whether `address`, a numeric one, is that of one of the interfaces of this machine."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if parsed.is_loopback:
        return True
    # Only an address of an interface of this machine can be bound. Nothing is sent.
    with socket.socket(socket.AF_INET6 if parsed.version == 6 else socket.AF_INET, socket.SOCK_DGRAM) as own:
        try:
            own.bind((address, 0))
        except OSError:
            return False
    return True
