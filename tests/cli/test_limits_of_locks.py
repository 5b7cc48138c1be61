"""`pybench run` with a search for the limit: on a real server, killed and resumed, unsafe, and what is shown of it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pandas as pd
from command_line import COMMAND, Pybench, environment

from pybench.records import load
from tests.waiting import wait_until

HOLD_S = 0.010
CEILING_PER_S = 1 / HOLD_S
"""No lock of one key is granted more often, whatever the machine."""
MATRIX = """
name: limit
trials: 1
warmup: 100ms
duration: 600ms
axes: {strategy: fair-queue, mode: "curve(start=60/s, within=0.3)"}
fixed: {concurrency: 16, hold: 10ms}
"""


def killed_run(folder: Path, probes: int) -> None:
    """Starts the run of `MATRIX`, and kills it once so many probes are saved."""
    (folder / "m.yaml").write_text(MATRIX)
    process = subprocess.Popen(
        [*COMMAND, "run", "m.yaml", "--out", "run"],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: len(list(folder.glob("run/parts/*.probe"))) >= probes, "probes are saved", seconds=60)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_a_killed_search_is_resumed_at_its_probe_and_finds_a_limit_below_the_ceiling(
    pybench: Pybench, pybench_inside: Pybench, tmp_path: Path
):
    killed_run(tmp_path, probes=3)
    before = load(tmp_path / "run").probes
    assert len(before) >= 3
    assert before["probe"].tolist() == list(range(1, len(before) + 1))

    answer = pybench("run", "--resume", "run", "--json")
    assert answer.code == 0, answer.err
    run = load(tmp_path / "run")
    assert run.manifest["status"] == "complete"
    probes, (row,) = run.probes, run.summary.to_dict("records")
    pd.testing.assert_frame_equal(probes[: len(before)], before)
    assert probes["probe"].tolist() == list(range(1, len(probes) + 1))
    assert row["verdict"] == "SAFE"
    # The first rate is at least 57/s. However busy the machine is, what is confirmed has held three times in a row.
    limit = row["limit_per_s"]
    assert 20 <= limit <= 1.02 * CEILING_PER_S
    confirmed = probes[(probes["phase"] == "confirm") & (probes["rate_per_s"] == limit)]
    assert confirmed["shown"].tolist()[-3:] == ["held"] * 3
    assert row["limit_low_per_s"] == limit < row["limit_high_per_s"]
    assert row["grants_per_s"] >= 0.97 * limit - 2
    too_fast = probes[probes["rate_per_s"] > 1.05 * CEILING_PER_S]
    assert not (too_fast["shown"] == "held").any()
    told = json.loads(answer.out)
    assert told["limits"][0]["limit_per_s"] == limit
    shares = [point["share"] for point in told["limits"][0]["curve"]]
    assert shares == [0.3, 0.6, 0.8, 0.95, 1.0]
    _is_shown_everywhere(pybench_inside, tmp_path, limit)


def _is_shown_everywhere(pybench: Pybench, folder: Path, limit: float) -> None:
    shown = pybench("show", "run")
    assert "limit" in shown.out
    assert "95 % of the limit" in shown.out
    assert float(pd.read_csv(folder / "run" / "summary.csv")["limit_per_s"].iloc[0]) == float(f"{limit:.9g}")
    assert 'id="limit"' in (folder / "run" / "report.html").read_text()
    assert "**Latency over load**" in (folder / "run" / "report.md").read_text()
    compared = json.loads(pybench("compare", "run", "run", "--json").out)
    assert "limit_per_s" in compared["cells"][0]["figures"]
    again = pybench("run", "--resume", "run")
    assert "no trial is left to run" in again.err


def test_an_unsafe_lock_ends_its_search_and_has_no_limit(pybench: Pybench, tmp_path: Path):
    options = ("--concurrency", "8", "--hold", "5ms", "--trials", "1", "--duration", "300ms", "--warmup", "0")
    answer = pybench("run", "-s", "none", "--mode", "saturate(start=400/s)", *options, "--out", "run")
    assert answer.code == 0, answer.err
    run = load(tmp_path / "run")
    (row,) = run.summary.to_dict("records")
    assert row["verdict"] == "UNSAFE"
    assert pd.isna(row["limit_per_s"])
    assert run.probes["shown"].tolist() == ["unsafe"]
    assert row["violations"] == run.probes["violations"].iloc[0] > 0
