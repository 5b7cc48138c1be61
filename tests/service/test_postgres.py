"""Stock and locks in Postgres."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.boundary import databases
from tests.boundary.databases import Database
from tests.service.running import OwnRedis, Running, serving, whole_answer
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with databases.running(sessions=300) as running:
        yield running


def url(database: Database) -> str:
    endpoint = database.process.endpoint
    assert endpoint.password is not None
    secret = endpoint.password.get_secret_value()
    return endpoint.address.replace("postgresql://", f"postgresql://{endpoint.user}:{secret}@")


def schemas(database: Database) -> set[str]:
    with database.connect() as session:
        rows = session.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pybench!_%!_%' ESCAPE '!'")
        return {name for (name,) in rows}


def row_locks(database: Database) -> int:
    """How many tables have rows that a transaction has locked."""
    with database.connect() as session:
        [count] = session.execute("SELECT count(*) FROM pg_locks WHERE mode = 'RowShareLock'").fetchone() or [0]
    return int(count)


@pytest.fixture(scope="module")
def plain(database: Database, own_redis: OwnRedis, folder: Path) -> Iterator[Running]:
    """The stock in Postgres without the options."""
    with serving(folder, "--stock", "postgres", "--postgres", url(database), "--redis", own_redis.url) as running:
        yield running


@pytest.fixture(scope="module")
def strict(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The stock in Postgres with row lock and constraint, and no Redis."""
    options = ("--stock", "postgres", "--stock-row-lock", "--stock-constraint", "--postgres", url(database))
    with serving(tmp_path_factory.mktemp("strict"), *options) as running:
        yield running


def race(service: Running, strategy: str, stock: int = 1, query: str = "?work=50ms&wait=20s") -> list[str | None]:
    """The errors of 30 buyers who race for the stock; None for each who got it."""
    service.reset("last-one", stock)
    body = {"product_id": "last-one", "quantity": 1, "lock_strategy": strategy}
    replies = service.at_once(30, f"/purchase{query}", body)
    assert {reply.status for reply in replies} == {200}, [reply.body for reply in replies if reply.status != 200]
    assert all(reply.body["success"] is (reply.body["error"] is None) for reply in replies)
    return [reply.body["error"] for reply in replies]


def test_without_a_lock_more_is_sold_than_there_was(plain: Running):
    assert race(plain, "none").count(None) > 1


@pytest.mark.parametrize("strategy", ["safe", "atomic", "pg-advisory", "pg-row", "pg-lease", "layered"])
def test_with_a_lock_exactly_one_is_sold(plain: Running, strategy: str):
    assert race(plain, strategy, query="?work=1ms&wait=20s").count(None) == 1
    assert plain.get("/stock/last-one").body["stock"] == 0


def test_the_row_lock_keeps_others_out_without_any_other_lock(strict: Running):
    errors = race(strict, "none", stock=3, query="?work=2ms")
    assert errors.count(None) == 3
    assert set(errors) == {None, "Insufficient stock"}, "the constraint had nothing to refuse"
    assert strict.get("/stock/last-one").body["stock"] == 0


def test_the_constraint_refuses_what_would_be_negative_and_nothing_is_left(database: Database, tmp_path: Path):
    before = schemas(database)
    options = ("--stock", "postgres", "--stock-constraint", "--postgres", url(database))
    with serving(tmp_path, *options) as service:
        assert len(schemas(database) - before) == 2
        errors = race(service, "none")
        assert errors.count(None) == 1
        assert "Insufficient stock: refused by the constraint of the database" in errors
        assert service.get("/stock/last-one").body["stock"] == 0
        assert service.end() == 0
    assert schemas(database) == before


@pytest.mark.parametrize("strategy", ["none", "atomic", "pg-advisory"])
def test_a_purchase_that_is_sent_again_gets_the_first_answer(plain: Running, strict: Running, strategy: str):
    for service in (plain, strict):
        service.reset("once", 10)
        replies = [service.buy("once", strategy, Idempotency_Key=f"pg-{strategy}") for _ in range(3)]
        assert len({str(reply.body) for reply in replies}) == 1
        assert replies[0].body["success"] is True
        assert replies[2].headers["Idempotency-Replayed"] == "true"
        assert service.get("/stock/once").body["stock"] == 9


def test_a_product_that_was_never_set_is_not_found(plain: Running):
    assert plain.get("/stock/unheard-of").status == 404
    assert plain.buy("unheard-of", "atomic").body["error"] == "Product not found"
    assert plain.buy("unheard-of", "none").body["error"] == "Product not found"


def test_a_strategy_whose_server_is_missing_is_refused(strict: Running):
    reply = strict.buy("p", "safe")
    assert (reply.status, reply.body["error"]) == (422, "Strategy refused")
    assert "--redis" in reply.body["message"]


def test_without_the_right_to_make_a_schema_other_locks_work(database: Database, own_redis: OwnRedis, tmp_path: Path):
    with database.connect() as session:
        session.execute("CREATE ROLE guest LOGIN PASSWORD 's3cret-pass'")
    host = url(database).partition("@")[2]
    given = ("--redis", own_redis.url, "--postgres", f"postgresql://guest:s3cret-pass@{host}")
    with serving(tmp_path, *given) as service:
        assert service.post("/api/locks/pg-advisory/x").status == 200
        reply = service.post("/api/locks/pg-row/x")
        assert (reply.status, reply.body["error"]) == (422, "Strategy refused")
        assert "locks that are rows of a table are refused" in service.log.read_text("utf-8")
        assert "s3cret" not in service.log.read_text("utf-8")


def test_health_names_the_database(plain: Running):
    body = plain.get("/health").body
    assert [server["role"] for server in body["servers"]] == ["redis", "postgres"]
    assert body["servers"][1]["product"] == "postgres"
    assert body["servers"][1]["address"].startswith("postgresql://")
    assert "@" not in body["servers"][1]["address"]


def test_a_postgres_that_is_lost_is_told_and_comes_back(plain: Running, strict: Running, database: Database):
    plain.reset("p", 5)
    strict.reset("p", 5)
    holder = strict.begin("POST", "/purchase?work=1s", b'{"product_id":"p","lock_strategy":"none"}')
    wait_until(lambda: row_locks(database), "a purchase has locked its row")
    assert plain.post("/api/locks/pg-advisory/x").status == 200
    database.stop(signal.SIGQUIT)
    for path in ("/purchase?work=0", "/api/locks/pg-advisory/x?wait=10s"):
        began = time.monotonic()
        reply = plain.post(path, {"product_id": "p"})
        assert (reply.status, reply.body["error"]) == (503, "Server unavailable"), path
        assert time.monotonic() - began < 1.5
    assert b" 503 " in whole_answer(holder)
    holder.close()
    assert plain.get("/health").status == 503
    assert plain.post("/api/locks/simple/x").status == 200
    database.start()
    wait_until(lambda: plain.get("/health").status == 200, "the service finds its server again")
    assert plain.buy("p").body["success"] is True
    assert plain.post("/api/locks/pg-advisory/x").status == 200
