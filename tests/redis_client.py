"""Another user of a server: redis-py, as far as the tests need it."""

from __future__ import annotations

import redis

from pybench.servers.redis.endpoint import Endpoint


def connect(endpoint: Endpoint) -> redis.Redis:
    """A client that connects at its first command; closed by the caller."""
    return redis.Redis(
        host=endpoint.host or "",
        port=endpoint.port,
        unix_socket_path=endpoint.unix,
        db=endpoint.db,
        username=endpoint.username,
        password=None if endpoint.password is None else endpoint.password.get_secret_value(),
        socket_timeout=20.0,
        protocol=2,
    )
