"""Faults of a server that pybench was given: only where the user says so, by its own commands, and said beforehand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.cli.consent import asking
from pybench.exits import Exit
from pybench.matrix import matrix_from_options
from pybench.running import job
from pybench.running.job import Job
from pybench.servers import Server, harm
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.probe import probe
from pybench.servers.redis.supervisor import SupervisedServer

PLAN = (
    "pause redis[0] at 100ms for 200ms, slow redis[0] at 400ms for 50ms, client-kill redis[0] at 550ms, "
    "script-flush redis[0] at 600ms"
)


@pytest.fixture
def given() -> Iterator[SupervisedServer]:
    server, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    yield server
    server.stop()


def test_the_pause_of_a_given_server_is_over_when_its_fault_ends_also_where_the_trial_ended_early(
    given: SupervisedServer,
):
    server = Server(given.endpoint, probe(given.endpoint), "given")
    pause = harm.ClientPause(server, seconds=0.8)
    began = time.monotonic()
    pause.begin()
    pause.end()
    assert time.monotonic() - began > 0.75
    with server.conversation(seconds=0.5) as conversation:
        assert conversation.ask("PING") == b"PONG"


@pytest.mark.usefixtures("quick")
def test_a_given_server_is_harmed_by_its_own_commands_and_goes_on(
    given: SupervisedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    url = given.endpoint.url.get_secret_value()
    options = {"trials": "1", "warmup": "50ms", "duration": "900ms", "hold": "1ms", "concurrency": "4"}
    matrix = matrix_from_options(strategy="mutex", faults=PLAN, redis=url, break_my_servers=True, **options)
    outcome = job.carry_out(Job(matrix, command=[], out=tmp_path / "run"), consent=asking(yes=False))
    assert (outcome.exit, outcome.error) == (Exit.OK, None)
    faults = outcome.run.faults
    assert faults["name"].tolist() == [
        "pause redis[0]",
        "slow redis[0]",
        "client-kill redis[0]",
        "script-flush redis[0]",
    ]
    assert faults["error"].isna().all()
    [row] = outcome.run.trials.to_dict("records")
    assert (row["verdict"], row["status"]) == ("SAFE", "complete")
    assert row["unavailable_ms"] >= 100, "CLIENT PAUSE held back all commands"
    assert given.is_running()
    said = capsys.readouterr().err
    assert f"--break-my-servers: the run makes {matrix.backends['redis'].shown_urls[0]} " in said
    assert "hold back the commands of all programs (pause)." in said
    assert said.count("--break-my-servers") == 4
