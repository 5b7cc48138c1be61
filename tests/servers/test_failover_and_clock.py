"""Two faults of servers that pybench started: a replica without the latest writes takes over; a wall clock jumps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pybench.errors import ServerError
from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.matrix.backends import Backend, named
from pybench.running import job
from pybench.running.job import Job, Outcome
from pybench.servers import Server, ServerPool, harm, supervised
from pybench.servers.redis import binaries, wall_clock
from pybench.servers.redis.config import AppendFsync
from pybench.servers.redis.supervisor import SupervisedServer

REDIS = named("redis", Backend())


@pytest.fixture
def pool() -> Iterator[ServerPool]:
    with ServerPool() as opened:
        yield opened


def ask(server: Server, *words: str) -> object:
    with server.conversation() as conversation:
        return conversation.ask(*words)


@pytest.mark.parametrize("appendfsync", ["off", "always"])
def test_a_replica_takes_over_without_what_it_was_not_told(pool: ServerPool, appendfsync: AppendFsync):
    [primary] = pool.redis(REDIS, appendfsync, replicas=2)
    with primary.conversation() as conversation:
        conversation.ask("SET", "heard", "1", "PX", "600000")
        assert conversation.ask("WAIT", "2", "1000") == 2
    failover = harm.Failover(pool, primary, 0.05)
    failover.cut()
    ask(primary, "SET", "unheard", "1")
    assert ask(primary, "GET", "unheard") == b"1", "the primary goes on until it is killed"
    failover.take_over()
    assert not psutil.pid_exists(primary.pid or 0)
    with pytest.raises(ServerError):
        ask(primary, "PING")
    failover.end()
    failover.settle()
    assert ask(primary, "MGET", "heard", "unheard") == [b"1", None]
    ttl = ask(primary, "PTTL", "heard")
    assert isinstance(ttl, int)
    assert 500_000 < ttl <= 600_000, "a lease ends when it would have ended"
    assert ask(primary, "SET", "again", "1") == b"OK"
    with primary.conversation() as conversation:
        conversation.ask("SET", "later", "1")
        assert conversation.ask("WAIT", "2", "2000") == 2, "all replicas follow the new primary"
    pool.check()


def test_a_failover_that_ends_early_leaves_healthy_servers(pool: ServerPool):
    [primary] = pool.redis(REDIS, replicas=1)
    failover = harm.Failover(pool, primary, 0.01)
    failover.cut()
    failover.end()
    failover.settle()
    with primary.conversation() as conversation:
        conversation.ask("SET", "later", "1")
        assert conversation.ask("WAIT", "1", "2000") == 1
    assert ask(primary.replicas[0], "GET", "later") == b"1"


def test_a_wall_clock_jumps_and_leases_end_with_it(pool: ServerPool):
    [server] = pool.redis(REDIS, moves_clock=True)
    [other] = pool.redis(REDIS)
    assert server.pid != other.pid, "only cells with this fault have such a server"
    ask(server, "SET", "lease", "1", "PX", "5000")
    clock = harm.Clock(pool, server, 10_000_000_000)
    clock.begin()
    assert ask(server, "GET", "lease") is None
    assert seconds_ahead(server) == pytest.approx(10, abs=2)
    assert seconds_ahead(other) == pytest.approx(0, abs=2)
    clock.end()
    assert seconds_ahead(server) == pytest.approx(0, abs=2)
    harm.Clock(pool, server, -5_000_000_000).begin()
    assert seconds_ahead(server) == pytest.approx(-5, abs=2)


def seconds_ahead(server: Server) -> float:
    told = ask(server, "TIME")
    assert isinstance(told, list)
    return float(bytes(told[0])) - time.time()


def test_a_killed_server_with_a_clock_leaves_no_shared_memory(pool: ServerPool):
    [server] = pool.redis(REDIS, moves_clock=True)
    pool.process_of(server).kill()
    assert not list(Path("/dev/shm").glob(f"*faketime*_{server.pid}"))
    pool.start_again(pool.process_of(server))
    assert ask(server, "PING") == b"PONG"


def test_a_server_with_a_clock_that_does_not_start_leaves_no_shared_memory(
    pool: ServerPool, monkeypatch: pytest.MonkeyPatch
):
    made: set[Path] = set()

    def silent(server: SupervisedServer) -> None:
        made.update(Path("/dev/shm").glob(f"*faketime*_{server.pid}"))

    # It runs, and no reply of it is seen.
    monkeypatch.setattr(SupervisedServer, "_look", silent)
    monkeypatch.setattr(supervised, "START_S", 1.0)
    with pytest.raises(ServerError, match="under libfaketime"):
        pool.redis(REDIS, moves_clock=True)
    assert made, "the library makes shared memory"
    assert not [path for path in made if path.exists()]


def test_without_the_library_the_fault_is_refused_by_its_name(pool: ServerPool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wall_clock, "FOLDERS", ("/nowhere",))
    with pytest.raises(ServerError, match="the fault clock needs libfaketime") as raised:
        pool.redis(REDIS, moves_clock=True)
    assert raised.value.exit is Exit.SERVER_UNREACHABLE
    assert raised.value.hint == "apt install libfaketime"


def test_a_server_that_does_not_run_under_the_library_is_told(pool: ServerPool):
    """Debian's Redis 7 does not: its memory allocator asks for the time before the library is ready."""
    path = named("path", Backend(source="path"))
    if binaries.find("path").version_numbers() >= (7, 2):
        assert ask(pool.redis(path, moves_clock=True)[0], "PING") == b"PONG"
        return
    with pytest.raises(ServerError, match="under libfaketime") as raised:
        pool.redis(path, moves_clock=True)
    assert "--servers wheel" in (raised.value.hint or "")


