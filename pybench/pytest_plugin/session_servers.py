"""Servers that all benchmarks of a test session share: one process each, however many tests use it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pybench.strategies import CATALOGUE, ServerKind, parse_strategy

if TYPE_CHECKING:
    from pybench.matrix.options import Options
    from pybench.servers.postgres.supervisor import SupervisedPostgres
    from pybench.servers.redis.supervisor import SupervisedServer

SESSIONS = 600
"""The most sessions of the database: clients of a lock of Postgres have one each."""


class SessionServers:
    """Addresses of servers, started on first use."""

    def __init__(self) -> None:
        self._redis: list[SupervisedServer] = []
        self._postgres: list[SupervisedPostgres] = []

    def of(self, strategy: str) -> Options:
        """The addresses for the locks of `strategy`, as options of `pybench.run`; empty where the environment has one.

        A lock that needs replicas gets none: then `pybench.run` starts its servers. Raises BadValue or ServerError.
        """
        name, arguments = parse_strategy(strategy)
        entry = CATALOGUE[name]
        if entry.replicas(arguments):
            return {}
        found: Options = {}
        kinds = entry.server_kinds or (ServerKind.REDIS,)
        if ServerKind.REDIS in kinds and not os.environ.get(ServerKind.REDIS.variable):
            found["redis"] = self._redis_urls(max(entry.servers_of_kind(ServerKind.REDIS, arguments), 1))
        if ServerKind.POSTGRES in kinds and not os.environ.get(ServerKind.POSTGRES.variable):
            found["postgres"] = [self._postgres_url()]
        return found

    def stop(self) -> None:
        """Stop all of them."""
        for server in (*self._redis, *self._postgres):
            server.stop()
        self._redis, self._postgres = [], []

    def _redis_urls(self, count: int) -> list[str]:
        from pybench.servers.redis import binaries, supervisor

        while len(self._redis) < count:
            started, _ = supervisor.start(binaries.find("auto"))
            self._redis.append(started)
        return [one.endpoint.address for one in self._redis[:count]]

    def _postgres_url(self) -> str:
        from pybench.servers.postgres import binaries, supervisor

        if not self._postgres:
            started, _ = supervisor.start(binaries.find("auto"), sessions=SESSIONS)
            self._postgres.append(started)
        return str(self._postgres[0].private)
