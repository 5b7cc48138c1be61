"""A real server for the core, and the smallest trial on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pybench.servers import Server
from pybench.servers.redis import binaries, supervisor
from tests.boundary import databases
from tests.boundary.databases import Database
from tests.core_trials import trial_spec

MakeSpec = Callable[..., Any]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    binary = binaries.find("auto")
    supervised, facts = supervisor.start(binary)
    yield Server(supervised.endpoint, facts, binary.source, supervised.pid)
    supervised.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Database]:
    """For tests that let it run as it is."""
    with databases.running() as database:
        yield database


@pytest.fixture
def make_spec(server: Server, request: pytest.FixtureRequest) -> MakeSpec:
    """The trial under keys that carry the test's name."""

    def make(**fields: object) -> dict[str, Any]:
        return trial_spec(server, **{"key_prefix": f"test:{request.node.name}:", **fields})

    return make
