"""A run in the formats of other tools, as those tools read it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_benchmark.stats import Stats

import pybench
from pybench.report.exports import bencher, junit, pytest_benchmark

REFERENCE = Path(__file__).parents[2] / "results" / "reference"


@pytest.fixture(scope="module")
def run():
    return pybench.load(REFERENCE)


def changed(run, **columns: object):
    """`run` with other values in the trials and the summary of mutex with one client and one key."""
    cell = "mutex hold=200us"
    trials, summary = run.trials.copy(), run.summary.copy()
    for frame in (trials, summary):
        for name, value in columns.items():
            if name in frame:
                frame.loc[frame["cell"] == cell, name] = value
    return replace(run, trials=trials, summary=summary)


def cases(text):
    root = Xml.fromstring(text)
    return {case.get("name"): case for case in root.iter("testcase")}


def test_junit_has_a_case_for_every_verdict_and_threshold(run):
    root = Xml.fromstring(junit.build(run))
    suites = {suite.get("name"): suite for suite in root}
    assert len(suites["quickstart: verdicts"]) == len(run.summary)
    assert len(suites["quickstart: thresholds"]) == len(run.thresholds) > 0
    for suite in suites.values():
        assert int(suite.get("tests")) == len(suite)
        assert suite.get("failures") == "0"
    found = cases(junit.build(run))
    assert found["none with 64 clients, 1 key"].find("skipped").get("message").startswith("UNSAFE: ")
    assert found["mutex with 64 clients, 1 key"].find("skipped") is None
    figures = {one.get("name"): one.get("value") for one in found["mutex with 64 clients, 1 key"].iter("property")}
    assert figures["verdict"] == "SAFE"
    assert float(figures["safe_grants_per_s"]) > 1_000


def test_junit_fails_where_a_run_fails(run):
    broken = changed(run, verdict="UNSAFE", promise_broken=True, double_grants=3, violations=3)
    failure = cases(junit.build(broken))["mutex with 1 client, 1 key"].find("failure")
    assert "double grant" in failure.get("message")
    manifest = {
        **run.manifest,
        "matrix": {"expanded": {"thresholds": [{"where": {"strategy": "naive"}, "check": "acquire.p99 < 1us"}]}},
    }
    strict = replace(run, manifest=manifest)
    suite = next(one for one in Xml.fromstring(junit.build(strict)) if "thresholds" in one.get("name"))
    assert int(suite.get("failures")) == len(suite) > 0


def test_junit_holds_no_character_that_xml_forbids(run):
    odd = replace(run, manifest={**run.manifest, "name": "a\x00b\x1b[31m<&\ud800"})
    assert Xml.fromstring(junit.build(odd)).get("name") == "pybench a\ufffdb\ufffd[31m<&\ufffd"


def test_pytest_benchmark_reads_and_compares_it(run, tmp_path):
    (tmp_path / "0001_old.json").write_text(pytest_benchmark.build(run))
    (tmp_path / "0002_new.json").write_text(pytest_benchmark.build(changed(run, grants_per_s=1_000.0)))
    command = [sys.executable, "-m", "pytest_benchmark", "compare", "--group-by=name", "--columns=mean,rounds"]
    done = subprocess.run(
        [*command, "0001_old.json", "0002_new.json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("mutex with 1 client, 1 key ")]
    assert len(lines) == 2
    assert any("1,000.0000" in line for line in lines), "a thousand grants a second take 1,000 us each"
    assert all(line[-1] == "4" for line in lines), "a round a trial"


def test_only_locks_whose_speed_counts_are_benchmarks(run):
    names = {one["name"] for one in json.loads(pytest_benchmark.build(run))["benchmarks"]}
    assert not any(name.startswith("none ") for name in names)
    assert "mutex with 1 client, 1 key" in names
    unsafe = json.loads(pytest_benchmark.build(changed(run, verdict="UNSAFE")))["benchmarks"]
    assert "mutex with 1 client, 1 key" not in {one["name"] for one in unsafe}


def test_a_benchmark_says_what_its_rounds_are(run):
    found = {one["name"]: one for one in json.loads(pytest_benchmark.build(run))["benchmarks"]}
    one = found["mutex with 64 clients, 1 key"]
    trials = run.trials[run.trials["cell"] == "mutex concurrency=64 hold=200us"]
    assert one["stats"]["data"] == pytest.approx([1 / rate for rate in trials["grants_per_s"]])
    assert one["group"] == "64 clients, 1 key"
    assert one["extra_info"]["unit"] == "s"
    assert "time per grant" in one["extra_info"]["timer"]
    assert one["extra_info"]["verdict"] == "SAFE"


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=40))
def test_the_statistics_are_those_of_pytest_benchmark(rounds):
    theirs = Stats()
    for one in rounds:
        theirs.update(one)
    ours = pytest_benchmark.statistics_of(rounds)
    for name, value in theirs.as_dict().items():
        if isinstance(value, str) or name.endswith("outliers"):
            continue  # A value that is exactly on the border may be rounded to either side.
        assert ours[name] == pytest.approx(value, rel=1e-9), name


def test_bencher_has_measures_of_safe_cells_only(run):
    found = json.loads(bencher.build(run))
    assert set(found) == set(run.summary["cell"])
    assert set(found["none concurrency=64 hold=200us"]) == {"violations"}
    rate = found["mutex concurrency=64 hold=200us"]["safe-grants-per-s"]
    assert rate["lower_value"] <= rate["value"] <= rate["upper_value"]
