"""Looks for one mutant by `pybench fuzz` or `pybench run`, and for violations of the honest lock in the same way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.analysis.verdicts import judge_cell
from pybench.exits import Exit
from pybench.matrix.durations import format_duration
from pybench.planning.probes import LATE_HOLD_NS
from pybench.records import load
from tests.mutants.build import CHOOSER, ROOT
from tests.mutants.table import FAULTS, Case, Finder

LATE_HOLD = format_duration(LATE_HOLD_NS)
CHANCE = re.compile(r" at [\d.]+ s\b| \([^)]*\)")
"""What of a sentence about a violation is different in each run."""

MOST_SEEDS = 10_000
LEAST_HONEST_SEEDS = 1_000
"""So many worlds of an honest lock are searched, also where the mutant was found in the first."""


@dataclass(frozen=True)
class Caught:
    """The result of one search."""

    is_caught: bool
    what: str
    """What was found, and where."""
    seconds: float
    """On the wall, the start of Python included."""
    seeds: int | None = None
    """Of a search by fuzz: the worlds up to the one that went wrong."""


def hunt(package: Path, case: Case, folder: Path, *, honest: bool, seeds: int = MOST_SEEDS) -> Caught:
    """The search of `case` for its mutant, or of the same lock without a mistake; `folder` takes the run."""
    began = time.monotonic()
    arguments = {
        Finder.FUZZ: ["fuzz", "--seeds", str(seeds)],
        Finder.RUN: ["run", str(ROOT / FAULTS), "--trials", "1", "--out", str(folder)],
    }[case.finder]
    arguments += ["--json", "--strategy", case.strategy, *case.options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYBENCH_")}
    done = subprocess.run(
        [sys.executable, "-m", "pybench", *arguments],
        cwd=package,
        env={**kept, "PYTHONPATH": str(package), **({} if honest else {CHOOSER: case.mutant})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if not done.stdout:
        raise RuntimeError(f"pybench {' '.join(arguments)} of {case.mutant}: {done.stderr}")
    answer = json.loads(done.stdout)
    is_caught = done.returncode == Exit.PROMISE_BROKEN
    if not is_caught and done.returncode != Exit.OK:
        # Too little evidence is no finding, and says nothing against an honest lock.
        assert done.returncode == Exit.UNDECIDED, done.stderr
    seconds = time.monotonic() - began
    if case.finder is Finder.FUZZ:
        return Caught(is_caught, _by_fuzz(answer), seconds, answer["worlds"])
    return Caught(is_caught, _by_run(folder), seconds)


def _by_fuzz(answer: dict[str, Any]) -> str:
    if not answer["broken"]:
        return "nothing"
    shortest = answer["shortest"][0]
    violation = shortest["violation"]
    kind = shortest["sentence"] if violation is None else violation["kind"].replace("-", " ")
    faults = ", ".join(dict.fromkeys(shortest["faults"])) or "no fault"
    return f"seed {answer['broken'][0]} ({faults}): {kind}"


def _by_run(folder: Path) -> str:
    """What of a run shows the mistake: a probe before the first trial, or a cell."""
    run = load(folder)
    for probe in run.manifest["probes"]:
        if probe["promise_broken"]:
            part = "late probe" if probe["hold"] == LATE_HOLD else "probe"
            return f"{part}: {CHANCE.sub('', probe['reason']).split(':', 1)[-1].strip()}"
    for _, trials in run.trials.groupby("cell"):
        if trials["promise_broken"].any():
            reason = judge_cell(trials, control_caught=True).reason
            return f"cell with {trials['faults'].iloc[0]}: {reason}"
    return "nothing"
