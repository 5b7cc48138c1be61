"""A service with servers of its own, once for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.running import OwnRedis, Running, serving

WORK = "20ms"
"""Long enough that buyers without a lock certainly meet."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a Redis and three for redlock."""
    servers = [OwnRedis(tmp_path_factory.mktemp("redis")) for _ in range(4)]
    first, *others = [server.url for server in servers]
    options = ["--redis", first, "--redlock", ",".join(others), "--work", WORK, "--log-level", "error"]
    try:
        with serving(tmp_path_factory.mktemp("serve"), *options) as running:
            yield running
    finally:
        for server in servers:
            server.kill()
