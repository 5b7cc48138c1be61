"""The comparison itself: every lock stands somewhere at every load, and what is claimed holds in the data."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from pybench.analysis.answer import answer_from
from pybench.analysis.comparison import Comparison, Out, Place, compare_locks
from tests.unit.support.comparisons import lock, run_of, unsafe

odd = st.sampled_from([0.0, None, math.nan, math.inf, 1e-300, 1e300])
rates = st.one_of(st.floats(1, 1e6), odd)
NAMES = ("mutex", "naive", "semaphore", "pg-optimistic", "fair-queue", "never-heard-of")


@st.composite
def runs(draw):
    """A run with holes: cells, trials and figures may be missing, infinite or 0."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    is_open, cells, trials = draw(st.booleans()), [], []
    for keys in range(1, draw(st.integers(1, 3)) + 1):
        for name in names:
            if draw(st.integers(0, 5)) == 0:
                continue
            verdict = draw(st.sampled_from(["SAFE"] * 6 + ["UNSAFE", "UNDECIDED"]))
            base, blocks = draw(rates), draw(st.integers(0, 6))
            cell = f"{name} {keys}"
            safe = {"SAFE": base, "UNSAFE": 0.0}.get(verdict)
            row = {"verdict": verdict, "keys": keys, "trials": blocks, "cell": cell}
            cells.append(lock(name, base) | row | {"safe_grants_per_s": safe, "acquire_p99_us": draw(rates)})
            if is_open:
                cells[-1]["rate_per_s"] = 1_000.0
            seed = draw(st.integers(0, 99))
            noise = np.random.default_rng(seed).normal(0, draw(st.sampled_from([0, 0.05])), 6)
            for block in range(blocks):
                usual = (base or 1) * math.exp(noise[block])
                rate = draw(odd) if draw(st.integers(0, 9)) == 0 else usual
                figures = {"grants_per_s": rate, "acquire_p99_us": draw(rates), "jain": draw(st.floats(0, 1))}
                figures |= {"longest_wait_us": draw(rates), "starved_clients": draw(starved), "window_s": 1.0}
                figures |= {"grants": draw(counts), "refused": draw(counts), "timeouts": draw(counts)}
                trials.append({"cell": cell, "block": block, "status": "complete"} | figures)
            cells[-1] |= {"longest_wait_us": draw(rates), "concurrency": CLIENTS, "grants": draw(counts)}
    dropped = draw(st.sets(st.sampled_from([*Figures, "block", "status"])))
    summary, _ = run_of(*cells) if cells else run_of(lock("mutex", 1.0, trials=0))
    frame = pd.DataFrame(trials, columns=["cell", "block", "status", "window_s", *Figures])
    return summary, frame.drop(columns=list(dropped)) if draw(st.booleans()) else frame


Figures = (
    *("grants_per_s", "acquire_p99_us", "jain", "longest_wait_us", "starved_clients"),
    *("grants", "refused", "timeouts"),
)
CLIENTS = 8
counts = st.sampled_from([0, 3, 900, 90_000])
starved = st.one_of(st.none(), st.integers(0, CLIENTS))


@settings(max_examples=150)
@given(runs())
def test_each_claim_holds_at_its_load_and_each_lock_stands_somewhere(run):
    summary, trials = run
    found = compare_locks(summary, trials)
    rows = {str(row["cell"]): row for row in summary.to_dict("records")}
    for load in found.loads:
        assert {one.lock for one in load.standings} == set(found.locks)
        assert len(load.standings) == len(found.locks)
        assert set(load.best) <= {one.lock for one in load.first}
        for one in load.standings:
            if one.cell is not None:
                assert dict(load.values)["keys"] == rows[one.cell]["keys"], "a standing is of its own load"
            check_standing(one, load, rows)
        for by in load.tie_breaks:
            assert set(by.locks) | set(by.over) <= {one.lock for one in load.first}
            assert not set(by.locks) & set(by.over)
            assert by.value is not None
            assert by.other is not None
            assert by.value < by.other if by.figure.least_is_best else by.value > by.other
        for one in load.ranked:
            longer = one.waits_longer
            if longer is not None:
                assert longer.value > longer.other
                assert load.of(longer.beside).rank is not None
    claimed = {claim.lock for claim in found.claims()}
    assert claimed == set(found.locks)
    assert set(found.choice.locks) <= set(found.locks)
    text = answer_from(found).text
    assert text.endswith(".")
    assert not any(word in text for word in ("nan", "inf", "None"))
    json.dumps(found.to_json(), allow_nan=False)


