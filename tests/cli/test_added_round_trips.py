"""`pybench run` over a network of its own: from the option to the folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import QUICK, Pybench

from pybench.records import load


def test_one_run_compares_locks_on_two_networks(pybench: Pybench, tmp_path: Path):
    locks = ["-s", "mutex", "-s", "redlock(nodes=3)", "--concurrency", "8", "--keys", "100"]
    networks = ["--rtt", "0,per-server(2ms, 5ms, 9ms)"]
    answer = pybench("run", *locks, *networks, *QUICK, "--duration", "400ms", "--out", "folder")
    assert answer.code == 0, answer.err
    note = "To every call pybench itself adds a round-trip time: rtt per-server(2ms, 5ms, 9ms)."
    assert note in " ".join(answer.out.split())
    run = load(tmp_path / "folder")
    rows = {(row["strategy"], row["rtt"]): row for row in run.summary.to_dict("records")}
    far = "per-server(2ms, 5ms, 9ms)"
    assert {name: row["rtt_ms"] for name, row in rows.items()} == {
        ("mutex", "0"): 0.0,
        ("redlock", "0"): 0.0,
        ("mutex", far): 2.0,
        ("redlock", far): pytest.approx(16 / 3),
    }
    # Not faster than the one server, and than the majority of three.
    assert rows["mutex", far]["acquire_p50_us"] >= 2_000 * 0.999
    assert rows["redlock", far]["acquire_p50_us"] >= 5_000 * 0.999
    assert all(entry["rtt"] in ("0", far) for entry in run.manifest["cells"])
    assert {entry["rtt"] for entry in run.manifest["control"] if "rtt" in entry} == {"0"}
    # The baseline is that of the machine itself.
    assert all(entry["round_trip_us"] < 2_000 for entry in run.manifest["baseline"])


def test_a_rate_that_the_network_does_not_allow_is_told_before_the_run(pybench_inside: Pybench):
    told = pybench_inside(
        "plan", "-s", "mutex", "--concurrency", "4", "--keys", "100", "--rtt", "20ms", "--rate", "1000/s"
    )
    assert told.code == 0
    warning = "a rate of 1000/s cannot be kept: 4 clients of mutex at an rtt of 20ms make at most 99.75 grants/s"
    assert warning in " ".join(told.out.split())
