"""How often the comparison errs: on real trials of identical locks, and of a lock that is 1.5 times as fast.

`tools/identical_locks.py` measured the trials. A simulated run draws its loads from those that were measured, and its
blocks from those of one load: the locks of a block stay together, and which is which is drawn.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pybench.analysis.comparison.claims import Figure
from pybench.analysis.comparison.pairs import ENOUGH_BLOCKS, TESTED, Sample, compare_pairs
from pybench.matrix import load_matrix
from pybench.matrix.template import INIT_TEXT
from pybench.planning.plan import QUICK_TRIALS

TABLE = Path(__file__).parent / "support" / "identical.csv.gz"
EXAMPLES = Path(__file__).parents[2] / "examples"
QUIET = 20
"""Runs up to here had priority over the machine's other work, later ones had not."""
SHAPES = [(1, 2), (1, 4), (6, 3), (2, 8)]
"""Loads, and locks at each."""
RUNS = 100


@pytest.fixture(scope="module")
def measured():
    return pd.read_csv(TABLE)


def pools(rows):
    """Figure -> a table for each load: a row a block, a column a lock; logarithms. Blocks without a figure are out."""
    found = {}
    for figure in TESTED.keys() - {Figure.LIMIT, Figure.LONGEST_WAIT, Figure.STARVATION}:
        loads = [
            np.log(load.pivot_table(index=["run", "block"], columns="lock", values=figure.value).to_numpy())
            for _, load in rows.dropna(subset=figure.value).groupby(["concurrency", "keys", "rate_per_s"], dropna=False)
        ]
        found[figure] = [load[np.isfinite(load).all(axis=1)] for load in loads]
    # These trials did not record it: it is taken to vary three times as much as their p99.
    found[Figure.LONGEST_WAIT] = [3 * load for load in found[Figure.RESPONSE]]
    # Nor how many clients were served: any number of 64, as if each trial threw a die.
    rng = np.random.default_rng(7)
    found[Figure.STARVATION] = [np.log(rng.integers(1, 65, load.shape)) for load in found[Figure.THROUGHPUT]]
    return found


def pairs(figure, load, logs):
    sign = -1 if figure.least_is_best and figure is not Figure.STARVATION else 1
    return {
        (figure, load, one, other): Sample(list(sign * (logs[:, one] - logs[:, other])), figure, load, logs.shape[1])
        for one, other in combinations(range(logs.shape[1]), 2)
    }


def drawn(rng, pool, locks, blocks):
    parts = []
    while sum(part.shape[1] for part in parts) < locks:
        part = pool[rng.choice(len(pool), blocks, replace=False)]
        parts.append(part[:, rng.permutation(part.shape[1])])
    return np.concatenate(parts, axis=1)[:, :locks]


def simulated(rng, tables, loads, locks, *, figure=Figure.THROUGHPUT, better=1.0):
    """All pairs of a run as few trials long as any; at the first load lock 0 is so many times better in `figure`."""
    found = {}
    for load in range(loads):
        # At a load there are searches for a limit, or all other figures.
        for tested in (one for one in TESTED if one is not Figure.LIMIT):
            pool = tables[tested][rng.integers(len(tables[tested]))]
            logs = drawn(rng, pool, locks, ENOUGH_BLOCKS)
            if load == 0 and tested is figure:
                logs[:, 0] += math.log(better) * (-1 if figure.least_is_best else 1)
            found |= pairs(tested, load, logs)
    return compare_pairs(found)


@pytest.mark.parametrize(("loads", "locks"), SHAPES)
@pytest.mark.parametrize("quiet", [True, False])
def test_of_identical_locks_at_most_one_run_in_twenty_names_anybody(measured, loads, locks, quiet):
    rows = measured if not quiet else pd.concat([measured[measured["run"] <= QUIET], with_jain(measured)])
    rng, tables = np.random.default_rng(7), pools(rows)
    named = sum(any(one.differs for one in simulated(rng, tables, loads, locks).values()) for _ in range(RUNS))
    assert named <= 0.05 * RUNS


def with_jain(rows):
    """The later runs' index of fairness alone: the earlier ones did not record it."""
    later = rows[rows["run"] > QUIET].copy()
    later[["grants_per_s", "acquire_p99_us"]] = np.nan
    return later


def test_of_the_runs_as_they_were_at_most_one_in_twenty_names_anybody(measured):
    named = []
    for run, rows in measured.groupby("run"):
        found = {}
        for figure, loads in pools(rows).items():
            for load, logs in enumerate(loads):
                found |= pairs(figure, load, logs)
        named += [run] if any(one.differs for one in compare_pairs(found).values()) else []
    assert measured["run"].nunique() >= 20
    assert len(named) <= 0.05 * measured["run"].nunique()


@pytest.mark.parametrize(("loads", "locks"), SHAPES)
def test_a_lock_that_is_half_as_fast_again_is_named_in_nineteen_runs_of_twenty(measured, loads, locks):
    rows = pd.concat([measured[measured["run"] <= QUIET], with_jain(measured)])
    rng, tables = np.random.default_rng(8), pools(rows)
    named = 0
    for _ in range(RUNS):
        found = simulated(rng, tables, loads, locks, better=1.5)
        rivals = [found[Figure.THROUGHPUT, 0, 0, other] for other in range(1, locks)]
        named += all(one.differs and one.ratio.low > 1.03 for one in rivals)
    assert named >= 0.95 * RUNS


def test_a_p99_half_as_long_is_named_where_many_clients_wait(measured):
    closed = measured[(measured["run"] <= QUIET) & (measured["concurrency"] > 1) & measured["rate_per_s"].isna()]
    rng, tables = np.random.default_rng(9), pools(pd.concat([closed, with_jain(measured)]))
    runs = [simulated(rng, tables, 3, 3, figure=Figure.RESPONSE, better=2.0) for _ in range(RUNS)]
    named = sum(all(found[Figure.RESPONSE, 0, 0, other].differs for other in (1, 2)) for found in runs)
    assert named >= 0.95 * RUNS


def test_within_three_per_cent_nobody_is_ahead():
    exact = {0: Sample([math.log(1.029)] * 5, Figure.THROUGHPUT, 0, 2)}
    assert not compare_pairs(exact)[0].differs
    assert compare_pairs({0: Sample([math.log(1.05)] * 5, Figure.THROUGHPUT, 0, 2)})[0].differs


def test_whoever_runs_what_is_offered_measures_enough_trials(tmp_path):
    (tmp_path / "init.yaml").write_text(INIT_TEXT)
    # The smoke test says itself that nothing can be compared by it.
    files = [path for path in EXAMPLES.glob("*.yaml") if path.stem != "smoke"]
    trials = {path.stem: load_matrix(path).trials for path in [*files, tmp_path / "init.yaml"]}
    assert {name for name, count in trials.items() if count < ENOUGH_BLOCKS} == set()
    assert QUICK_TRIALS >= ENOUGH_BLOCKS
