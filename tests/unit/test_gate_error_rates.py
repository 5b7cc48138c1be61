"""How often a gate errs: on trials of A/A runs, and on the same trials with a head that is 10 % slower.

`tools/gate_noise.py` measured the trials. A simulated job draws the cells from those that were measured, and the blocks
of a cell from those of its runs. The three trials of a block stay together, and which of them is the base is drawn, as
the gate draws it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from pybench.analysis import gating, significance
from pybench.analysis.between_runs.figures import RESPONSE, THROUGHPUT
from pybench.analysis.gating import Blocks, Finding, blocks_by_default

TABLE = Path(__file__).parent / "support" / "gate_noise.csv.gz"
WITH_PRIORITY = 101
"""Runs from here on had priority over the machine's other work, earlier ones had not."""
SIDES = 3
CELLS = (1, 4, 16, 48)
JOBS = 120
SURE = 0.05


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    return pd.read_csv(TABLE)


def pools(rows):
    """For each cell the figure that decides, and a row a block with a column for each trial of the block."""
    found = []
    for cell, of_cell in rows.groupby("cell"):
        column = RESPONSE if "rate=" in cell else THROUGHPUT
        blocks = of_cell.pivot_table(index=["run", "block"], columns="turn", values=column).dropna().to_numpy()
        # A trial in which another process took all cores has no grant: then its figure has no logarithm.
        if len(blocks) >= 2 * gating.ENOUGH_BLOCKS:
            found.append((column, np.maximum(blocks, blocks[blocks > 0].min())))
    return found


def simulated(rng, known, cells, slowdown):
    """The blocks of a round; the first cell is slower. Each cell is one of those that were measured."""
    found = {}
    for number in range(cells):
        column, blocks = known[number]
        drawn = rng.permuted(blocks[rng.integers(len(blocks), size=blocks_by_default(cells))], axis=1)
        factor = 1 - slowdown if number == 0 else 1.0
        found[f"cell {number}"] = Blocks(column, drawn[:, 0], drawn[:, 1] * factor, drawn[:, 2] * factor)
    return found


def gate(rng, known, cells, slowdown=0.0):
    """The cells in which a job finds a regression."""
    chosen = [known[place] for place in rng.integers(len(known), size=cells)]
    first = gating.judge(simulated(rng, chosen, cells, slowdown))
    again = simulated(rng, chosen, cells, slowdown)
    second = gating.judge({cell: again[cell] for cell in gating.suspects(first)})
    return {cell for cell in first if gating.decided(cell, first, second) is Finding.SLOWER}


def alarms(known, cells, jobs=JOBS):
    rng = np.random.default_rng(cells)
    return sum(bool(gate(rng, known, cells)) for _ in range(jobs))


def at_most(found, jobs):
    """The upper bound of a rate at 95 %, of which `found` of `jobs` were seen."""
    return beta.ppf(1 - SURE, found + 1, jobs - found)


def test_the_trials_are_those_of_enough_runs(measured):
    assert measured["run"].nunique() >= 20
    assert (measured["run"] >= WITH_PRIORITY).sum() / SIDES >= 20 * len(pools(measured))
    assert measured.groupby(["run", "cell", "block"]).size().eq(SIDES).all()


@pytest.mark.parametrize("cells", CELLS)
def test_a_head_that_is_its_base_seldom_fails(measured, cells):
    assert at_most(alarms(pools(measured), cells), JOBS) <= 0.05


@pytest.mark.parametrize("cells", CELLS)
def test_a_slowdown_of_a_tenth_is_found(measured, cells):
    rows = measured[measured["run"] >= WITH_PRIORITY]
    known = [pool for pool in pools(rows) if pool[0] == THROUGHPUT]
    rng = np.random.default_rng(cells)
    found = [gate(rng, known, cells, slowdown=0.1) for _ in range(JOBS)]
    assert sum("cell 0" in slower for slower in found) >= 0.9 * JOBS
    assert sum(bool(slower - {"cell 0"}) for slower in found) <= 0.05 * JOBS


def test_without_its_rules_the_gate_fails_often(measured, monkeypatch):
    """Without Holm's correction, band, noise floor and confirming round: the simulation would show it."""
    known = pools(measured)
    assert alarms(known, 48, jobs=20) == 0

    def uncorrected(estimates):
        return {
            key: significance.Tested(one.ratio(0.05), not one.ratio(0.05).low <= 1 <= one.ratio(0.05).high)
            for key, one in estimates.items()
        }

    monkeypatch.setattr(gating, "holm", uncorrected)
    monkeypatch.setattr(gating, "_noise_floors", lambda cells: dict.fromkeys(cells, 0.0))
    monkeypatch.setattr(gating, "decided", lambda cell, first, _: first[cell].finding)
    assert alarms(known, 48, jobs=20) >= 10


def test_sides_that_were_not_measured_in_turn_fail_often(measured, monkeypatch):
    """Base and head from different runs: why the gate measures its base again."""
    known = pools(measured)

    def unpaired(rng, chosen, cells, _slowdown):
        found = {}
        for number in range(cells):
            column, blocks = chosen[number]
            half = len(blocks) // 2
            early, late = (part[rng.integers(half, size=blocks_by_default(cells))] for part in (blocks, blocks[half:]))
            found[f"cell {number}"] = Blocks(column, late[:, 0], early[:, 1], early[:, 2])
        return found

    monkeypatch.setitem(globals(), "simulated", unpaired)
    assert alarms(known, 4, jobs=20) >= 10
