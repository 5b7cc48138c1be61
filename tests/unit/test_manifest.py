from __future__ import annotations

import json
import os
import platform
import subprocess

from support.trials import cell, totals, violation

from pybench.machine import cpu_model, describe_machine, virtualisation
from pybench.records import build_manifest, control_entry
from pybench.records.manifest import encode_manifest, working_commit


def built(**fields: object):
    usual = {
        "name": "quickstart",
        "seed": 7,
        "matrix_given": "backends:\n  main: redis://ann:s3cret@db\n",
        "matrix_expanded": {"backends": {"main": {"url": "redis://ann:s3cret@db"}}},
        "cells": [cell(), cell("naive", ttl_ms=50)],
        "order": [[0], [0]],
        "servers": [{"backend": "main", "address": "redis://ann:s3cret@db", "label": "redis 8.0"}],
        "placement": {"drivers": [1], "servers": [0]},
        "command": ["pybench", "run", "--redis", "redis://ann:s3cret@db"],
    }
    return build_manifest(**{**usual, **fields})


def test_no_password_is_in_a_manifest_wherever_it_stood():
    text = encode_manifest(built()).decode()
    assert "s3cret" not in text
    assert text.count("redis://ann:***@db") == 4


def test_a_manifest_says_what_is_needed_to_judge_and_repeat_a_run():
    manifest = json.loads(encode_manifest(built()))
    assert manifest["schema"] == 7
    assert (manifest["status"], manifest["seed"], manifest["order"]) == ("running", 7, [[0], [0]])
    leases = [(cell["ttl_ms"], cell["lease_ms"]) for cell in manifest["cells"]]
    assert leases == [(10_000, 10_000), (50, 1_000)]
    assert manifest["control"] == []
    assert manifest["versions"]["python"] == platform.python_version()
    assert manifest["versions"]["packages"]["numpy"]
    assert manifest["machine"]["cores"] == os.cpu_count()
    assert manifest["machine"]["memory_bytes"] > 0


def test_the_host_has_no_name_in_a_manifest():
    assert platform.node() not in built()["machine"].values()


def test_a_control_that_saw_an_overlap_is_caught():
    entry = control_entry(cell("none"), totals(grants=900, double_grants=800), [violation()])
    assert (entry["backend"], entry["caught"], entry["violations"]) == ("redis", True, 800)
    assert entry["sentence"].startswith("client 7 was granted")
    missed = control_entry(cell("none"), totals(grants=900), [])
    assert (missed["caught"], missed["sentence"]) == (False, None)


def git(directory, *arguments: str):
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True, env={**os.environ, **identity})


def test_the_commit_of_a_work_tree_carries_a_dirty_mark(tmp_path):
    git(tmp_path, "init", "-q")
    assert working_commit(tmp_path) is None
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "begin")
    clean = working_commit(tmp_path)
    assert len(clean["id"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "new").write_text("")
    assert working_commit(tmp_path) == {"id": clean["id"], "dirty": True}


def test_a_directory_without_git_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert working_commit(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert working_commit(tmp_path) is None


CPUINFO = "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nflags\t\t: fpu hypervisor sse\n"


def test_a_processor_and_a_hypervisor_are_read_from_cpuinfo():
    assert cpu_model(CPUINFO) == "Fast CPU @ 3 GHz"
    assert virtualisation(CPUINFO, "KVM") == "KVM"
    assert virtualisation(CPUINFO, "") == "hypervisor"
    assert virtualisation(CPUINFO.replace("hypervisor", ""), "KVM") is None
    assert cpu_model("") is None


def test_a_machine_can_always_be_described():
    assert describe_machine()["system"] == platform.system()
