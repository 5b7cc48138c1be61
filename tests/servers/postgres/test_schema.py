from __future__ import annotations

import json
import subprocess
import sys

import psycopg
import pytest

from pybench.errors import ServerError
from pybench.servers.postgres import (
    Effects,
    PostgresServer,
    await_sessions_gone,
    clear_schemas,
    drop_schema,
    end_sessions,
    locks_left,
    ownership,
    prepare_schema,
    read_effects,
    read_values,
    schema_name,
)
from pybench.servers.postgres.schema import left_schemas


@pytest.fixture
def name(session: psycopg.Connection):
    """A schema of ten keys."""
    name = schema_name("c0ffee", 7)
    prepare_schema(session, name, 10)
    yield name
    drop_schema(session, name)


def schemas(session: psycopg.Connection) -> set[str]:
    return {row[0] for row in session.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pybench%'")}


def test_every_key_has_its_row_before_the_trial(session: psycopg.Connection, name: str):
    rows = session.execute(f"SELECT id, fence, version, value, owner, expires_at::text FROM {name}.locks ORDER BY id")
    assert rows.fetchall() == [(key, 0, 0, 0, None, "-infinity") for key in range(10)]
    assert read_effects(session, name) == Effects(keys=10, values=0, versions=0, fences=0, owned=0)


def test_the_effects_of_the_work_are_read_back(session: psycopg.Connection, name: str):
    for _ in range(3):
        session.execute(f"UPDATE {name}.locks SET value = value + 1, version = version + 1, fence = fence + 2")
    session.execute(f"UPDATE {name}.locks SET owner = gen_random_uuid() WHERE id < 4")
    assert read_effects(session, name) == Effects(keys=10, values=30, versions=30, fences=60, owned=4)


def test_the_value_of_each_row_is_read_back_and_a_row_that_is_gone_has_none(session: psycopg.Connection, name: str):
    assert read_values(session, name, 10).tolist() == [0] * 10
    session.execute(f"UPDATE {name}.locks SET value = id * 100")
    session.execute(f"DELETE FROM {name}.locks WHERE id = 3")
    session.execute(f"INSERT INTO {name}.locks (id, value) VALUES (10, 7)")
    session.execute(f"UPDATE {name}.locks SET value = -5 WHERE id = 4")
    assert read_values(session, name, 10).tolist() == [0, 100, 200, 0, 0, 500, 600, 700, 800, 900]


def test_an_update_touches_no_index(session: psycopg.Connection):
    name = schema_name("c0ffee", "hot")
    prepare_schema(session, name, 1000)
    take = f"UPDATE {name}.locks SET owner = gen_random_uuid(), fence = fence + 1"
    pages = f"SELECT pg_relation_size('{name}.locks') / 8192"
    before = session.execute(pages).fetchone()
    session.execute("BEGIN")
    session.execute(f"{take} WHERE id % 2 = 0")  # Of these no old version can be tidied up yet.
    session.execute("COMMIT")
    for _ in range(500):
        session.execute(f"{take} WHERE id = 3")
    session.execute("SELECT pg_stat_force_next_flush()")
    updates = session.execute("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = %s", [name])
    assert updates.fetchone() == (1000, 1000)
    assert session.execute(pages).fetchone() == before
    drop_schema(session, name)


def test_a_hundred_thousand_keys_are_there_in_no_time(session: psycopg.Connection):
    name = schema_name("c0ffee", "many")
    prepare_schema(session, name, 100_000)
    assert read_effects(session, name).keys == 100_000
    drop_schema(session, name)
    assert schemas(session) == set()


def test_what_could_not_be_made_leaves_nothing(session: psycopg.Connection):
    session.execute("SET statement_timeout = '20ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        prepare_schema(session, schema_name("c0ffee", 8), 1_000_000)
    assert schemas(session) == set()


def test_only_names_of_ours_are_made_and_dropped(session: psycopg.Connection):
    for name in ("public", "pybench_", 'pybench_1_1"; DROP TABLE x', "pybench_x_1", "xpybench_1_1"):
        with pytest.raises(AssertionError):
            drop_schema(session, name)
        with pytest.raises(AssertionError):
            prepare_schema(session, name, 1)
    with pytest.raises(AssertionError):
        schema_name("RUN", 1)
    assert len(schema_name("f" * 32, 10**15)) <= 63


def test_dropping_twice_is_fine(session: psycopg.Connection, name: str):
    drop_schema(session, name)
    drop_schema(session, name)


def test_locks_that_a_trial_left_are_seen_and_ended(server: PostgresServer, session: psycopg.Connection, name: str):
    assert locks_left(session, name, name) == []
    holder = server.connect(name=f"{name}-1")
    other = server.connect(name="somebody")
    holder.execute("SELECT pg_advisory_lock(42)")
    holder.execute("BEGIN")
    holder.execute(f"SELECT 1 FROM {name}.locks WHERE id = 1 FOR UPDATE")
    other.execute("SELECT pg_advisory_lock(43)")
    left = locks_left(session, name, name)
    assert {(lock.kind, lock.mode) for lock in left} == {("advisory", "ExclusiveLock"), ("relation", "RowShareLock")}
    assert {lock.pid for lock in left} == {holder.info.backend_pid}
    assert {lock.state for lock in left} == {"idle in transaction"}
    assert all(lock.granted for lock in left)

    with pytest.raises(ServerError, match=rf"still locked by 1 session \(process {holder.info.backend_pid}\)"):
        drop_schema(session, name, seconds=0.1)
    assert end_sessions(session, name) == 1
    assert await_sessions_gone(session, name) == 0
    assert locks_left(session, name, name) == []
    assert other.execute("SELECT 1").fetchone() == (1,)
    other.close()
    holder.close()


LEAVES = """
import sys
from pybench.servers.postgres import PostgresEndpoint, prepare_schema, schema_name
from pybench.servers.postgres.connecting import connect
with connect(PostgresEndpoint.parse(sys.argv[1])) as session:
    prepare_schema(session, schema_name("dead", 1), 1)
"""


def test_a_schema_of_a_run_that_is_over_is_dropped_and_no_other(
    server: PostgresServer, session: psycopg.Connection, name: str
):
    subprocess.run([sys.executable, "-c", LEAVES, server.endpoint.address.replace("//", "//pybench@")], check=True)
    elsewhere = json.loads(ownership.note())
    elsewhere["pybench"]["place"] = "another boot of another machine"
    for other, note in (("pybench_e15e_1", json.dumps(elsewhere)), ("pybench_0_1", "hand-made"), ("pybench_x", "")):
        session.execute(f'CREATE SCHEMA "{other}"')
        session.execute(f"COMMENT ON SCHEMA \"{other}\" IS '{note}'")
    assert {schema.name: schema.over for schema in left_schemas(session)} == {
        name: False,
        "pybench_dead_1": True,
        "pybench_e15e_1": None,
        "pybench_0_1": None,
    }
    dropped, unknown = clear_schemas(session)
    assert [schema.name for schema in dropped] == ["pybench_dead_1"]
    assert [schema.name for schema in unknown] == ["pybench_0_1", "pybench_e15e_1"]
    assert "made by process" in str(unknown[1])
    assert schemas(session) == {name, "pybench_e15e_1", "pybench_0_1", "pybench_x"}
    for other in ("pybench_e15e_1", "pybench_0_1", "pybench_x"):
        session.execute(f'DROP SCHEMA "{other}"')


def test_a_schema_of_another_user_is_not_dropped(server: PostgresServer, session: psycopg.Connection):
    subprocess.run([sys.executable, "-c", LEAVES, server.endpoint.address.replace("//", "//pybench@")], check=True)
    session.execute("CREATE ROLE low LOGIN")
    session.execute("SET ROLE low")
    [schema] = left_schemas(session)
    session.execute("RESET ROLE")
    assert schema.over is None
    drop_schema(session, schema.name)
    session.execute("DROP ROLE low")