def check_standing(one, load, rows):
    if one.place is Place.OUT:
        assert one.rank is None
        assert one.out is not None
        assert (one.cell is None) == (one.out is Out.NOT_MEASURED)
        return
    assert rows[one.cell]["verdict"] == "SAFE"
    first = load.ranked[0]
    if one.place in {Place.AHEAD, Place.BEHIND}:
        better, worse = (one, load.of(one.beside)) if one.place is Place.AHEAD else (first, one)
        assert one.ratio.low > 1.03, "what is ahead clears the equivalence band"
        mine, others = rows[better.cell][one.figure.value], rows[worse.cell][one.figure.value]
        assert mine < others if one.figure.least_is_best else mine > others, "the medians say so, too"
    if one.place is Place.AHEAD:
        assert [other.rank for other in load.ranked].count(1) == 1
    if one.place is Place.TIED:
        assert one.rank == 1
        assert len(load.first) > 1
    assert (one.place is Place.BEHIND) == (one.rank != 1)


def test_ranks_count_within_a_load_and_tied_locks_share_one():
    cells = [
        lock(name, rate, keys=keys, spread=0.01)
        for keys in (1, 9)
        for name, rate in (("mutex", 1_000 * keys), ("naive", 1_005 * keys), ("pg-row", 500 * keys))
    ]
    for load in compare_locks(*run_of(*cells)).loads:
        assert [(one.lock, one.rank) for one in load.standings] == [("naive", 1), ("mutex", 1), ("pg-row", 3)]


def test_a_tie_is_broken_between_those_that_tie_and_nobody_else():
    """mutex, the slowest, has too few trials to be behind anybody."""
    first = lock("fair-queue", 2_000, trials=6)
    summary, trials = run_of(first, lock("naive", 1_000, trials=4), lock("mutex", 900, trials=2))
    load = compare_locks(summary, trials).loads[0]
    assert [(one.lock, one.rank) for one in load.standings] == [("fair-queue", 1), ("mutex", 1), ("naive", 3)]
    assert {name for by in load.tie_breaks for name in (*by.locks, *by.over)} <= {"fair-queue", "mutex"}


def test_loads_come_with_their_text_and_axes_concurrency_fastest():
    cells = [lock("mutex", 9, keys=keys, concurrency=clients) for keys in (1_000, 1) for clients in (64, 1)]
    found = compare_locks(*run_of(*cells))
    assert [load.text for load in found.loads] == [
        "1 client, 1 key", "64 clients, 1 key", "1 client, 1,000 keys", "64 clients, 1,000 keys",
    ]  # fmt: skip
    assert dict(found.loads[1].values)["hold"] == "0"
    assert dict(found.loads[1].conditions) == {"concurrency": 64, "keys": 1}
    assert found.load_of(str(0)).text == "64 clients, 1,000 keys"


def test_a_trial_that_stood_still_is_no_reason_to_drop_its_block():
    summary, trials = run_of(lock("mutex", 1_000), lock("naive", 1_500))
    trials.loc[(trials["cell"] == "1") & (trials["block"] == 2), "grants_per_s"] = 0.0
    found = compare_locks(summary, trials)
    assert found.standing("1").place is Place.TIED
    assert found.standing("1").ratio.blocks == 5


def test_a_p99_that_is_only_known_to_be_so_long_loses_and_never_wins():
    usual = {"rate_per_s": 1_000.0, "trials": 5, "spread": 0.01}
    summary, trials = run_of(lock("mutex", 1_000, acquire_p99_us=100.0, **usual), lock("naive", 1_000, **usual))
    summary["acquire_p99_at_least_us"] = [math.nan, 400.0]
    trials["acquire_p99_at_least_us"] = [math.nan if cell == "0" else 400.0 for cell in trials["cell"]]
    found = compare_locks(summary, trials)
    assert found.standing("0").place is Place.AHEAD
    assert found.standing("1").other == 100.0
    summary["acquire_p99_at_least_us"] = [math.nan, 10.0]
    trials["acquire_p99_at_least_us"] = [math.nan if cell == "0" else 10.0 for cell in trials["cell"]]
    assert compare_locks(summary, trials).standing("1").place is Place.TIED


def test_without_trials_nobody_is_ahead():
    summary, _ = run_of(lock("mutex", 1_000), lock("naive", 5_000), unsafe("none"))
    found = compare_locks(summary)
    assert isinstance(found, Comparison)
    assert [one.place for one in found.loads[0].standings] == [Place.TIED, Place.TIED, Place.OUT]


def test_a_response_that_is_the_load_generators_places_no_lock():
    usual = {"rate_per_s": 1_000.0, "trials": 5}
    quick, slow = (
        lock("mutex", 1_000, acquire_p99_us=100.0, **usual),
        lock("naive", 1_000, acquire_p99_us=900.0, **usual),
    )
    summary, trials = run_of(quick, slow)
    generator = {"arrivals": 1_000, "drops": 0, "server_cpu_share": 0.2, "utilisation": 0.1, "contention_rate": 0.1}
    trials = trials.assign(**generator, acquire_p50_us=50.0, send_delay_p99_us=10.0)
    assert compare_locks(summary, trials).choice.locks == ("mutex",)
    trials.loc[trials["cell"] == "0", "send_delay_p99_us"] = 5_000.0
    found = compare_locks(summary, trials)
    assert found.standing("0").out is Out.LATE
    assert found.choice.locks == ("naive",)
    assert "not ranked (the load generator was late): mutex" in answer_from(found).text
