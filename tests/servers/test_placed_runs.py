"""Whole runs of servers that pybench starts: the cores that they keep to are those that the record names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybench.matrix import matrix_from_options
from pybench.planning.placement import place
from pybench.running.job import Job, carry_out


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one core nothing is bound to any")
def test_where_a_run_goes_is_decided_once_for_its_servers_its_threads_and_its_record(tmp_path: Path):
    allowed = os.sched_getaffinity(0)
    placed = place(allowed, threads=1)
    bound: list[set[int]] = []

    def consent(_plan, servers) -> None:
        bound.extend(os.sched_getaffinity(server.pid) for server in servers)
        # As when somebody meanwhile binds the command to a core, by taskset -p.
        os.sched_setaffinity(0, {min(allowed)})

    matrix = matrix_from_options(strategy="mutex", trials="1", warmup="0", duration="50ms")
    try:
        outcome = carry_out(Job(matrix, command=[], out=tmp_path / "run"), consent=consent)
    finally:
        os.sched_setaffinity(0, allowed)
    assert outcome.run.manifest["placement"] == placed.manifest()
    assert bound == [set(placed.servers)]
