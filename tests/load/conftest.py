"""Services with servers of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.service.running import OwnRedis, Running, serving

WORK = "20ms"
"""Long enough that buyers without a lock certainly meet."""


@contextmanager
def a_service(folder: Path) -> Iterator[Running]:
    """A service with a Redis and three for redlock."""
    servers = []
    for name in ("redis", "redlock-1", "redlock-2", "redlock-3"):
        (folder / name).mkdir()
        servers.append(OwnRedis(folder / name))
    first, *others = [server.url for server in servers]
    options = ["--redis", first, "--redlock", ",".join(others), "--work", WORK, "--log-level", "error"]
    try:
        with serving(folder, *options) as running:
            yield running
    finally:
        for server in servers:
            server.kill()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with a_service(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def second_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """For a run beside another that uses the same products."""
    with a_service(tmp_path_factory.mktemp("service")) as running:
        yield running