def test_the_busy_script_runs_on_every_redis(pool: ServerPool):
    """The Lua of Redis 7 has no clock."""
    [server] = pool.redis(named("path", Backend(source="path")))
    began = time.monotonic()
    harm.Slow(server, 0.1).begin()
    assert 0.1 <= time.monotonic() - began < 5


def run(folder: Path, plan: str, strategy: str = "mutex", **options: str) -> Outcome:
    usual = {"trials": "1", "warmup": "50ms", "hold": "500ms", "ttl": "600ms", "concurrency": "8", "keys": "4"}
    matrix = matrix_from_options(**{**usual, **options}, strategy=strategy, faults=plan)
    return job.carry_out(Job(matrix, command=[], out=folder))


@pytest.mark.usefixtures("quick")
def test_a_mutex_is_granted_twice_by_a_failover_and_breaks_no_promise(tmp_path: Path):
    # Grants come at -50 ms and 450 ms. The replica knows the first ones, whose leases end at 550 ms; those who hold the
    # lock when it takes over are unknown to it.
    outcome = run(tmp_path / "run", "failover(lag=400ms) redis[0] at 200ms", duration="1.2s")
    [row] = outcome.run.trials.to_dict("records")
    assert row["double_grants"] >= 1
    assert (row["verdict"], row["promise_broken"], row["status"]) == ("UNSAFE", False, "complete")
    assert outcome.exit is Exit.OK
    [fault] = outcome.run.faults.to_dict("records")
    assert fault["name"] == "failover(lag=400ms) redis[0]"
    assert outcome.run.faults["error"].isna().all()


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_quorum_whose_majority_jumps_is_granted_twice_and_breaks_no_promise(tmp_path: Path):
    plan = "clock(by=+10s) redis[0] at 300ms, clock(by=+10s) redis[1] at 300ms"
    timing = {"duration": "700ms", "hold": "600ms", "ttl": "5s", "keys": "1"}
    outcome = run(tmp_path / "run", plan, "redlock(nodes=3)", **timing)
    [row] = outcome.run.trials.to_dict("records")
    assert row["double_grants"] >= 1
    assert (row["verdict"], row["promise_broken"]) == ("UNSAFE", False)
    from pybench.report.markdown import build

    assert "the clock of redis\\[0\\] jumped, so this breaks no promise" in build(outcome.run)
