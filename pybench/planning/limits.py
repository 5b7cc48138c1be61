"""What the servers and the machine of a run allow."""

from __future__ import annotations

import resource
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybench.matrix import Matrix
    from pybench.servers import AnyServer


@dataclass(frozen=True, slots=True)
class Sessions:
    """What a given Postgres has left for us."""

    free: int
    """Without those that are in use, and those that it keeps for superusers."""
    most: int
    """Its `max_connections`."""
    limit: str = "max_connections"
    """The name of what leaves no more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the servers and this machine allow; what is not known limits nothing."""

    maxclients: Mapping[str, int] = field(default_factory=dict)
    """Backend -> the connections that each of its servers still takes: those that are in use are left out."""
    replicas: Mapping[str, int] = field(default_factory=dict)
    """Given backend -> the replicas that its first server has."""
    sessions: Mapping[str, Sessions] = field(default_factory=dict)
    """Given backend -> the sessions that its database has left."""
    pooled: Collection[str] = ()
    """Given backends before whose database a pooler stands."""
    grants: Mapping[str, str] = field(default_factory=dict)
    """Given backend -> what would let our user create schemas in its database, where it may not."""
    open_files: int | None = None
    """Files that this process may open."""

    @classmethod
    def of_this_machine(cls) -> Limits:
        """The hard limit of open files, up to which a process may raise its own; of servers nothing is known."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls(open_files=None if hard == resource.RLIM_INFINITY else hard)


NO_LIMITS = Limits()


def limits_of(matrix: Matrix, servers: Iterable[tuple[str, AnyServer]]) -> Limits:
    """Of this machine and of `servers`, each with the name of its backend, the first of a backend first."""
    # A plan that asks no server does without what talks to one.
    from pybench.servers.redis.server import Server

    maxclients: dict[str, int] = {}
    replicas: dict[str, int] = {}
    sessions: dict[str, Sessions] = {}
    pooled: set[str] = set()
    grants: dict[str, str] = {}
    for name, server in servers:
        is_given = matrix.backends[name].is_given
        if isinstance(server, Server):
            if (free := server.facts.connections_free) is not None:
                maxclients[name] = min(free, maxclients.get(name, free))
            if is_given and server.facts.replicas is not None:
                replicas.setdefault(name, server.facts.replicas)
            continue
        if not server.facts.may_create:
            grants[name] = server.grant_to_create()
        if server.facts.pooled:
            # How many clients a pooler takes it does not tell.
            pooled.add(name)
        elif is_given:
            sessions[name] = Sessions(server.facts.sessions_free, server.facts.max_connections, server.facts.limit)
    return replace(
        Limits.of_this_machine(),
        maxclients=maxclients,
        replicas=replicas,
        sessions=sessions,
        pooled=pooled,
        grants=grants,
    )
