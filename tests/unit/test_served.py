from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.trials import SECOND, FakeResult, cell, histogram, record, totals

from pybench.analysis.summary import summarise
from pybench.matrix.values import Distribution
from pybench.records.parts import KILLED, OF_CLIENTS

US = 1_000


def phases(*, response_us: int, hold_us: int, release_us: int, grants: int) -> list[SimpleNamespace]:
    lengths = {"response": response_us, "hold": hold_us, "release": release_us}
    return [
        SimpleNamespace(phase=phase, outcome="granted", count=grants, hdr=histogram([us * US] * grants))
        for phase, us in lengths.items()
    ]


def result(grants_of_clients: list[int], *, attempts: list[int] | None = None, **lengths: int) -> FakeResult:
    grants = sum(grants_of_clients)
    made = FakeResult(totals=totals(grants=grants, window_ns=SECOND))
    made.histograms = phases(grants=grants, **lengths) if lengths else made.histograms
    each = np.array(grants_of_clients, dtype=np.uint64)
    made.clients = {
        **dict.fromkeys(OF_CLIENTS, each),
        "attempts": np.array(attempts or [1] * len(grants_of_clients), dtype=np.uint64),
        "wait_sum_ns": each * 1_000,
    }
    return made


def row(of, made):
    return record(of, result=made).row


def test_two_of_64_clients_that_have_all_grants_are_two_clients_served():
    # 2,000 cycles of 1 ms in a second: two clients' time.
    made = result([1_000, 1_000, *[0] * 62], response_us=400, hold_us=500, release_us=100)
    found = row(cell(concurrency=64), made)
    assert found["clients_served"] == pytest.approx(2, rel=0.01)
    assert found["starved_clients"] == 62


def test_a_queue_that_serves_everybody_serves_all_clients():
    # 1,000 grants/s, and each of 64 clients waits for all others.
    made = result([125] * 8, response_us=7_000, hold_us=900, release_us=100)
    found = row(cell(concurrency=8), made)
    assert found["clients_served"] == pytest.approx(8, rel=0.01)
    assert found["starved_clients"] == 0


def test_a_pause_belongs_to_the_cycle_and_more_than_all_clients_are_never_served():
    think = Distribution("fixed", (9_000 * US,))
    made = result([100], response_us=400, hold_us=500, release_us=100)
    assert row(cell(concurrency=1, think=think), made)["clients_served"] == pytest.approx(1, rel=0.01)
    assert row(cell(concurrency=64), result([1_000], response_us=900_000, hold_us=0, release_us=1))[
        "clients_served"
    ] == pytest.approx(64)


def test_a_client_that_rested_all_the_time_has_not_starved():
    think = Distribution("exp", (10 * SECOND,))
    resting = result([5, 0, 0], attempts=[5, 0, 3], response_us=10, hold_us=10, release_us=10)
    assert row(cell(concurrency=3, think=think), resting)["starved_clients"] == 1
    # Without pauses it asked, if before the window began.
    assert row(cell(concurrency=3), resting)["starved_clients"] == 2


def test_a_client_that_died_with_its_process_has_not_starved():
    made = result([5, 0, 0], response_us=10, hold_us=10, release_us=10)
    assert row(cell(concurrency=3), made)["starved_clients"] == 2
    made.clients[KILLED] = np.array([1, 1, 0], dtype=np.uint64)
    assert row(cell(concurrency=3), made)["starved_clients"] == 1


def test_an_open_loop_has_no_clients_to_be_served():
    found = row(cell(concurrency=2, rate_per_s=1000.0, arrival_process="poisson", max_in_flight=64), result([5, 5]))
    assert found["clients_served"] is None
    assert found["starved_clients"] == 0


def test_without_a_grant_there_is_no_figure():
    found = row(cell(), FakeResult(totals=totals(grants=0)))
    assert (found["clients_served"], found["starved_clients"]) == (None, None)


def test_the_summary_keeps_the_worst_trial_of_starvation():
    import pandas as pd

    rows = [
        record(cell(concurrency=2), trial=trial, result=result(served, response_us=10, hold_us=10, release_us=10)).row
        for trial, served in enumerate(([50, 50], [100, 0], [50, 50]), start=1)
    ]
    summary = summarise(pd.DataFrame(rows)).iloc[0]
    assert summary["starved_clients"] == 1
    assert summary["clients_served"] == pytest.approx(0.003, rel=0.05)


@pytest.mark.parametrize(
    ("text", "mean"),
    [("2ms", 2e6), ("exp(2ms)", 2e6), ("uniform(1ms, 3ms)", 2e6), ("lognormal(1ms, 1)", 1e6 * 1.6487212707)],
)
def test_the_mean_of_a_distribution(text, mean):
    assert Distribution.parse(text).mean() == pytest.approx(mean)
