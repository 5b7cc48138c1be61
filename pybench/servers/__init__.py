"""Real servers: find them, start them, ask them, and leave nothing behind."""

from __future__ import annotations

from pybench.servers.cleanup import remove_keys, remove_locks
from pybench.servers.endpoint import Endpoint
from pybench.servers.figures import ServerFigures, difference, keys_gone, read_figures
from pybench.servers.leftovers import Leftover, clear_leftovers
from pybench.servers.pool import ServerPool
from pybench.servers.probe import Facts, probe
from pybench.servers.server import Server

__all__ = [
    "Endpoint",
    "Facts",
    "Leftover",
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
