"""Faults of servers that pybench started: each is carried out, and every server is healthy afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import psutil
import pytest

from pybench.errors import ServerError
from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.matrix.backends import Backend, named
from pybench.matrix.faults import Faults
from pybench.records import Run
from pybench.running import job
from pybench.running.job import Job, Outcome
from pybench.running.watch import Running, Silent, Slot
from pybench.servers import Server, ServerPool, harm
from pybench.servers.postgres import PostgresServer
from tests.waiting import wait_until

REDIS, POSTGRES = named("redis", Backend()), named("postgres", Backend())


@pytest.fixture(scope="module")
def pool() -> Iterator[ServerPool]:
    with ServerPool() as opened:
        yield opened


@pytest.fixture
def redis(pool: ServerPool) -> Iterator[Server]:
    [server] = pool.redis(REDIS)
    with server.conversation() as conversation:
        conversation.ask("SET", "held", "token", "PX", "600000")
    yield server
    harm.Pause(pool, server).end()  # A failed test must not stop the next one.


@pytest.fixture
def postgres(pool: ServerPool) -> Iterator[PostgresServer]:
    server = pool.postgres(POSTGRES)
    with server.session() as session:
        session.execute(b"CREATE TABLE IF NOT EXISTS kept (value int)")
        session.execute(b"INSERT INTO kept VALUES (1)")
    yield server
    harm.Pause(pool, server).end()


def held(server: Server) -> object:
    with server.conversation() as conversation:
        return conversation.ask("GET", "held")


def state(pid: int) -> str:
    return psutil.Process(pid).status()


def runs(process: psutil.Process) -> bool:
    # A session that has just ended is a zombie for as long as its parent is stopped.
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def now(pool: ServerPool, server: Server | PostgresServer) -> Server | PostgresServer:
    """The server as the pool knows it now."""
    return pool.redis(REDIS)[0] if isinstance(server, Server) else pool.postgres(POSTGRES)


def test_a_killed_redis_comes_back_empty_at_its_address(pool: ServerPool, redis: Server):
    kill = harm.Kill(pool, redis)
    kill.begin()
    assert not psutil.pid_exists(redis.pid or 0)
    with pytest.raises(ServerError):
        held(redis)
    assert pool.process_of(redis).end() == "was killed by SIGKILL"
    kill.end()
    assert held(redis) is None
    again = now(pool, redis)
    assert (again.endpoint, again.pid != redis.pid) == (redis.endpoint, True)
    assert state(again.pid or 0) != psutil.STATUS_ZOMBIE
    pool.check()


def test_a_killed_primary_has_its_replicas_again(pool: ServerPool):
    [primary] = pool.redis(REDIS, replicas=1)
    kill = harm.Kill(pool, primary)
    kill.begin()
    kill.end()
    kill.settle()
    with primary.conversation() as conversation:
        conversation.ask("SET", "held", "token")
        assert conversation.ask("WAIT", "1", "100") == 1


def test_a_server_that_did_not_end_is_left_as_it_is(pool: ServerPool, redis: Server):
    harm.Kill(pool, redis).end()
    assert (held(redis), now(pool, redis).pid) == (b"token", redis.pid)


@pytest.mark.parametrize("keeps_data", [True, False])
def test_a_restarted_redis_keeps_its_data_only_where_it_shall(pool: ServerPool, redis: Server, keeps_data: bool):
    restart = harm.Restart(pool, redis, keeps_data=keeps_data)
    restart.begin()
    restart.end()
    assert held(redis) == (b"token" if keeps_data else None)
    kill = harm.Kill(pool, redis)
    kill.begin()
    kill.end()
    assert held(redis) is None, "a kill after a restart brings no old data back"


def test_a_redis_that_appends_to_a_file_keeps_its_data_when_killed(pool: ServerPool):
    [server] = pool.redis(REDIS, "always")
    with server.conversation() as conversation:
        conversation.ask("SET", "held", "token")
    kill = harm.Kill(pool, server)
    kill.begin()
    kill.end()
    assert held(server) == b"token"
    lose = harm.Restart(pool, server, keeps_data=False)
    lose.begin()
    lose.end()
    assert held(server) is None


def test_a_paused_redis_replies_to_nobody_until_it_goes_on(pool: ServerPool, redis: Server):
    pause = harm.Pause(pool, redis)
    pause.begin()
    wait_until(lambda: state(redis.pid or 0) == psutil.STATUS_STOPPED, "the server is stopped")
    with pytest.raises(ServerError), redis.conversation(seconds=0.05) as conversation:
        conversation.ask("PING")
    pause.end()
    assert held(redis) == b"token"


def test_a_slow_redis_serves_nobody_meanwhile(redis: Server):
    began = time.monotonic()
    thread = threading.Thread(target=harm.Slow(redis, 0.3).begin)
    thread.start()
    time.sleep(0.1)
    assert held(redis) == b"token"
    assert time.monotonic() - began >= 0.3
    thread.join()


class LuaThatTires:
    """A server on virtual time, whose scripts count twice as fast at first."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    @contextmanager
    def conversation(self, *, seconds: float) -> Iterator[LuaThatTires]:
        yield self

    def ask(self, *call: str) -> None:
        fast = min(int(call[-1]), 200_000)
        self.now += fast * 4.5e-9 + (int(call[-1]) - fast) * 9e-9


