"""Real servers: find, start, probe and read them, and leave nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybench.servers.leftovers import Leftover, clear_leftovers
from pybench.servers.pool import ServerPool
from pybench.servers.redis.cleanup import remove_keys, remove_locks
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.figures import ServerFigures, difference, keys_gone, read_figures
from pybench.servers.redis.probe import Facts, probe
from pybench.servers.redis.sampler import RedisSampler
from pybench.servers.redis.server import Server

if TYPE_CHECKING:
    from pybench.servers.postgres import PostgresServer

    AnyServer = Server | PostgresServer

__all__ = [
    "Endpoint",
    "Facts",
    "Leftover",
    "RedisSampler",
    "Server",
    "ServerFigures",
    "ServerPool",
    "clear_leftovers",
    "difference",
    "keys_gone",
    "probe",
    "read_figures",
    "remove_keys",
    "remove_locks",
]
