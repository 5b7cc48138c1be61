"""Which cores the threads and the servers of a run keep to."""

from __future__ import annotations

import os

import pytest

from pybench.matrix import matrix_from_mapping
from pybench.planning.placement import Placement, place, placement_of
from pybench.planning.plan import make_plan
from pybench.servers.local_processes import LocalServer

MATRIX = {"name": "placed", "axes": {"strategy": ["mutex"], "threads": [1, 2], "concurrency": [4]}}


@pytest.mark.parametrize(
    ("cores", "threads", "placed"),
    [
        ([0, 1], 1, Placement(drivers=(1,), servers=(0,))),
        ([6, 2, 4, 0], 2, Placement(drivers=(4, 6), servers=(0, 2))),
        ([0, 1], 2, Placement()),
        ([3], 1, Placement()),
    ],
)
def test_each_thread_gets_a_core_and_the_servers_the_others_or_nothing_is_bound(cores, threads, placed):
    assert place(cores, threads) == placed


def test_servers_of_which_there_are_more_than_cores_are_bound_to_none():
    assert place([0, 1], 1, servers=2) == Placement(drivers=(1,))
    assert place([0, 1, 2], 1, servers=2) == Placement(drivers=(2,), servers=(0, 1))


def test_a_cell_over_many_servers_decides_for_the_whole_run(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    matrix = matrix_from_mapping({"name": "several", "axes": {"strategy": ["mutex", "redlock(nodes=3)"]}})
    assert placement_of(matrix, make_plan(matrix).cells) == Placement(drivers=(1,))


def test_the_cell_with_most_threads_decides_for_the_whole_run(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2})
    matrix = matrix_from_mapping(MATRIX)
    assert placement_of(matrix, make_plan(matrix).cells) == Placement(drivers=(1, 2), servers=(0,))


def test_where_all_servers_are_given_nothing_is_bound(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    given = {"backends": {"theirs": {"kind": "redis", "url": "redis://localhost"}}}
    matrix = matrix_from_mapping({**MATRIX, **given})
    assert placement_of(matrix, make_plan(matrix).cells) == Placement()


@pytest.mark.parametrize(
    ("given", "placed"),
    [
        ({}, Placement(drivers=(3,), servers=(0, 1, 2))),
        ({"theirs": "postgresql://db/shop"}, Placement(drivers=(3,), servers=(0, 1, 2))),
        ({"theirs": "postgresql://db/shop", "cache": "redis://cache"}, Placement()),
    ],
    ids=["both started", "one given", "both given"],
)
def test_a_lock_that_is_on_two_backends_is_placed_where_one_of_them_is_started(monkeypatch, given, placed):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    own = {"redis": {"kind": "redis"}} if len(given) == 1 else {}
    backends = {name: {"url": url} for name, url in given.items()} | own
    named = {"backends": backends} if backends else {}
    matrix = matrix_from_mapping({"name": "both", "axes": {"strategy": "layered"}, **named})
    assert placement_of(matrix, make_plan(matrix).cells) == placed


@pytest.mark.parametrize("given", [{}, {"redis": {"url": "redis://cache"}, "postgres": {"kind": "postgres"}}])
def test_the_server_of_a_guarded_resource_takes_part(monkeypatch, given):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    named = {"backends": given} if given else {}
    fixed = {"guard": "counter", "guard_on": "postgres"}
    matrix = matrix_from_mapping({"name": "guarded", "axes": {"strategy": ["mutex"]}, "fixed": fixed, **named})
    assert placement_of(matrix, make_plan(matrix).cells) == Placement(drivers=(1,)), "two servers and one core"


def beside(*given: tuple[int, ...], cores: range, threads: int = 1) -> Placement:
    found = tuple(LocalServer("redis://127.0.0.1", 7, cores, one_process=True) for cores in given)
    return Placement().beside(found, cores, threads)


def test_driving_threads_keep_off_the_cores_that_a_given_server_is_bound_to():
    assert beside((3,), cores=range(4)).drivers == (2,)
    assert beside((2, 3), (1,), cores=range(4)).drivers == (0,)
    assert beside((1, 2, 3), cores=range(4), threads=2).drivers == (2, 3), "there are too few others"


def test_beside_a_given_server_that_may_run_anywhere_driving_threads_do_not_wander():
    assert beside((0, 1, 2, 3), cores=range(4), threads=2).drivers == (2, 3)
    assert beside((0, 1), cores=range(2)).drivers == (1,)
    assert beside((0, 1), cores=range(2), threads=2).drivers == (), "no core would be left"
    assert beside(cores=range(2)) == Placement()


def test_beside_servers_that_pybench_starts_a_given_one_moves_no_thread():
    ours, theirs = Placement(drivers=(1,), servers=(0,)), LocalServer("redis://h", 7, (1,), one_process=True)
    assert ours.beside([theirs], range(2), 1) == Placement((1,), (0,), (theirs,))


def test_a_server_that_runs_on_the_core_of_a_thread_is_seen(monkeypatch):
    placed = beside((0, 1), (0, 1), cores=range(2))
    for core, shares in ((0, False), (1, True), (None, None)):
        monkeypatch.setattr("pybench.planning.placement.core_of", lambda _pid, core=core: core)
        assert placed.shares_core() is shares
    sessions = LocalServer("postgresql:///x", 7, (0, 1), one_process=False)
    assert Placement().beside([sessions], range(2), 1).shares_core() is None


def test_a_server_that_is_bound_to_the_cores_of_the_threads_is_told_of_before_anything_is_measured():
    assert beside((0, 1), cores=range(2)).notes() == []
    tight = Placement(drivers=(1,), given=(LocalServer("redis://h", 7, (1,), one_process=True),))
    assert tight.notes() == [
        "redis://h is bound to the cores that the load generator needs (1): both share these cores, which slows both"
    ]
