"""A real server that swarms are given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from pybench.servers import Server
from pybench.servers.redis import binaries, supervisor

PASSWORD = "s3cret-swarm"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    binary = binaries.find("auto")
    supervised, facts = supervisor.start(binary, transport="tcp", password=SecretStr(PASSWORD))
    yield Server(supervised.endpoint, facts, binary.source, supervised.pid)
    supervised.stop()


@pytest.fixture(scope="session")
def url(server: Server) -> str:
    """Its address, with the password."""
    return f"redis://:{PASSWORD}@127.0.0.1:{server.endpoint.port}/0"
