"""The limits that the servers and the machine of a run set."""

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
    """The sessions that a given Postgres has free for a run."""

    free: int
    """How many sessions are neither in use nor reserved for superusers."""
    most: int
    """The `max_connections` of the server."""
    limit: str = "max_connections"
    """The name of the setting that limits the free sessions."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the servers and of this machine; an unknown limit is left out."""

    maxclients: Mapping[str, int] = field(default_factory=dict)
    """Backend -> how many more connections each of its servers accepts."""
    replicas: Mapping[str, int] = field(default_factory=dict)
    """Given backend -> how many replicas its first server has."""
    sessions: Mapping[str, Sessions] = field(default_factory=dict)
    """Given backend -> the free sessions of its database."""
    pooled: Collection[str] = ()
    """Given backends whose database is behind a pooler."""
    grants: Mapping[str, str] = field(default_factory=dict)
    """Given backend -> the hint that grants our user the right to create schemas, where the right is missing."""
    open_files: int | None = None
    """How many files this process may open."""

    @classmethod
    def of_this_machine(cls) -> Limits:
        """The hard limit of open files, up to which a process may raise its soft limit; no limits of servers."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls(open_files=None if hard == resource.RLIM_INFINITY else hard)


NO_LIMITS = Limits()


def limits_of(matrix: Matrix, servers: Iterable[tuple[str, AnyServer]]) -> Limits:
    """The limits of this machine and of `servers`, each with the name of its backend, in order of the backend."""
    # Imported here: a plan without servers does not need the modules that talk to them.
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
            # A pooler does not report how many clients it accepts.
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
