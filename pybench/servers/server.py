"""One server of a run: where it is, what it is, where it came from."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pybench.errors import ServerError
from pybench.servers.conversation import Conversation, Refusal
from pybench.servers.endpoint import ANSWER_S, Endpoint
from pybench.servers.probe import Facts
from pybench.servers.refusals import refused

if TYPE_CHECKING:
    from pybench._core import RedisServerSpec

GIVEN = "given"


class _Endpoint(Protocol):
    @property
    def address(self) -> str:
        """Where it is, without credentials."""


class _Facts(Protocol):
    @property
    def version(self) -> str:
        """As the server says it."""

    @property
    def peer(self) -> str | None:
        """The numeric address that answered; None for a Unix socket."""

    def record(self) -> dict[str, Any]:
        """The facts for a record, without those that differ from start to start."""


E = TypeVar("E", bound=_Endpoint)
F = TypeVar("F", bound=_Facts)


@dataclass(frozen=True, slots=True)
class Answered(ABC, Generic[E, F]):
    """A server of any kind that answered."""

    endpoint: E
    facts: F
    source: str
    """`wheel NAME VERSION` or `path FILE` for one that pybench started, otherwise `given`."""
    pid: int | None = None
    """Of the process that pybench started; None for a given server."""

    @property
    @abstractmethod
    def product(self) -> str:
        """What it calls itself."""

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


@dataclass(frozen=True, slots=True)
class Server(Answered[Endpoint, Facts]):
    """A Redis or Valkey server that answered."""

    replicas: tuple[Server, ...] = ()
    """Those of them that pybench started, too."""

    @property
    def product(self) -> str:
        """`valkey`, `redis`, or what else it calls itself."""
        return self.facts.product

    def core_spec(self) -> RedisServerSpec:
        """For the Rust core, which takes numeric addresses only: the one that answered."""
        password = self.endpoint.password
        return {
            "kind": "redis",
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
        replicas = {"replicas": [replica.manifest() for replica in self.replicas]} if self.replicas else {}
        return {**Answered.manifest(self), **replicas}

    @contextlib.contextmanager
    def conversation(self, *, seconds: float = ANSWER_S) -> Iterator[Conversation]:
        """To ask it something in the middle of a run, logged in. What goes wrong inside comes out as ServerError."""
        # The address that answered the probe: a name may stand for several servers.
        where = self.endpoint if self.facts.peer is None else replace(self.endpoint, host=self.facts.peer)
        try:
            with Conversation(where, seconds=seconds) as conversation:
                conversation.log_in()
                yield conversation
        except Refusal as refusal:
            error = refused(self.endpoint, refusal)
            raise ServerError(self._failed(error), hint=error.hint) from None
        except ServerError as error:
            raise ServerError(self._failed(error), hint="does the server still run? its log may say") from error

    def _failed(self, error: ServerError) -> str:
        """What is told of a server that was there a moment ago."""
        return f"{error.message}; it was {self.label} when the run began"


def is_of_this_machine(address: str) -> bool:
    """Whether `address`, a numeric one, is that of one of the interfaces of this machine."""
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
