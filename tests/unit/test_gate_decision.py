"""The gate's decision, its order of trials, its pairs of cells, and its answer: all without measuring."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.comparisons import lock, run_of, unsafe

from pybench.analysis import gating
from pybench.analysis.between_runs import compare_runs
from pybench.analysis.between_runs.figures import RESPONSE, THROUGHPUT
from pybench.analysis.between_runs.gate_answer import Outcome, answer_of
from pybench.analysis.block_ratios import trimmed
from pybench.analysis.gating import Blocks, Finding, blocks_by_default, forecast, judge
from pybench.errors import InputError
from pybench.gate.order import SIDES, turns
from pybench.gate.sides import pair_cells
from pybench.matrix import expand, matrix_from_options
from pybench.records import Run

BLOCKS = 24
EMPTY = pd.DataFrame({"cell": []})


def blocks(ratio, *, spread=0.02, noise=1.0, column=THROUGHPUT, seed=1, count=BLOCKS):
    rng = np.random.default_rng(seed)
    base, head, again = 1_000 * np.exp(rng.normal(0, spread, (3, count)))
    return Blocks(column, base, head * ratio, again * ratio * noise)


def only(blocks_, band=None):
    return judge({"cell": blocks_}, band)["cell"]


@pytest.mark.parametrize(
    ("ratio", "spread", "finding"),
    [
        (0.9, 0.02, Finding.SLOWER),
        (1.1, 0.02, Finding.FASTER),
        (1.0, 0.02, Finding.SAME),
        (1.0, 0.08, Finding.UNKNOWN),
    ],
)
def test_a_round_finds_what_lies_beyond_the_band(ratio, spread, finding):
    judged = only(blocks(ratio, spread=spread))
    assert judged.finding is finding
    assert judged.ratio.value == pytest.approx(ratio, rel=0.05)
    assert judged.excluded == pytest.approx(max(1 - judged.ratio.low, 0))


def test_a_higher_latency_is_slower():
    assert only(blocks(1.3, column=RESPONSE)).finding is Finding.SLOWER
    assert only(blocks(0.7, column=RESPONSE)).finding is Finding.FASTER
    assert only(blocks(1.05, column=RESPONSE)).finding is not Finding.SLOWER


def test_a_slowdown_within_the_noise_of_the_job_is_not_found():
    noisy = only(blocks(0.9, noise=0.8))
    assert noisy.noise == pytest.approx(1 / 0.8 - 1, rel=0.1)
    assert noisy.limit == noisy.noise
    assert noisy.finding is Finding.UNKNOWN


def test_a_wider_band_finds_less():
    assert only(blocks(0.9), band=0.2).finding is not Finding.SLOWER


def test_outliers_of_one_trial_change_little():
    disturbed = blocks(0.9)
    disturbed.head[:3] = disturbed.base[3:6] = 1.0
    assert only(disturbed).finding is Finding.SLOWER


def test_the_correction_covers_all_cells():
    weak = blocks(0.965, spread=0.022)
    assert only(weak).finding is Finding.SLOWER
    many = {"cell": weak, **{str(number): blocks(1.0, seed=number, spread=0.022) for number in range(2, 150)}}
    assert judge(many)["cell"].finding is not Finding.SLOWER


def test_too_few_blocks_are_not_judged():
    assert judge({"cell": blocks(0.5, count=3)}) == {}


def test_only_a_confirmed_suspect_is_slower():
    slow, same = only(blocks(0.8)), only(blocks(1.0))
    assert gating.suspects({"a": slow, "b": same}) == ["a"]
    assert gating.decided("a", {"a": slow}, {"a": slow}) is Finding.SLOWER
    assert gating.decided("a", {"a": slow}, {"a": same}) is Finding.NOT_CONFIRMED
    assert gating.decided("a", {"a": slow}, {}) is Finding.NOT_CONFIRMED
    assert gating.decided("b", {"b": same}, {"b": slow}) is Finding.SAME
    assert gating.decided("c", {}, {}) is Finding.UNKNOWN


def test_what_a_round_can_find_is_what_the_forecast_says():
    spread, cells = 0.03, 4
    count = blocks_by_default(cells)
    least = forecast(THROUGHPUT, spread, blocks=count, cells=cells)
    found = 0
    for seed in range(100):
        round_ = {str(one): blocks(1.0, spread=spread, seed=1_000 * seed + one, count=count) for one in range(1, cells)}
        round_["slow"] = blocks(1 - least, spread=spread, seed=1_000 * seed, count=count)
        found += judge(round_)["slow"].finding is Finding.SLOWER
    assert 85 <= found <= 100


def test_the_trimmed_mean_has_the_error_that_its_variance_says():
    rng = np.random.default_rng(3)
    means, variances = zip(*(trimmed(rng.normal(size=40))[:2] for _ in range(2_000)), strict=True)
    assert np.var(means) == pytest.approx(np.mean(variances) / 40, rel=0.1)
    assert np.mean(variances) == pytest.approx(gating.TRIMMED_COST, rel=0.1)


def test_every_side_comes_first_second_and_third_equally_often():
    cells = expand(matrix_from_options(strategy="mutex", concurrency=[1, 2, 3]))
    orders = [turns(7, block, cells) for block in range(1, 13)]
    for place in range(len(cells)):
        sides = Counter(tuple(side for index, side in order if index == place) for order in orders)
        assert sides == dict.fromkeys(permutations(SIDES), 2)
    for order in orders:
        runs = [index for index, _ in order]
        assert [runs[start : start + 3] for start in (0, 3, 6)] == [[runs[start]] * 3 for start in (0, 3, 6)]
    assert len({tuple(index for index, _ in order) for order in orders}) > 1


def paired(base, head):
    matrices = matrix_from_options(**base), matrix_from_options(**head)
    return pair_cells(expand(matrices[0]), expand(matrices[1]), matrices)


def test_cells_are_paired_by_lock_and_load_and_a_lone_lock_by_its_load():
    both = {"strategy": ["mutex", "fenced"], "concurrency": [1, 8]}
    found = paired(both, {**both, "strategy": ["fenced", "mutex"]})
    assert [(base.id, head.id) for base, head in found.cells] == [(cell, cell) for cell in dict(found.ids).values()]
    assert len(found.cells) == 4
    other = paired({**both, "strategy": "mutex"}, {**both, "strategy": "fenced", "concurrency": [8, 16]})
    assert [(base.strategy, head.strategy, head.concurrency) for base, head in other.cells] == [("mutex", "fenced", 8)]
    assert [cell.concurrency for cell in other.only_base] == [1]
    assert [cell.concurrency for cell in other.only_head] == [16]


def test_without_a_common_load_nothing_is_compared():
    with pytest.raises(InputError, match="no load in common"):
        paired({"strategy": "mutex", "keys": 1}, {"strategy": "mutex", "keys": 2})


def test_a_search_for_a_limit_is_not_gated():
    search = {"strategy": "mutex", "mode": "saturate"}
    with pytest.raises(InputError, match="searches for a limit"):
        paired(search, search)


def side(name, cells, first=8):
    """A side of a gate, made by hand."""
    summary, trials = run_of(*cells)
    broken = {str(number): bool(cell.get("promise_broken")) for number, cell in enumerate(cells)}
    trials["promise_broken"] = [broken[cell] for cell in trials["cell"]]
    pairs = {str(number): str(number) for number in range(len(cells))}
    manifest = {"name": "hand", "gate": {"job": "1", "side": name, "blocks": first, "pairs": pairs}}
    return Run(Path(), manifest, trials, EMPTY, EMPTY, EMPTY, summary)


def answered(base, head, *, first=8):
    sides = (("base", base), ("head", head), ("again", head))
    return answer_of(*(side(name, cells, first) for name, cells in sides))


def test_a_slowdown_in_both_rounds_is_a_regression():
    fast, slow = [lock("mutex", 10_000, trials=16)], [lock("mutex", 5_000, trials=16)]
    answer = answered(fast, slow)
    assert answer.outcome is Outcome.REGRESSION
    assert answer.headline == "regression: mutex became slower"
    (cell,) = answer.cells
    assert cell.word == "slower"
    assert (cell.first.ratio.blocks, cell.second.ratio.blocks) == (8, 8)
    assert answered(fast, fast).outcome is Outcome.PASS
    assert answered(slow, fast).cells[0].word == "faster"


def test_a_slowdown_that_was_not_measured_again_is_none():
    answer = answered([lock("mutex", 10_000, trials=8)], [lock("mutex", 5_000, trials=8)])
    assert answer.suspects == ["0"]
    assert answer.outcome is Outcome.PASS
    assert answer.cells[0].word == "not confirmed"


def test_a_job_that_ended_early_never_passes():
    fast, slow = [lock("mutex", 10_000, trials=16)], [lock("mutex", 5_000, trials=16)]
    for head, outcome in ((fast, Outcome.UNKNOWN), (slow, Outcome.REGRESSION)):
        sides = side("base", fast), side("head", head), side("again", head)
        assert answer_of(*sides, is_whole=False).outcome is outcome


def test_an_unsafe_head_is_a_regression_and_an_unsafe_base_is_none():
    safe, broken = lock("mutex", 10_000, trials=8), unsafe("fenced", trials=8)
    was_safe = lock("fenced", 10_000, trials=8)
    answer = answered([safe, was_safe], [safe, broken])
    assert answer.outcome is Outcome.REGRESSION
    assert answer.headline == "regression: fenced became unsafe"
    assert [cell.word for cell in answer.cells] == ["same", "unsafe"]
    both = answered([safe, broken], [safe, broken])
    assert both.outcome is Outcome.PASS
    assert [cell.word for cell in both.cells] == ["same", "not judged"]
    assert answered([broken], [broken]).outcome is Outcome.UNKNOWN


def test_a_violation_of_either_measurement_of_the_head_is_a_regression():
    safe, broken = [lock("mutex", 10_000, trials=8)], [unsafe("mutex", trials=8)]
    for head, again in ((broken, safe), (safe, broken)):
        answer = answer_of(side("base", safe), side("head", head), side("again", again))
        assert answer.headline == "regression: mutex became unsafe"


def test_a_lock_that_is_no_longer_proved_cannot_be_told():
    base, head = lock("mutex", 10_000, trials=8), lock("mutex", 10_000, trials=8, verdict="UNDECIDED")
    answer = answered([base], [head])
    assert answer.outcome is Outcome.UNKNOWN
    assert answer.headline == "can't tell: mutex no longer proved safe"


def test_two_sides_of_one_job_are_compared_block_by_block():
    cells = [lock("mutex", 10_000, trials=8)]
    base, head = side("base", cells), side("head", cells)
    assert compare_runs(base, head).paired
    assert compare_runs(head, base).paired
    other = replace(head, manifest={**head.manifest, "gate": {**head.manifest["gate"], "job": "2"}})
    assert not compare_runs(base, other).paired
    assert not compare_runs(base, base).paired
