"""One Postgres of a run: where it is, what it is, where it came from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pybench.errors import ServerError
from pybench.servers.endpoint import ANSWER_S
from pybench.servers.postgres import connecting
from pybench.servers.postgres.connecting import NAME, Session
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.servers.postgres.probe import PostgresFacts
from pybench.servers.server import is_of_this_machine


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A server that answered."""

    endpoint: PostgresEndpoint
    facts: PostgresFacts
    source: str
    """`wheel NAME VERSION` or `path FILE` for one that pybench started, otherwise `given`."""
    pid: int | None = None
    """Of the process that pybench started; None for a given server."""

    @property
    def product(self) -> str:
        """`postgres`."""
        return "postgres"

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

    def core_spec(self) -> dict[str, Any]:
        """For the Rust core, which takes numeric addresses only: the one that answered."""
        password = self.endpoint.password
        return {
            "unix": self.endpoint.unix,
            "host": self.facts.peer,
            "port": self.endpoint.port,
            "user": self.endpoint.user,
            "password": None if password is None else password.get_secret_value(),
            "database": self.endpoint.database,
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
            "settings": self.facts.record(),
        }

    def connect(self, *, name: str = NAME, seconds: float = ANSWER_S) -> Session:
        """A session of its own, each statement a transaction; whoever asks for it closes it.

        Its statements raise errors of psycopg, and wait as long as the server takes. Raises ServerError.
        """
        return connecting.connect(self.endpoint, peer=self.facts.peer, name=name, seconds=seconds)

    @contextlib.contextmanager
    def session(self, *, seconds: float = ANSWER_S) -> Iterator[Session]:
        """To ask it something in the middle of a run, within `seconds`.

        What goes wrong inside comes out as ServerError.
        """
        try:
            with connecting.session(self.endpoint, peer=self.facts.peer, seconds=seconds) as opened:
                yield opened
        except ServerError as error:
            raise ServerError(
                f"{error.message}; it was {self.label} when the run began",
                hint=error.hint or "does the server still run? its log may say; pybench doctor looks at it",
            ) from error
