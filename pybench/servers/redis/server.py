"""One Redis server of a run: its address, its facts and where it came from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

from pybench.errors import ServerError
from pybench.servers.answered import Answered
from pybench.servers.connection import ANSWER_S
from pybench.servers.redis.conversation import Conversation, Refusal
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.probe import Facts
from pybench.servers.redis.refusals import refused

if TYPE_CHECKING:
    from pybench.core_specs import RedisServerSpec


@dataclass(frozen=True, slots=True)
class Server(Answered[Endpoint, Facts]):
    """A Redis or Valkey server that answered."""

    replicas: tuple[Server, ...] = ()
    """Its replicas that pybench started."""

    @property
    def product(self) -> str:
        """`valkey`, `redis`, or what else it calls itself."""
        return self.facts.product

    def by_script(self) -> Self:
        """See `Answered.by_script`."""
        return replace(self, facts=replace(self.facts, compare_and_delete="script"))

    def core_spec(self) -> RedisServerSpec:
        """For the Rust core, with the numeric address that answered: the core resolves no names."""
        spec = self.endpoint.core_spec(
            self.facts.peer, protocol=self.facts.protocol, compare_and_delete=self.facts.compare_and_delete
        )
        return cast("RedisServerSpec", spec)

    def manifest(self) -> dict[str, Any]:
        """For a record: no credentials."""
        replicas = {"replicas": [replica.manifest() for replica in self.replicas]} if self.replicas else {}
        return {**Answered.manifest(self), **replicas}

    @contextlib.contextmanager
    def conversation(self, *, seconds: float = ANSWER_S) -> Iterator[Conversation]:
        """A connection that is logged in, in the middle of a run. Errors inside become ServerErrors."""
        # The address that answered the probe: a name may have several.
        where = self.endpoint if self.facts.peer is None else replace(self.endpoint, host=self.facts.peer)
        try:
            with Conversation(where, seconds=seconds) as conversation:
                conversation.log_in()
                yield conversation
        except Refusal as refusal:
            error = refused(self.endpoint, refusal)
            raise ServerError(self._failed(error), hint=error.hint) from None
        except ServerError as error:
            raise ServerError(self._failed(error), hint="does the server still run? its log may say why") from error

    def _failed(self, error: ServerError) -> str:
        """The message about a server that answered when the run began."""
        return f"{error.message}; it was {self.label} when the run began"
