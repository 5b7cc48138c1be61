"""Servers of a user, and a service on them that all files of tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.running import OwnRedis, Running, serving, several_redis


@pytest.fixture(scope="session")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnRedis]:
    server = OwnRedis(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture(scope="session")
def three_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[OwnRedis]]:
    with several_redis(tmp_path_factory, "redlock", 3) as servers:
        yield servers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve")


@pytest.fixture(scope="session")
def service(
    own_redis: OwnRedis, three_redis: list[OwnRedis], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A service with a Redis and three for redlock."""
    redlock = ",".join(server.url for server in three_redis)
    with serving(tmp_path_factory.mktemp("serve"), "--redis", own_redis.url, "--redlock", redlock) as running:
        yield running