def test_a_slow_redis_is_not_slow_for_twice_the_time(monkeypatch: pytest.MonkeyPatch):
    lua = LuaThatTires()
    monkeypatch.setattr(harm, "time", lua)
    harm.Slow(cast("Server", lua), 0.3).begin()
    assert 0.3 <= lua.now < 0.39


def test_a_flush_of_scripts_and_a_kill_of_clients_change_no_data(redis: Server):
    with redis.conversation() as ours, redis.conversation() as other:
        ours.ask("CLIENT", "SETNAME", "pybench-abcd")
        digest = ours.ask("SCRIPT", "LOAD", "return 1")
        assert isinstance(digest, bytes)
        harm.ScriptFlush(redis).begin()
        assert ours.ask("SCRIPT", "EXISTS", digest) == [0]
        harm.ClientKill(redis, "pybench-").begin()
        with pytest.raises(ServerError):
            ours.ask("PING")
        assert other.ask("PING") == b"PONG", "who watches the server is left alone"
    assert held(redis) == b"token"


@pytest.mark.parametrize("how", ["kill", "restart", "pause"])
def test_a_harmed_postgres_comes_back_with_its_data(pool: ServerPool, postgres: PostgresServer, how: str):
    kinds = {
        "kill": lambda: harm.Kill(pool, postgres),
        "restart": lambda: harm.Restart(pool, postgres, keeps_data=True),
        "pause": lambda: harm.Pause(pool, postgres),
    }
    done = kinds[how]()
    left = psutil.Process(postgres.pid).children(recursive=True)
    done.begin()
    if how == "pause":
        stopped = psutil.STATUS_STOPPED
        wait_until(lambda: {one.status() for one in left if runs(one)} == {stopped}, "all its processes are stopped")
    else:
        wait_until(lambda: not any(map(runs, left)), "all processes of the server have ended")
    done.end()
    with postgres.session(seconds=10) as session:
        row = session.execute(b"SELECT count(*) FROM kept").fetchone()
    assert row is not None
    assert int(str(row[0])) >= 1


def test_a_postgres_ends_the_sessions_of_a_trial_alone(postgres: PostgresServer):
    trial, other = postgres.connect(name="pybench_1"), postgres.connect(name="watcher")
    with contextlib.closing(trial), contextlib.closing(other):
        harm.ClientKill(postgres, "pybench_1").begin()
        with pytest.raises(Exception, match=r"terminat|closed"):
            trial.execute(b"SELECT 1")
        other.execute(b"SELECT 1")


def run(folder: Path, plan: str, strategy: str = "mutex", watch: Silent | None = None, **options: str) -> Outcome:
    usual = {"trials": "1", "warmup": "50ms", "duration": "700ms", "hold": "1ms", "concurrency": "8"}
    matrix = matrix_from_options(**{**usual, **options}, strategy=strategy, faults=plan)
    return job.carry_out(Job(matrix, command=[], out=folder), watch=watch)


def require_carried_out(recorded: Run, plan: str) -> None:
    """Each fault was done at its time, as far as a busy machine lets it."""
    faults = recorded.faults
    assert faults["name"].tolist() == [fault.name for fault in Faults.parse(plan).faults]
    assert faults["error"].isna().all()
    late_ns = faults["from_ns"] - faults["planned_from_ns"]
    assert (late_ns >= -5_000_000).all()
    assert (faults["until_ns"] >= faults["from_ns"]).all()


pytestmark = pytest.mark.usefixtures("quick")


