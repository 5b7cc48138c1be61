"""A run of many short trials that is killed again and again, and resumed each time: no finished trial is lost or
measured again, and in the end the folder is like that of a run that nobody disturbed."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, Pybench, below, environment

from pybench.records import RunFolder, load
from pybench.servers.processes import ProcessId
from tests.waiting import wait_until

MATRIX = """
name: many
axes: {strategy: mutex, concurrency: [1, 2, 4], keys: [1, 8], hold: [0, 100us]}
trials: 2
warmup: 0
duration: 20ms
"""
TRIALS = 24
JUDGED = {0, 21}
"""Trials this short may have no grant on a busy machine: such a cell is undecided."""
FINISHED = re.compile(r"^\[(\d+)/(\d+)\]", re.MULTILINE)

AT_THE_END = ("trials.parquet", "latency.parquet", "violations.jsonl", "summary.csv", "report.html")
"""Files that are written after the last trial, in this order."""


@dataclass
class KilledRun:
    """One run, through all of its processes."""

    folder: Path
    reported: list[int] = field(default_factory=list)
    """The numbers of the trials that any process said to have finished."""
    measured: dict[tuple[str, int], Any] = field(default_factory=dict)
    """When each complete trial began, as first recorded."""

    @property
    def begun(self) -> bool:
        return (self.folder / "manifest.json").exists()

    @property
    def is_complete(self) -> bool:
        return self.begun and json.loads((self.folder / "manifest.json").read_text())["status"] == "complete"

    def go_on(self, moment: Callable[[str], bool], delay_s: float) -> None:
        """Begin or resume the run in a process of its own, and kill that `delay_s` after `moment` of its output."""
        if not self.begun:
            # Killed before there was a record: nothing is lost, and the run begins anew.
            shutil.rmtree(self.folder, ignore_errors=True)
        words = ["--resume", str(self.folder)] if self.begun else ["m.yaml", "--out", str(self.folder)]
        log = self.folder.with_name("stderr.txt")
        with (
            log.open("w") as said,
            subprocess.Popen(
                [*COMMAND, "run", *words],
                cwd=self.folder.parent,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            ) as process,
        ):
            try:
                what = "the moment has come"
                wait_until(lambda: process.poll() is not None or moment(log.read_text()), what, seconds=100)
                time.sleep(delay_s)
                ours = [identity for pid in below(process.pid) if (identity := ProcessId.of(pid))]
            finally:
                process.kill()
            code = process.wait()
        wait_until(lambda: not any(identity.is_alive() for identity in ours), "its servers end")
        assert code in (-signal.SIGKILL, *JUDGED), log.read_text()
        self.check(log.read_text())

    def check(self, said: str) -> None:
        """What was reported is on record, and what is on record stays as it was."""
        self.reported += [int(number) for number, _ in FINISHED.findall(said)]
        if not self.begun:
            assert not self.reported
            return
        opened = RunFolder.open(self.folder)
        manifest = opened.manifest
        slots = [
            (manifest["cells"][index]["id"], block) for block, row in enumerate(manifest["order"], 1) for index in row
        ]
        starts = opened.starts()
        assert {slots[number - 1] for number in self.reported} <= starts.keys()
        assert {key: starts.get(key) for key in self.measured} == self.measured
        self.measured = starts


def shape_of(folder: Path) -> dict[str, Any]:
    """What two complete records of one matrix have in common."""
    run = load(folder)
    return {
        "files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*")),
        "manifest": list(run.manifest),
        "cells": list(run.summary["cell"]),
        "trials": sorted(zip(run.trials["cell"], run.trials["trial"], strict=True)),
        "columns": [list(frame.columns) for frame in (run.trials, run.latency, run.timeline, run.violations)],
        "judged": {entry["strategy"] for entry in run.manifest["probes"]},
        "control": sorted(str(entry["backend"]) for entry in run.manifest["control"]),
        "baseline": len(run.manifest["baseline"]),
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The shape of the record of the same matrix, measured in one go."""
    place = tmp_path_factory.mktemp("undisturbed")
    (place / "m.yaml").write_text(MATRIX)
    command = [*COMMAND, "run", "m.yaml", "--out", "folder"]
    done = subprocess.run(command, cwd=place, env=environment(), capture_output=True, check=False)
    assert done.returncode in JUDGED, done.stderr
    return shape_of(place / "folder")


def finished(trials: int) -> Callable[[str], bool]:
    return lambda said: len(FINISHED.findall(said)) >= trials


def written(file: Path) -> Callable[[str], bool]:
    return lambda _: file.exists()


def killed_at(moments: int, draw: random.Random, place: Path) -> KilledRun:
    """A run that is killed so often: while it starts, among its trials, and while it writes its files."""
    (place / "m.yaml").write_text(MATRIX)
    run = KilledRun(place / "folder")
    most = TRIALS // moments
    last = sorted(draw.sample(range(len(AT_THE_END)), k=min(2, moments // 3)))
    for _ in range(moments - len(last)):
        if draw.random() < 0.25:
            run.go_on(lambda _: True, draw.uniform(0, 2))
        else:
            run.go_on(finished(draw.randint(0, most)), draw.uniform(0, 0.1))
    for number in last:
        if not run.is_complete:
            run.go_on(written(run.folder / AT_THE_END[number]), draw.uniform(0, 0.02))
    return run


def require_whole(run: KilledRun, pybench: Pybench, undisturbed: dict[str, Any]) -> None:
    """Resume `run` to its end, and compare its record with that of the undisturbed run."""
    if run.is_complete:
        # Killed after the last file of the record: only the report may be missing.
        answer = pybench("report", str(run.folder))
        assert answer.code == 0, answer.err
    else:
        answer = pybench("run", "--resume", str(run.folder))
        assert answer.code in JUDGED, answer.err
    run.check(answer.err)
    assert len(set(run.reported)) == len(run.reported), "no finished trial is measured again"
    assert len(run.measured) == TRIALS
    shutil.rmtree(run.folder / "parts", ignore_errors=True)
    assert shape_of(run.folder) == undisturbed


@pytest.mark.timeout(300)
def test_a_run_that_is_killed_five_times_is_whole_in_the_end(
    pybench: Pybench, tmp_path: Path, undisturbed: dict[str, Any]
):
    require_whole(killed_at(5, random.Random(17), tmp_path), pybench, undisturbed)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(10))
def test_a_run_that_is_killed_at_ten_of_a_hundred_moments_is_whole_in_the_end(
    pybench: Pybench, tmp_path: Path, undisturbed: dict[str, Any], seed: int
):
    require_whole(killed_at(10, random.Random(seed), tmp_path), pybench, undisturbed)
