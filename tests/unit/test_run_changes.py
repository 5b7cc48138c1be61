"""Two runs compared: which cells belong together, what became of verdicts and figures, and how often it errs."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.comparisons import lock, run_of, unsafe

import pybench
from pybench.analysis.between_runs import Effect, Turn, compare_runs
from pybench.analysis.between_runs.figures import FIGURES, LIMIT, RESPONSE, THROUGHPUT, change_figures
from pybench.analysis.between_runs.matching import match_cells
from pybench.analysis.between_runs.settings import differences
from pybench.records import Run

SUPPORT = Path(__file__).parent / "support"
EMPTY = pd.DataFrame({"cell": []})


def run(*cells: dict[str, object], **manifest: object) -> Run:
    """A run made by hand; `promise_broken` of a cell is that of its trials."""
    summary, trials = run_of(*cells)
    broken = {str(number): bool(cell.get("promise_broken")) for number, cell in enumerate(cells)}
    trials["promise_broken"] = [broken[cell] for cell in trials["cell"]]
    return Run(Path(), {"name": "hand", **manifest}, trials, EMPTY, EMPTY, EMPTY, summary)


def only(changes):
    (change,) = changes.cells
    return change


@pytest.mark.parametrize(
    ("grants", "effect"),
    [(10_000, Effect.SAME), (8_000, Effect.SLOWER), (12_000, Effect.FASTER), (10_250, Effect.UNKNOWN)],
)
def test_the_effect_follows_from_the_ratio_and_its_interval(grants, effect):
    change = only(compare_runs(run(lock("mutex", 10_000, trials=8)), run(lock("mutex", grants, trials=8))))
    rate = change.figure(THROUGHPUT)
    assert change.effect is effect is rate.effect
    assert rate.ratio.value == pytest.approx(grants / 10_000, rel=1e-6)
    assert rate.ratio.low < rate.ratio.value < rate.ratio.high
    assert (rate.ratio.high < 1 / 1.03) == (effect is Effect.SLOWER)
    assert (rate.ratio.low > 1.03) == (effect is Effect.FASTER)


def test_a_wider_band_calls_more_the_same():
    old, new = run(lock("mutex", 10_000, trials=8)), run(lock("mutex", 9_200, trials=8))
    assert only(compare_runs(old, new)).effect is Effect.SLOWER
    assert only(compare_runs(old, new, band=0.2)).effect is Effect.SAME


def test_a_longer_wait_is_slower_and_decides_an_open_loop():
    old = run(lock("mutex", 1_000, acquire_p99_us=100.0, rate_per_s=1_000.0))
    new = run(lock("mutex", 1_000, acquire_p99_us=200.0, rate_per_s=1_000.0))
    change = only(compare_runs(old, new))
    assert change.figure(THROUGHPUT).effect is Effect.SAME
    assert change.figure(RESPONSE).effect is change.effect is Effect.SLOWER


def test_a_lock_that_became_unsafe_is_a_regression_however_fast_it_is():
    changes = compare_runs(run(lock("mutex", 10_000)), run(unsafe("mutex")))
    change = only(changes)
    assert (change.turn, change.effect, change.figures) == (Turn.REGRESSION, None, ())
    assert changes.headline == "regression: mutex became unsafe"


@pytest.mark.parametrize(
    ("old", "new", "turn"),
    [
        (unsafe("mutex"), lock("mutex", 9), Turn.FIXED),
        (lock("mutex", 9), lock("mutex", 9, verdict="UNDECIDED"), Turn.LOST),
        (lock("mutex", 9, verdict="VOID"), lock("mutex", 9), Turn.PROVED),
        (lock("mutex", 9, verdict="VOID"), lock("mutex", 9, verdict="UNDECIDED"), Turn.OTHER),
        (unsafe("none"), unsafe("none"), None),
        (unsafe("mutex"), unsafe("mutex", promise_broken=True), Turn.REGRESSION),
        (unsafe("mutex", promise_broken=True), unsafe("mutex", promise_broken=True), None),
    ],
)
def test_verdicts_that_change_are_told(old, new, turn):
    assert only(compare_runs(run(old), run(new))).turn is turn


def test_regressions_come_first_and_the_headline_counts_the_rest():
    old = run(lock("a", 9), lock("b", 9, verdict="UNDECIDED"), lock("c", 10_000), lock("d", 10_000))
    new = run(lock("a", 9, verdict="UNDECIDED"), lock("b", 9), lock("c", 5_000), unsafe("d"))
    changes = compare_runs(old, new)
    assert [one.turn for one in changes.turns] == [Turn.REGRESSION, Turn.LOST, Turn.PROVED]
    assert compare_runs(run(*[lock("c", 10_000)]), run(lock("c", 5_000))).headline == "of 1 cell: 1 slower"


def test_too_few_trials_tell_nothing():
    change = only(compare_runs(run(lock("mutex", 10_000, trials=3)), run(lock("mutex", 5_000, trials=8))))
    assert change.effect is Effect.UNKNOWN
    assert change.figure(THROUGHPUT).ratio is None


def test_cells_are_matched_by_lock_and_load_and_not_by_id():
    row = {"cell": "one id", "strategy": "redlock", "args": "nodes=3", "backend": "redis", "concurrency": 4, "keys": 8}
    same = {**row, "cell": "another id"}
    for other in ({"args": "nodes=5"}, {"concurrency": 5}, {"keys": 9}, {"backend": "other"}):
        found = match_cells([row], [{**same, **other}])
        assert (found.pairs, found.only_old, found.only_new) == ([], [row], [{**same, **other}])
    assert match_cells([row], [same]).pairs == [(row, same)]


def test_backends_of_one_kind_match_under_other_names_where_nothing_else_fits():
    def row(cell, backend):
        return {"cell": cell, "strategy": "mutex", "args": "", "backend": backend, "concurrency": 4}

    kinds = {"valkey": "redis", "cache": "redis", "cache2": "redis"}
    old, new = [row("a", "valkey")], [row("b", "cache")]
    assert match_cells(old, new, (kinds, kinds)).pairs == [(old[0], new[0])]
    two = [row("b", "cache"), row("c", "valkey")]
    assert match_cells(old, two, (kinds, kinds)).pairs == [(old[0], two[1])]
    assert match_cells([row("a", "cache"), row("b", "cache2")], [row("c", "valkey")], (kinds, kinds)).pairs == []


def test_what_differs_is_listed_with_the_servers_first():
    def manifest(**fields: object) -> dict[str, object]:
        server = {"product": "postgres", "label": "postgres 18.6", "source": "wheel", "settings": fields}
        return {"servers": [server], "machine": {"cores": 2}, "matrix": {"expanded": {"trials": 5}}}

    old = manifest(synchronous_commit="on", fsync=True)
    new = manifest(synchronous_commit="off", fsync=True, wal_level="replica")
    new["machine"] = {"cores": 4}
    assert [one.text for one in differences(old, new)] == [
        "postgres synchronous_commit: on -> off",
        "postgres wal_level: not set -> replica",
        "cores: 2 -> 4",
    ]
    assert differences(old, old) == []


def test_folders_of_older_schemas_are_read():
    for number in (1, 2, 3):
        saved = pybench.load(SUPPORT / f"schema_{number}")
        changes = compare_runs(saved, saved)
        assert len(changes.cells) == len(saved.summary)
        assert not changes.turns


RUNS = 300


@pytest.fixture(scope="module")
def pools():
    """For each load of the measured runs of identical locks: the grants/s of its trials."""
    rows = pd.read_csv(SUPPORT / "identical.csv.gz").dropna(subset="grants_per_s")
    groups = rows.groupby(["run", "concurrency", "keys"])["grants_per_s"]
    return [values.to_numpy() for _, values in groups if len(values) >= 10]


@pytest.mark.parametrize("cells", [1, 12])
def test_of_runs_of_the_same_locks_at_most_one_in_twenty_names_a_change(pools, cells):
    rng = np.random.default_rng(11)
    named = 0
    for _ in range(RUNS):
        runs = {}
        for cell in range(cells):
            drawn = rng.permutation(pools[rng.integers(len(pools))])[:10]
            runs[cell] = tuple(pd.DataFrame({THROUGHPUT: half}) for half in (drawn[:5], drawn[5:]))
        found = change_figures(runs, None)
        named += any(effect in (Effect.FASTER, Effect.SLOWER) for _, effect in found.values())
    assert named <= 0.05 * RUNS


def test_a_figure_of_zero_is_not_compared():
    trials = pd.DataFrame({figure.column: [0.0] * 5 for figure in FIGURES})
    assert change_figures({0: (trials, trials)}, None) == {}


def test_runs_without_a_common_cell_say_so():
    changes = compare_runs(run(lock("mutex", 9)), run(lock("naive", 9)))
    assert "nothing to compare" in changes.headline
    assert (changes.only_old, changes.only_new) == (("0",), ("0",))
    assert replace(changes, cells=()).turns == []


def test_runs_and_folders_are_compared_from_python_and_give_a_frame():
    folder = Path(__file__).parents[2] / "results" / "persistence"
    changes = pybench.compare(folder / "before", str(folder / "after"))
    assert changes == pybench.compare(pybench.load(folder / "before"), pybench.load(folder / "after"))
    frame = changes.frame
    compared = [one for one in changes.cells if one.figures]
    assert len(frame) == len(compared) * len(changes.figures) + len(changes.cells) - len(compared)
    for one in compared:
        change = one.figure(THROUGHPUT)
        row = frame[(frame["new_cell"] == one.new_cell) & (frame["figure"] == THROUGHPUT)].iloc[0]
        assert (row["old"], row["new"], row["effect"]) == (change.old, change.new, change.effect.value)
        assert (row["ratio"], row["low"], row["high"]) == (change.ratio.value, change.ratio.low, change.ratio.high)
    (unsafe_row,) = frame[frame["new_verdict"] == "UNSAFE"].to_dict("records")
    assert pd.isna(unsafe_row["ratio"])
    assert escape(changes.headline) in changes._repr_html_()
    assert changes._repr_html_().count("<tr>") == len(changes.cells)


def test_limits_of_searches_are_compared_and_a_higher_one_is_faster():
    old = [100.0, 103.0, 98.0, 101.0, 99.0]
    frames = {factor: pd.DataFrame({LIMIT: [one * factor for one in old]}) for factor in (1.0, 0.7, 1.4)}
    runs = {factor: (frames[1.0], frames[factor]) for factor in (0.7, 1.4)}
    changed = change_figures(runs, None)
    assert changed[1.4, LIMIT][1] is Effect.FASTER
    assert changed[0.7, LIMIT][1] is Effect.SLOWER
