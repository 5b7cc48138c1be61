"""Who is ahead in an open loop: every lock that keeps up grants what arrives, so the response decides."""

from __future__ import annotations

import pandas as pd

from pybench.answer import answer
from pybench.records import schema
from pybench.summary import rank

COLUMNS = [*schema.CELL_COLUMNS, "rate", *schema.SUMMARY_FIGURES]


def cell(lock, p99, *, grants=4_000.0, rate="4000/s", trials=5, spread=0.05):
    """A row of the summary, and the p99 of each of its trials."""
    row = {
        "cell": f"{lock} {rate}", "strategy": lock, "args": "", "backend": "redis", "server": "x", "concurrency": 64,
        "keys": 100, "hold": "0", "retry": "full-jitter", "rate": rate, "trials": trials, "grants_per_s": grants,
        "grants_per_s_low": grants * 0.999, "grants_per_s_high": grants * 1.001, "safe_grants_per_s": grants,
        "acquire_p99_us": p99, "verdict": "SAFE",
    }  # fmt: skip
    # The same share apart from each other, around the median.
    p99s = [None if p99 is None else p99 * (1 + spread * (2 * n / (trials - 1) - 1)) for n in range(trials)]
    return row, [{"cell": row["cell"], "rate": rate, "status": "complete", "acquire_p99_us": one} for one in p99s]


def frames(*cells: tuple):
    rows = pd.DataFrame([row for row, _ in cells]).reindex(columns=COLUMNS)
    return rows, pd.DataFrame([trial for _, trials in cells for trial in trials])


def said(*cells: tuple):
    return answer(*frames(*cells)).text


def test_the_least_p99_wins_though_another_grants_a_little_more():
    assert said(cell("naive", 3_400.0, grants=4_003.0), cell("mutex", 2_100.0)) == (
        "mutex answers soonest: p99 response 2.1 ms, naive's is 3.4 ms."
    )


def test_a_lock_that_does_not_keep_up_is_behind_however_soon_it_answers():
    assert said(cell("naive", 90.0, grants=3_000.0), cell("mutex", 2_100.0)) == (
        "mutex answers soonest: 4,000/s, 1.33 times naive's."
    )


def test_responses_whose_intervals_overlap_are_not_told_apart():
    assert said(cell("naive", 2_000.0), cell("mutex", 2_100.0)) == (
        "Prefer mutex: naive is not measurably faster (their intervals overlap) and promises less."
    )


def test_too_few_grants_for_a_p99_tell_nothing():
    assert said(cell("a", None), cell("b", 2_100.0)) == (
        "a and b can't be told apart by p99 response: too few grants a trial for a p99."
    )


def test_the_highest_rate_is_the_one_that_is_shown():
    rates = [cell(lock, p99 * n, rate=f"{n}000/s", grants=n * 1e3) for lock, p99 in (("a", 100.0), ("b", 300.0))
             for n in (1, 8, 2)]  # fmt: skip
    assert said(*rates) == "a answers soonest at 3 of 3 loads: p99 response 800 µs, b's is 2.4 ms with rate 8000/s."


def test_closed_and_open_loops_of_one_run_are_each_compared_by_their_own():
    text = said(
        cell("a", 100.0), cell("b", 300.0), cell("a", 9.0, rate="none", grants=800.0), cell("b", 9.0, rate="none")
    )
    assert text.startswith("a leads at 1 of 2 loads: p99 response 100 µs, b's is 300 µs")
    assert "ahead elsewhere: b at 1 load" in text


def test_the_ranking_puts_the_least_p99_of_a_rate_first():
    rows, _ = frames(
        cell("slow", 900.0, grants=4_009.0),
        cell("behind", 50.0, grants=3_000.0),
        cell("few", None),
        cell("quick", 100.0, grants=3_990.0),
        cell("more", 5_000.0, rate="9000/s", grants=9_000.0),
    )
    assert list(rank(rows)["strategy"]) == ["more", "quick", "slow", "few", "behind"]
