"""A thousand short trials of honest locks beside two busy loops: none may be blamed.

All strategies run without faults and under the faults of examples/faults.yaml, at a fifth of its times. A lock that is
blamed for what it did not do is the worst fault that pybench can have. Slow, so outside of `make test`:

    python -m pytest -m slow tests/boundary/test_clean_trials.py

PYBENCH_CLEAN_TRIALS says how many trials each cell gets instead of 11.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pybench.exits import Exit
from pybench.records import load
from pybench.strategies import CATALOGUE, Exclusion, Judge, ServerKind
from tests.mutants.build import ROOT

TRIALS = int(os.environ.get("PYBENCH_CLEAN_TRIALS", "11"))
BUSY_LOOPS = 2

OF_POSTGRES = [name for name, entry in CATALOGUE.items() if entry.server_kinds == (ServerKind.POSTGRES,)]
OF_REDIS = [name for name, entry in CATALOGUE.items() if name not in OF_POSTGRES and not entry.needs_guard]
ONE_STEP = [name for name, entry in CATALOGUE.items() if entry.needs_guard]
"""Without a guard the plan refuses them."""

REDIS_FAULTS = (
    "kill redis[0] at 100ms for 5ms",
    "kill redis[0] at 200ms",
    "pause redis[0] at 100ms for 120ms",
    "crash client[0] at 100ms",
)
POSTGRES_FAULTS = ("pause postgres at 100ms for 120ms", "crash client[0] at 100ms")

MATRIX = """\
schema: 1
name: clean
trials: {trials}
duration: 360ms
warmup: 20ms
axes:
  strategy: [{strategies}]
  faults: [none, {faults}]
fixed: {{concurrency: 32, keys: 16, hold: 100ms, ttl: 200ms}}
include: [{included}]
"""

PROMISING = {name for name, entry in CATALOGUE.items() if entry.exclusion is not Exclusion.NOTHING}
WITH_VERDICT = {name for name in CATALOGUE if name in PROMISING or CATALOGUE[name].judged_by is not Judge.BELIEF}


@contextmanager
def busy() -> Iterator[None]:
    """Two processes that take all the time of the machine's cores that they get."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    ("locks", "guarded", "faults"),
    [(OF_REDIS, ONE_STEP, REDIS_FAULTS), (OF_POSTGRES, [], POSTGRES_FAULTS)],
    ids=["redis", "postgres"],
)
def test_no_honest_lock_is_blamed_on_a_busy_machine(
    tmp_path: Path, locks: list[str], guarded: list[str], faults: tuple[str, ...]
):
    folder, matrix = tmp_path / "run", tmp_path / "matrix.yaml"
    included = ", ".join(
        f"{{strategy: {name}, guard: counter, faults: {plan!r}}}" for name in guarded for plan in ("none", *faults)
    )
    text = MATRIX.format(
        trials=TRIALS, strategies=", ".join(locks), faults=", ".join(map(repr, faults)), included=included
    )
    matrix.write_text(text, encoding="utf-8")
    with busy():
        done = subprocess.run(
            [sys.executable, "-m", "pybench", "run", str(matrix), "--out", str(folder)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    # Too little evidence in so short a trial is no fault of the lock, and a busy machine is no place to measure on.
    assert done.returncode in (Exit.OK, Exit.UNDECIDED, Exit.GENERATOR_LATE), done.stdout + done.stderr
    run = load(folder)
    assert len(run.trials) == (len(locks) + len(guarded)) * (1 + len(faults)) * TRIALS
    blamed = run.trials[run.trials["promise_broken"]]
    assert blamed.empty, blamed[["strategy", "faults", "trial", "verdict"]].to_string()
    assert not [probe for probe in run.manifest["probes"] if probe["promise_broken"]]
    found = run.trials[run.trials["findings"] > 0]
    assert found.empty, found[["strategy", "faults", "trial", "findings"]].to_string()
    healthy = run.trials[(run.trials["faults"] == "none") & run.trials["strategy"].isin(WITH_VERDICT)]
    unsafe = healthy[(healthy["verdict"] == "UNSAFE") & (healthy["outlived"] == 0)]
    assert unsafe.empty, unsafe[["strategy", "trial", "verdict"]].to_string()
