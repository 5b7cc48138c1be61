"""Whole runs of locks of a database in which something happens that they have to survive: what is seen and said."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.running import job
from pybench.running.job import Job, Outcome
from pybench.servers import supervised
from pybench.servers.postgres import PostgresEndpoint, PostgresServer, binaries, probe, supervisor
from pybench.servers.postgres.pooler import pooler
from pybench.servers.redis.endpoint import Endpoint
from pybench.servers.redis.supervisor import SupervisedServer
from tests.redis_client import connect
from tests.servers.meddling import Meddler

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """One that is given to the runs."""
    process, facts = supervisor.start(binaries.find("auto"))
    yield PostgresServer(process.endpoint, facts, "given")
    process.stop()


def carried_out(
    folder: Path, watch: Meddler, where: PostgresEndpoint, strategy: str | list[str], **more: str
) -> Outcome:
    """One trial of half a second, without a warm-up."""
    options = {"concurrency": "4", "trials": "1", "warmup": "0", "duration": "500ms", "hold": "5ms", **more}
    url = f"postgresql://{where.user}@/{where.database}?host={where.folder}&port={where.port}"
    matrix = matrix_from_options(strategy=strategy, postgres=url, **options)
    return job.carry_out(Job(matrix, command=[], out=folder), watch=watch)


def trial_of(outcome: Outcome) -> pd.Series:
    assert outcome.error is None
    [row] = [row for _, row in outcome.run.trials.iterrows()]
    return row


def nothing() -> None:
    """Goes wrong."""


# Of each run's sessions, which are named like its schemas, those that hold.
END_HOLDERS = """
SELECT pg_terminate_backend(a.pid, 5000) FROM pg_stat_activity a WHERE a.application_name LIKE 'pybench\\_%' AND (
    EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted)
    OR a.state = 'idle in transaction')
"""


@pytest.mark.parametrize("lock", ["pg-advisory", "pg-advisory(scope=transaction)", "pg-row"])
def test_holders_whose_sessions_are_terminated_break_no_promise_and_it_is_told(database, tmp_path: Path, lock: str):
    ended: list[object] = []

    def terminate() -> None:
        # Not for longer than the trial takes: on a machine that is busy it finds fewer.
        until = time.monotonic() + 0.4
        with database.connect() as session:
            while len(ended) < 5 and time.monotonic() < until:
                ended.extend(session.execute(END_HOLDERS).fetchall())

    watch = Meddler(terminate, number=1)
    outcome = carried_out(tmp_path / "run", watch, database.endpoint, lock, hold="30ms")
    row = trial_of(outcome)
    assert outcome.exit is Exit.OK
    assert 0 < row["reconnects"] <= len(ended)
    assert row["lapsed"] > 0
    # Told, its holder goes on with its work.
    assert row["violations"] == row["sessions_lost"] + row["lease_overruns"]
    latency = outcome.run.latency
    assert latency[latency["phase"] == "handoff"]["count"].sum() > 0
    assert not row["promise_broken"]
    assert any("broke" in note for note in watch.notes)


def test_a_redis_that_is_wiped_costs_layered_no_update(database, tmp_path: Path):
    others = set(supervised.running)

    def wipe() -> None:
        [ours] = [one for one in set(supervised.running) - others if isinstance(one, SupervisedServer)]
        assert isinstance(ours.endpoint, Endpoint)
        with connect(ours.endpoint) as client:
            for _ in range(20):
                client.flushall()
                time.sleep(0.01)

    watch = Meddler(wipe, number=1)
    outcome = carried_out(
        tmp_path / "run", watch, database.endpoint, "layered", concurrency="8", hold="10ms", duration="4s"
    )
    row = trial_of(outcome)
    assert outcome.exit is Exit.OK
    assert row["verdict"] == "SAFE"
    assert row["lost_updates"] == 0
    assert row["final_value"] == row["acknowledged_writes"] > 0
    assert row["stale_writes"] > 0
    assert row["double_grants"] > 0, "two were at work"
    assert any("somebody flushed" in note for note in watch.notes)


OPTIMISTIC = ["pg-optimistic", "pg-serializable"]


@pytest.mark.parametrize("lock", OPTIMISTIC)
def test_a_contended_row_loses_no_update_and_its_conflicts_are_counted(database, tmp_path: Path, lock: str):
    # Long enough for what SAFE needs, also on a busy machine.
    asked = {"concurrency": "8", "hold": "2ms", "think": "exp(5ms)", "duration": "4s"}
    outcome = carried_out(tmp_path / "run", Meddler(nothing), database.endpoint, lock, **asked)
    row = trial_of(outcome)
    assert outcome.exit is Exit.OK
    assert row["verdict"] == "SAFE"
    assert row["bound_per_million"] > 0
    assert row["final_value"] == row["acknowledged_writes"] >= row["grants"] > 5
    assert row["conflicts"] > 10
    assert row["attempts_per_grant"] > 1.1


@pytest.mark.parametrize("lock", [*OPTIMISTIC, "layered"])
def test_a_writer_whom_no_guard_stops_is_a_lost_update(database, tmp_path: Path, lock: str):
    def undo() -> None:
        with database.connect() as session:
            [schema] = session.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pybench\\_%'").fetchone()
            until = time.monotonic() + 0.4
            while time.monotonic() < until:
                session.execute(
                    f'UPDATE "{schema}"."locks" SET value = value - 1, version = version - 1 WHERE value > 1'
                )
                time.sleep(0.002)

    # What is undone between a read and its write is written over, or a conflict: most of the time nobody is at work.
    asked = {"concurrency": "1", "hold": "1ms", "think": "5ms"}
    outcome = carried_out(tmp_path / "run", Meddler(undo, number=1), database.endpoint, lock, **asked)
    row = trial_of(outcome)
    assert outcome.exit is Exit.PROMISE_BROKEN
    assert row["verdict"] == "UNSAFE"
    assert row["violations"] == row["lost_updates"] == row["acknowledged_writes"] - row["final_value"] > 0


WHOLE = ["pg-advisory(scope=transaction)", "pg-lease", "pg-row", "pg-optimistic"]


def test_behind_a_pooler_only_the_lock_of_a_session_is_caught(tmp_path: Path):
    lent = "pg-advisory(wait=try)"
    # A server of its own: the pooler's sessions keep what was never unlocked.
    process, _ = supervisor.start(binaries.find("auto"))
    with pooler(process.endpoint) as where:
        assert probe(where).pooled
        asked = {"keys": "2", "concurrency": "8", "duration": "300ms"}
        outcome = carried_out(tmp_path / "run", Meddler(nothing), where, [lent, *WHOLE], **asked)
    with PostgresServer(process.endpoint, probe(process.endpoint), "given").connect() as session:
        left = session.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pybench%'").fetchone()
    process.stop()
    assert outcome.error is None
    verdicts = dict(zip(outcome.run.trials["cell"], outcome.run.trials["verdict"], strict=True))
    [unsafe] = [cell for cell, verdict in verdicts.items() if verdict != "SAFE"]
    assert "wait=try" in unsafe
    assert verdicts[unsafe] == "UNSAFE"
    assert len(verdicts) == 1 + len(WHOLE)
    # Which locks do not live behind a pooler is said in advance; that this one was there is not to be seen for certain.
    assert outcome.exit is Exit.PROMISE_BROKEN
    assert outcome.run.manifest["servers"][0]["settings"]["pooled"]
    assert left == (0,)
