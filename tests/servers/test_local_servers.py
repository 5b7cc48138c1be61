"""Given servers of this machine: their process is found, and it is not mistaken for what stands before it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybench.matrix import matrix_from_options
from pybench.running.job import Job, carry_out
from pybench.servers import Server, postgres
from pybench.servers.answered import GIVEN
from pybench.servers.local_processes import core_of, local_servers
from pybench.servers.postgres.server import PostgresServer
from pybench.servers.redis import binaries, supervisor
from pybench.servers.redis.probe import probe
from tests.fault_proxy import Fault, FaultProxy


@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_the_process_of_a_given_redis_is_found(transport):
    process, facts = supervisor.start(binaries.find("auto"), transport=transport)
    try:
        (found,) = local_servers([Server(process.endpoint, facts, GIVEN)])
        assert (found.pid, set(found.cores)) == (process.pid, os.sched_getaffinity(process.pid))
        assert found.address == process.endpoint.address
        assert core_of(found.pid) in found.cores
        assert local_servers([Server(process.endpoint, facts, "wheel", process.pid)]) == (), "that one is pybench's own"
    finally:
        process.stop()
    assert core_of(found.pid) is None


@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_the_process_of_a_given_postgres_is_found(transport):
    process, facts = postgres.supervisor.start(postgres.binaries.find("auto"), transport=transport)
    try:
        given = PostgresServer(process.endpoint, facts, GIVEN)
        (found,) = local_servers([given])
        assert (found.pid, found.one_process) == (process.pid, False)
    finally:
        process.stop()


def test_what_stands_before_a_server_is_not_taken_for_it():
    process, _ = supervisor.start(binaries.find("auto"))
    try:
        with FaultProxy(process.endpoint, Fault(), b"never sent") as proxy:
            assert local_servers([Server(proxy.endpoint, probe(proxy.endpoint), GIVEN)]) == ()
    finally:
        process.stop()


@pytest.mark.usefixtures("quick")
def test_a_run_on_a_given_server_binds_its_own_threads_alone_and_says_where_all_ran(tmp_path: Path):
    process, _ = supervisor.start(binaries.find("auto"), transport="tcp")
    try:
        before, own = os.sched_getaffinity(process.pid), os.sched_getaffinity(0)
        url = f"redis://127.0.0.1:{process.endpoint.port}"
        matrix = matrix_from_options(strategy="mutex", redis=url, trials="2", warmup="0", duration="50ms")
        outcome = carry_out(Job(matrix, command=[], out=tmp_path / "run"))
        assert os.sched_getaffinity(process.pid) == before
        assert os.sched_getaffinity(0) == own
    finally:
        process.stop()
    manifest = outcome.run.manifest
    assert [server["pid"] for server in manifest["local_servers"]] == [process.pid]
    assert manifest["placement"] == {"drivers": sorted(own)[-1:] if len(own) > 1 else [], "servers": []}
    assert outcome.run.trials["shares_core"].notna().all() == (len(own) > 1)
