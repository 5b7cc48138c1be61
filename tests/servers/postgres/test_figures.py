from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from pybench.errors import ServerError
from pybench.servers import postgres
from pybench.servers.postgres import (
    PostgresServer,
    await_sessions_gone,
    cpu,
    difference,
    drop_schema,
    prepare_schema,
    read_figures,
    schema_name,
)

NAME = schema_name("f19", 1)
BURN = "SELECT count(*) FROM generate_series(1, 1500000)"


def test_figures_count_what_happened_in_between(server: PostgresServer, session: psycopg.Connection):
    prepare_schema(session, NAME, 100)
    session.execute("SELECT pg_stat_force_next_flush()")
    before = read_figures(server)
    with server.connect(name=NAME) as client:
        for _ in range(50):
            client.execute(f"UPDATE {NAME}.locks SET value = value + 1 WHERE id = 5")
        for _ in range(7):
            client.execute("BEGIN")
            client.execute("ROLLBACK")
        client.execute(BURN)
    assert await_sessions_gone(session, NAME) == 0
    spent = difference(before, read_figures(server))
    drop_schema(session, NAME)
    assert spent.rows_updated == 50
    assert 50 <= spent.commits < 70
    assert spent.rollbacks == 7
    assert spent.deadlocks == 0
    assert spent.wal_bytes > 50 * 50
    assert spent.blocks_hit > 100
    assert spent.cpu_us is not None
    assert spent.cpu_us > 20_000
    assert set(spent.counters()) == {
        field for field in spent.__slots__ if field not in ("address", "run_id", "reset_at")
    }


def test_a_deadlock_is_counted(server: PostgresServer, session: psycopg.Connection):
    before = read_figures(server)
    with server.connect(name=NAME) as one, server.connect(name=NAME) as two:
        one.execute("SELECT pg_advisory_lock(1)")
        two.execute("SELECT pg_advisory_lock(2)")
        crossed = threading.Thread(target=lambda: _ignoring_errors(two, "SELECT pg_advisory_lock(1)"))
        crossed.start()
        _ignoring_errors(one, "SELECT pg_advisory_lock(2)")
        one.execute("SELECT pg_advisory_unlock_all()")
        crossed.join()
    await_sessions_gone(session, NAME)
    assert difference(before, read_figures(server)).deadlocks == 1


def _ignoring_errors(session: psycopg.Connection, statement: str) -> None:
    try:
        session.execute(statement)
    except psycopg.errors.DeadlockDetected:
        session.execute("SELECT pg_advisory_unlock_all()")


def test_processes_that_end_are_neither_forgotten_nor_counted_twice(
    server: PostgresServer, session: psycopg.Connection
):
    assert server.pid is not None
    before = cpu.cpu_ns(server.pid)
    for _ in range(3):
        with server.connect(name=NAME) as client:
            client.execute(BURN)
            while_it_lives = cpu.cpu_ns(server.pid)
    await_sessions_gone(session, NAME)
    after = cpu.cpu_ns(server.pid)
    assert before is not None
    assert while_it_lives is not None
    assert after is not None
    assert while_it_lives - before > 30_000_000
    assert -20_000_000 <= after - while_it_lives < 0.5 * (while_it_lives - before)


def test_a_given_server_of_this_machine_tells_its_processes(server: PostgresServer, session: psycopg.Connection):
    given = replace(server, pid=None, source="given")
    assert cpu.postmaster_of(given, session) == server.pid
    assert cpu.postmaster_of(replace(given, facts=replace(given.facts, pooled=True)), session) is None
    assert cpu.postmaster_of(replace(given, facts=replace(given.facts, peer="192.0.2.1")), session) is None
    assert read_figures(given).cpu_us is not None


def test_a_process_that_is_not_a_server_is_not_taken_for_one(server: PostgresServer):
    class Elsewhere:
        class info:
            backend_pid = os.getpid()

    assert cpu.postmaster_of(replace(server, pid=None), Elsewhere()) is None
    assert cpu.cpu_ns(2**22 + 1) is None
    assert Path("/proc/self/schedstat").exists()


def test_counters_that_were_reset_are_not_taken_for_a_figure(server: PostgresServer, session: psycopg.Connection):
    before = read_figures(server)
    session.execute("SELECT pg_stat_reset()")
    with pytest.raises(ServerError, match="reset"):
        difference(before, read_figures(server))


def test_a_restart_is_not_taken_for_a_figure_and_a_server_that_is_gone_is_told(server: PostgresServer):
    supervised, other = postgres.start("auto")
    reading = read_figures(other)
    supervised.stop()
    with pytest.raises(ServerError, match="restarted"):
        difference(read_figures(server), reading)
    with pytest.raises(ServerError, match=r"no such socket; it was postgres"):
        read_figures(other)
