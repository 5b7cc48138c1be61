"""One Postgres of a run: its address, its facts and where it came from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pybench.errors import ServerError
from pybench.servers.answered import Answered
from pybench.servers.connection import ANSWER_S
from pybench.servers.postgres import connecting
from pybench.servers.postgres.connecting import NAME, Session
from pybench.servers.postgres.endpoint import PostgresEndpoint
from pybench.servers.postgres.probe import PostgresFacts


@dataclass(frozen=True, slots=True)
class PostgresServer(Answered[PostgresEndpoint, PostgresFacts]):
    """A Postgres that answered."""

    @property
    def product(self) -> str:
        """`postgres`."""
        return "postgres"

    def core_spec(self) -> dict[str, Any]:
        """For the Rust core, with the numeric address that answered: the core resolves no names."""
        return self.endpoint.core_spec(self.facts.peer)

    def grant_to_create(self) -> str:
        """The statement that would let its user create schemas."""
        return f'GRANT CREATE ON DATABASE "{self.endpoint.database}" TO "{self.endpoint.user}"'

    def connect(self, *, name: str = NAME, seconds: float = ANSWER_S) -> Session:
        """A new session, each statement a transaction. The caller closes it. Raises ServerError.

        Its statements have no deadline, and raise errors of psycopg.
        """
        return connecting.connect(self.endpoint, peer=self.facts.peer, name=name, seconds=seconds)

    @contextlib.contextmanager
    def session(self, *, seconds: float = ANSWER_S) -> Iterator[Session]:
        """A session in the middle of a run, cut after `seconds`. Errors inside become ServerErrors."""
        try:
            with connecting.session(self.endpoint, peer=self.facts.peer, seconds=seconds) as opened:
                yield opened
        except ServerError as error:
            raise ServerError(
                f"{error.message}; it was {self.label} when the run began",
                hint=error.hint or "does the server still run? its log may say why",
            ) from error
