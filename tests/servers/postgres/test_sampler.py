from __future__ import annotations

import os
import signal
import threading
import time

import psycopg
import pytest

from pybench.errors import ServerError
from pybench.servers import postgres
from pybench.servers.postgres import PostgresServer, Sampler
from pybench.servers.postgres.connecting import within

NAME = "pybench_5a3_1"


def wait_for(sampler: Sampler, looks: int) -> None:
    deadline = time.monotonic() + 5
    while sampler.samples.taken < looks:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_what_sessions_wait_for_is_counted(server: PostgresServer):
    with server.connect(name=f"{NAME}-1") as holder, server.connect(name=f"{NAME}-2") as waiter:
        holder.execute("SELECT pg_advisory_lock(7)")
        holder.execute("BEGIN")
        waiting = threading.Thread(target=lambda: waiter.execute("SELECT pg_advisory_lock(7)"))
        waiting.start()
        with server.connect(name="somebody else"), Sampler(server, NAME, every_s=0.01) as sampler:
            wait_for(sampler, 10)
        holder.execute("SELECT pg_advisory_unlock(7)")
        waiting.join()
    samples = sampler.samples
    assert samples.taken >= 10
    assert samples.most_sessions == 2
    assert samples.error is None
    assert set(samples.shares()) >= {"Lock:advisory", "Client:ClientRead (in transaction)"}
    assert sum(samples.shares().values()) == pytest.approx(1)
    assert sum(samples.seen.values()) == 2 * samples.taken


def test_a_session_that_works_is_told_from_one_that_waits(server: PostgresServer):
    with server.connect(name=NAME) as busy, server.connect(name=NAME), Sampler(server, NAME, every_s=0.01) as sampler:
        work = threading.Thread(target=lambda: busy.execute("SELECT count(*) FROM generate_series(1, 3000000)"))
        work.start()
        work.join()
    assert {"working", "Client:ClientRead"} <= set(sampler.samples.seen)


def test_nobody_to_look_at_is_fine(server: PostgresServer):
    # A name of its own: sessions that another test has closed end on the server a little later.
    with Sampler(server, f"{NAME}_of_nobody", every_s=0.01) as sampler:
        wait_for(sampler, 3)
    assert sampler.samples.seen == {}
    assert sampler.samples.shares() == {}
    assert sampler.samples.most_sessions == 0
    sampler.stop()


def test_it_ends_promptly_and_leaves_no_session(server: PostgresServer, session: psycopg.Connection):
    with Sampler(server, NAME, every_s=60) as sampler:
        wait_for(sampler, 1)
        begin = time.monotonic()
    assert time.monotonic() - begin < 1
    assert not [thread for thread in threading.enumerate() if thread.name == "pybench-sampler"]
    assert postgres.await_sessions_gone(session, "pybench-sampler") == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGSTOP])
def test_a_server_that_dies_or_hangs_does_not_take_the_trial_down(number: signal.Signals):
    supervised, server = postgres.start("auto")
    with Sampler(server, NAME, every_s=0.01) as sampler:
        wait_for(sampler, 2)
        if number is signal.SIGSTOP:
            with server.connect() as session:
                session.execute("BEGIN")
                pids = session.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()").fetchall()
                for (pid,) in pids:
                    os.kill(pid, number)
        else:
            os.kill(supervised.pid, number)
            deadline = time.monotonic() + 5
            while sampler.samples.error is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        taken = sampler.samples.taken
        begin = time.monotonic()
    assert time.monotonic() - begin < 1.5
    assert sampler.samples.taken >= taken >= 2
    if number is not signal.SIGSTOP:
        assert sampler.samples.error
    with Sampler(server, NAME) as late:
        pass
    assert number is signal.SIGSTOP or late.samples.error
    supervised.stop()


def test_a_statement_that_takes_too_long_is_cut_off(server: PostgresServer):
    session = server.connect()
    with pytest.raises(ServerError, match=r"does not answer within 200 ms"), within(server.endpoint, session, 0.2):
        session.execute("SELECT pg_sleep(30)")
    session.close()
