"""`pybench run` of locks that need more than one server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import QUICK, Pybench

from pybench.records import load
from pybench.servers.processes import ProcessId
from pybench.servers.redis import binaries, supervisor
from tests.redis_client import connect

LOCKS = ["-s", "mutex", "-s", "redlock(nodes=3)", "--concurrency", "4", "--keys", "100", *QUICK]


def test_servers_are_started_for_the_largest_lock_and_a_primary_with_a_replica_besides(
    pybench: Pybench, tmp_path: Path
):
    answer = pybench("run", *LOCKS, "-s", "replicated", "--out", "folder")
    assert answer.code == 0, answer.err
    run = load(tmp_path / "folder")
    replicas = [len(server.get("replicas", ())) for server in run.manifest["servers"]]
    assert replicas == [0, 0, 0, 1]
    assert all(server["settings"]["compare_and_delete"] for server in run.manifest["servers"])
    assert set(run.trials["strategy"]) == {"mutex", "redlock", "replicated"}
    assert set(run.trials["server"]) == {run.manifest["servers"][0]["label"]}
    assert (run.trials["server_cpu_us_per_grant"] > 0).all()


def test_given_servers_are_each_asked_for_a_round_trip_and_keep_nothing_of_the_run(pybench: Pybench, tmp_path: Path):
    given = [supervisor.start(binaries.find("auto"), transport="tcp")[0] for _ in range(3)]
    options = [word for server in given for word in ("--redis", f"redis://127.0.0.1:{server.endpoint.port}")]
    try:
        answer = pybench("run", *LOCKS, *options, "--out", "folder")
        assert answer.code == 0, answer.err
        for server in given:
            with connect(server.endpoint) as client:
                assert client.keys("*") == []
            assert ProcessId.of(server.pid) is not None
    finally:
        for server in given:
            server.stop()
    manifest = json.loads((tmp_path / "folder" / "manifest.json").read_text())
    (baseline,) = manifest["baseline"]
    assert len(baseline["round_trips_us"]) == 3
    assert baseline["round_trip_us"] == baseline["round_trips_us"][0]
    assert len(manifest["matrix"]["expanded"]["backends"]["redis"]["urls"]) == 3


def test_a_lock_of_more_servers_than_are_given_is_bad_input(pybench: Pybench):
    answer = pybench("run", "-s", "redlock", *QUICK, "--redis", "redis://127.0.0.1:1", "--redis", "redis://127.0.0.1:2")
    assert answer.code == 40
    assert "needs 5 servers, and redis names 2" in " ".join(answer.err.split())


@pytest.mark.parametrize("nodes", [1, 7])
def test_the_plan_says_how_many_servers_are_needed(pybench_inside: Pybench, nodes: int):
    planned = json.loads(pybench_inside("plan", "-s", f"redlock(nodes={nodes})", "--json").out)
    assert [need["servers"] for need in planned["servers"]] == [nodes]
