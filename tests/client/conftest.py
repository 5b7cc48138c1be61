"""A real server, clients of it, and somebody else who looks at the keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis

from pybench import LockClient
from pybench.servers.redis import binaries, supervisor

Start = Callable[..., LockClient]


@pytest.fixture(autouse=True)
def without_a_loop(no_running_loop: None) -> None:
    """Every test here may run a loop of its own."""


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    supervised, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    yield supervised.endpoint.address
    supervised.stop()


@pytest.fixture
def other(url) -> Iterator[redis.Redis]:
    """Another user of the server: redis-py."""
    client = redis.Redis.from_url(url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def client(url, other) -> Iterator[LockClient]:
    """A client of `mutex` on clean keys."""
    with LockClient(redis=url) as client:
        yield client


@pytest.fixture(scope="session")
def three_urls() -> Iterator[list[str]]:
    started = [supervisor.start(binaries.find("auto"), transport="tcp")[0] for _ in range(3)]
    yield [supervised.endpoint.address for supervised in started]
    for supervised in started:
        supervised.stop()
