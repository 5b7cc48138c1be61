"""Users with the listed rights alone, of several servers, of a server with a replica, and of databases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from pybench.errors import ServerError
from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.running import job
from pybench.running.job import Job, Outcome
from pybench.servers import ServerPool, postgres
from pybench.servers.postgres import PostgresServer
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.rights import redis_rights
from pybench.strategies import CATALOGUE, ServerKind
from tests.redis_client import connect
from tests.servers.test_several_servers import Backend

pytestmark = pytest.mark.usefixtures("quick")

SERVERS = 3
OF_SEVERAL = ("multilock(nodes=3)", "redlock(nodes=3)", "redisson-redlock(nodes=3)", "redisson-multilock(nodes=3)")
OF_DATABASES = [name for name, one in CATALOGUE.items() if one.server_kinds == (ServerKind.POSTGRES,)]
DATABASE = "CREATE DATABASE lab", "REVOKE ALL ON DATABASE lab FROM PUBLIC"
SHORT = {"concurrency": "2", "trials": "1", "warmup": "0", "duration": "300ms", "hold": "1ms"}


def measured(folder: Path, **options: object) -> Outcome:
    return job.carry_out(Job(matrix_from_options(**SHORT, **options), command=[], out=folder))


def is_measured(outcome: Outcome) -> bool:
    assert outcome.error is None
    assert outcome.run.trials["error_reply_count"].sum() == 0
    return outcome.run.trials["grants"].sum() > 0


def restrict(endpoint: Endpoint, strategy: str) -> None:
    with connect(endpoint) as client:
        client.execute_command("ACL", "SETUSER", "lab", "reset", "on", ">pw", *redis_rights(strategy).split())


@pytest.fixture(scope="module")
def several() -> Iterator[list[Endpoint]]:
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(SERVERS):
            process, _ = supervisor.start(binaries.find("auto"), transport="tcp")
            stack.callback(process.stop)
            found.append(process.endpoint)
        yield found


@pytest.mark.parametrize("strategy", OF_SEVERAL)
def test_a_user_with_the_listed_rights_on_each_server_measures_a_lock_of_several(several, tmp_path, strategy):
    for endpoint in several:
        restrict(endpoint, strategy.partition("(")[0])
    urls = [f"redis://lab:pw@127.0.0.1:{endpoint.port}" for endpoint in several]
    assert is_measured(measured(tmp_path / "run", strategy=strategy, redis=urls))


def test_a_user_with_the_listed_rights_measures_a_lock_that_waits_for_a_replica(tmp_path):
    with ServerPool() as pool:
        [primary] = pool.redis(Backend("here"), replicas=1)
        restrict(primary.endpoint, "replicated")
        url = f"unix://lab:pw@{primary.endpoint.unix}"
        assert is_measured(measured(tmp_path / "run", strategy="replicated(replicas=1)", redis=url))


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    process, server = postgres.start("auto", sessions=20)
    with server.connect() as session:
        for statement in (*DATABASE, "CREATE ROLE lab LOGIN", "CREATE ROLE reader LOGIN"):
            session.execute(statement)
        session.execute("GRANT CONNECT, CREATE ON DATABASE lab TO lab")
        session.execute("GRANT CONNECT ON DATABASE lab TO reader")
    yield server
    process.stop()


def url_of(server: PostgresServer, user: str) -> str:
    return f"postgresql://{user}@/lab?host={server.endpoint.folder}&port={server.endpoint.port}"


@pytest.mark.parametrize("strategy", OF_DATABASES)
def test_a_role_with_the_listed_grants_measures_each_lock_of_a_database(database, tmp_path, strategy):
    assert is_measured(measured(tmp_path / "run", strategy=strategy, postgres=url_of(database, "lab")))


def test_a_lock_without_rows_needs_no_more_than_to_connect(database, tmp_path):
    url = url_of(database, "reader")
    assert is_measured(measured(tmp_path / "run", strategy="pg-advisory", postgres=url))
    with pytest.raises(Exception, match="may not create") as refused:
        measured(tmp_path / "refused", strategy="pg-row", postgres=url)
    assert 'GRANT CREATE ON DATABASE "lab" TO "reader"' in str(refused.value)


@pytest.mark.parametrize(
    ("revoked", "named"),
    [("pg_advisory_lock(bigint)", "pg_advisory_lock(bigint)"), ("pg_backend_pid()", "pg_backend_pid")],
)
def test_a_function_that_was_revoked_is_named_with_what_grants_it(database, tmp_path, revoked, named):
    url = url_of(database, "reader")
    with postgres.given(SecretStr(url.replace("reader@", f"{database.endpoint.user}@"))).connect() as session:
        session.execute(f"REVOKE EXECUTE ON FUNCTION {revoked} FROM PUBLIC")
        try:
            error = measured(tmp_path / "run", strategy="pg-advisory", postgres=url).error
        except ServerError as raised:
            error = raised
        finally:
            session.execute(f"GRANT EXECUTE ON FUNCTION {revoked} TO PUBLIC")
    assert error is not None
    assert error.hint == f'GRANT EXECUTE ON FUNCTION {named} TO "reader", in the database "lab"'


def test_a_lock_on_both_needs_the_rights_of_both(several, database, tmp_path):
    restrict(several[0], "layered")
    url = f"redis://lab:pw@127.0.0.1:{several[0].port}"
    assert is_measured(measured(tmp_path / "run", strategy="layered", redis=url, postgres=url_of(database, "lab")))
    with connect(several[0]) as client:
        client.execute_command("ACL", "SETUSER", "lab", "-set")
    outcome = measured(tmp_path / "refused", strategy="layered", redis=url, postgres=url_of(database, "lab"))
    assert outcome.exit is Exit.SERVER_UNREACHABLE
    assert "does not let this user do what layered needs" in outcome.error.message