def test_a_mutex_whose_server_forgets_is_unsafe_and_breaks_no_promise(tmp_path: Path):
    plan = "kill redis[0] at 200ms for 20ms"
    outcome = run(tmp_path / "run", plan, duration="1.5s", hold="1.2s", ttl="5s", connections="per-client")
    [row] = outcome.run.trials.to_dict("records")
    assert row["double_grants"] >= 1
    assert (row["verdict"], row["promise_broken"], row["status"]) == ("UNSAFE", False, "complete")
    assert outcome.exit is Exit.OK
    require_carried_out(outcome.run, plan)
    report = tmp_path / "run"
    assert (report / "faults.parquet").exists()


def test_a_quorum_goes_on_without_one_server_and_the_verdict_says_so(tmp_path: Path):
    plan = "kill redis[4] at 200ms"
    outcome = run(tmp_path / "run", plan, "redlock(nodes=5)")
    [row] = outcome.run.trials.to_dict("records")
    assert (row["verdict"], row["promise_broken"]) == ("SAFE", False)
    assert row["grants_during_per_s"] > row["grants_before_per_s"] / 10
    assert outcome.exit is Exit.OK
    require_carried_out(outcome.run, plan)
    from pybench.report.markdown import build

    assert "SAFE" in (text := build(outcome.run))
    assert "under kill redis\\[4\\]" in text


@pytest.mark.parametrize(
    "plan",
    [
        "pause redis[0] at 100ms for 150ms, slow redis[0] at 350ms for 100ms",
        "client-kill redis[0] at 100ms, script-flush redis[0] at 200ms, restart redis[0] at 300ms for 50ms",
    ],
)
def test_a_planned_fault_ends_no_run(tmp_path: Path, plan: str):
    outcome = run(tmp_path / "run", plan, "fenced", ttl="100ms")
    assert outcome.error is None
    [row] = outcome.run.trials.to_dict("records")
    assert (row["status"], row["verdict"], row["promise_broken"]) == ("complete", "SAFE", False)
    require_carried_out(outcome.run, plan)


@pytest.mark.parametrize("strategy", [pytest.param("pg-advisory", marks=pytest.mark.slow), "pg-lease"])
def test_a_database_that_is_killed_ends_no_run(tmp_path: Path, strategy: str):
    plan = "client-kill postgres at 100ms, kill postgres at 300ms for 100ms"
    outcome = run(tmp_path / "run", plan, strategy, ttl="200ms")
    assert outcome.error is None
    [row] = outcome.run.trials.to_dict("records")
    assert (row["status"], row["promise_broken"]) == ("complete", False)
    assert row["reconnects"] > 0
    require_carried_out(outcome.run, plan)


class Interrupting(Silent):
    """Sends Ctrl-C as soon as a server of this process is stopped."""

    def trial_begins(self, slot: Slot, trial: Running) -> None:
        if slot.number:
            threading.Thread(target=self._interrupt, daemon=True).start()

    def _interrupt(self) -> None:
        servers = lambda: [one for one in psutil.Process().children(recursive=True) if "valkey" in one.name()]  # noqa: E731
        wait_until(lambda: any(one.status() == psutil.STATUS_STOPPED for one in servers()), "the server is paused")
        os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_in_the_middle_of_a_pause_leaves_nothing(tmp_path: Path):
    before = {one.pid for one in psutil.process_iter()}
    outcome = run(tmp_path / "run", "pause redis[0] at 100ms", watch=Interrupting(), duration="20s")
    assert outcome.exit is Exit.INTERRUPTED
    left = [one for one in psutil.Process().children(recursive=True) if one.pid not in before]
    assert not [one for one in left if one.is_running() and one.status() == psutil.STATUS_STOPPED]
    [row] = outcome.run.trials.to_dict("records")
    assert row["status"] == "interrupted"
    assert outcome.run.faults["until_ns"].notna().all(), "the server went on before the run ended"


PAUSED = """
import time
from pybench.matrix.backends import Backend, named
from pybench.servers import ServerPool, harm
pool = ServerPool()
[server] = pool.redis(named("redis", Backend()))
harm.Pause(pool, server).begin()
print(server.pid, pool.process_of(server).folder, flush=True)
time.sleep(60)
"""


def test_a_killed_pybench_leaves_no_stopped_server():
    killed = subprocess.Popen([sys.executable, "-c", PAUSED], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    with killed.stdout:
        pid, folder = killed.stdout.readline().split()
    wait_until(lambda: state(int(pid)) == psutil.STATUS_STOPPED, "the server is stopped")
    killed.kill()
    killed.wait()
    wait_until(lambda: not psutil.pid_exists(int(pid)) and not Path(folder).exists(), "the server has ended")
