"""Locks that programs should not use, offered to those who show what they do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybench import _core
from pybench.lock_client import LockClient, MeasuredLockClient, NotAcquired
from pybench.lock_client.servers import MEASURED, OFFERED
from pybench.servers.postgres.connecting import session as connected
from pybench.servers.postgres.schema import drop_schema, prepare_schema, table_name
from pybench.strategies import CATALOGUE, ServerKind, parse_strategy
from tests.boundary import databases

SCHEMA = "pybench_1_0"
ARGUMENTS = {
    "fair-queue": "fair-queue",
    "multilock": "multilock(nodes=3)",
    "redisson-redlock": "redisson-redlock(nodes=3)",
}
FURTHER = [ARGUMENTS.get(name, name) for name in MEASURED if name not in (*OFFERED, "none", "replicated")]


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, str]]:
    with databases.running() as database:
        endpoint = database.process.endpoint
        with connected(endpoint) as session:
            prepare_schema(session, SCHEMA, _core.lock_rows)
        secret = "" if endpoint.password is None else f":{endpoint.password.get_secret_value()}"
        yield {
            "postgres": endpoint.address.replace("postgresql://", f"postgresql://{endpoint.user}{secret}@"),
            "table": table_name(SCHEMA),
        }
        with connected(endpoint) as session:
            drop_schema(session, SCHEMA)


@pytest.fixture
def servers(request, url, other, three_urls, rows) -> dict[str, object]:
    name, arguments = parse_strategy(request.getfixturevalue("strategy"))
    entry = CATALOGUE[name]
    kinds = entry.server_kinds or (ServerKind.REDIS,)
    redis = three_urls if entry.servers_of_kind(ServerKind.REDIS, arguments) == 3 else url
    return {
        **({"redis": redis} if ServerKind.REDIS in kinds else {}),
        **(rows if ServerKind.POSTGRES in kinds else {}),
    }


@pytest.mark.parametrize("strategy", FURTHER)
def test_a_measured_lock_keeps_others_out_and_is_free_after_its_release(strategy, servers):
    with MeasuredLockClient(strategy, **servers) as first, MeasuredLockClient(strategy, **servers) as second:
        for _ in range(2):
            with (
                first.lock("orders:17", ttl="1h", wait="5s"),
                pytest.raises(NotAcquired),
                second.lock("orders:17", ttl="1h", wait="20ms"),
            ):
                pass
            with second.lock("orders:17", ttl="1h", wait="20s"), second.lock("orders:18", ttl="1h", wait="20s"):
                pass


@pytest.mark.parametrize("strategy", ["none"])
def test_none_keeps_nobody_out(strategy, servers):
    with MeasuredLockClient(strategy, **servers) as client, client.lock("a", wait="0"), client.lock("a", wait="0"):
        pass


@pytest.mark.parametrize("strategy", ["naive", "layered"])
def test_who_is_refused_is_told_how_long_the_holder_has_left(strategy, servers):
    with (
        MeasuredLockClient(strategy, **servers) as client,
        client.lock("orders:17", ttl="1h"),
        pytest.raises(NotAcquired) as refused,
        client.lock("orders:17", wait="0"),
    ):
        pass
    assert 3_500 < refused.value.time_left <= 3_600


def test_fences_of_rows_grow_whatever_their_names(rows):
    with MeasuredLockClient("pg-lease", **rows) as client:
        fences = []
        for _ in range(3):
            with client.lock("fences", wait="5s") as held:
                fences.append(held.fence)
    assert fences == [fences[0], fences[0] + 1, fences[0] + 2]


def test_programs_are_not_offered_them(url):
    with pytest.raises(ValueError, match="naive is no lock for programs"):
        LockClient("naive", redis=url)
    with pytest.raises(ValueError, match="keeps nobody out"):
        MeasuredLockClient("pg-optimistic", postgres="postgresql://127.0.0.1/shop", table="locks")
    with pytest.raises(ValueError, match="needs the table"):
        MeasuredLockClient("pg-row", postgres="postgresql://127.0.0.1/shop")
    with pytest.raises(ValueError, match="on one server"):
        MeasuredLockClient("redisson-multilock(nodes=3)", redis=[url] * 3)
