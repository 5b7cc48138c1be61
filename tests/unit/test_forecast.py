from __future__ import annotations

import pytest
from support.plans import planned
from support.trials import cell

from pybench.matrix.values import Distribution
from pybench.planning.forecast import expected_per_s
from pybench.planning.unlike_servers import transport_of


def per_s(strategy: str = "mutex", **fields: object) -> float:
    return expected_per_s(cell(strategy, **fields))


def test_one_key_is_held_by_one_at_a_time():
    # A hold of 1 ms and one call.
    assert per_s(concurrency=64) == pytest.approx(1e9 / 1_050_000)
    assert per_s(concurrency=64, keys=10) == pytest.approx(10 * 1e9 / 1_050_000)
    assert per_s("semaphore", args=(("permits", 4),), concurrency=64) == pytest.approx(4 * 1e9 / 1_050_000)


def test_few_clients_and_pauses_bound_the_rate_too():
    assert per_s(concurrency=1) == pytest.approx(1e9 / 1_100_000)
    assert per_s(concurrency=2, think=Distribution("fixed", (98_900_000,))) == pytest.approx(20)
    assert per_s(rate_per_s=1000.0, arrival_process="poisson", max_in_flight=64, concurrency=64, keys=1_000) == 1_000


def test_what_keeps_nobody_out_is_bound_by_its_clients_alone():
    assert per_s("pg-optimistic", concurrency=8) == pytest.approx(8 * 1e9 / 1_100_000)


def test_a_plan_says_how_long_a_p99_takes():
    plan = planned(strategy="mutex", hold="1ms", concurrency=64, duration="400ms", trials=2)
    assert plan.tails == [
        "the p99 of mutex (hold 1ms, 1 key, 64 clients) needs 1,000 grants, at least 1.05 s: 2 trials of 400ms are "
        "too short even together"
    ]
    assert plan.to_dict()["tails"] == plan.tails
    pooled = planned(strategy="mutex", hold="1ms", concurrency="2,64", duration="400ms", trials=5).tails
    assert pooled[0].endswith(
        "each trial of 400ms is too short, so samples of all trials are merged (also for 1 further cell)"
    )


def test_long_trials_need_no_word():
    assert planned(strategy="mutex", hold="1ms", concurrency=64, duration="2s").tails == []


def test_given_beside_started_servers_are_warned_of():
    plan = planned(strategy="mutex,pg-advisory", redis="redis://10.0.0.1:6379")
    assert len(plan.warnings) == 1
    assert "pybench starts postgres, but not redis" in plan.warnings[0]
    assert planned(strategy="mutex,pg-advisory").warnings == []
    assert planned(strategy="mutex", redis="redis://10.0.0.1:6379").warnings == []


@pytest.mark.parametrize(
    ("given", "way"),
    [
        (None, "unix"),
        (["unix:///run/redis.sock"], "unix"),
        (["redis://h:6379"], "tcp"),
        (["postgresql://h/shop"], "tcp"),
        (["postgresql:///shop?host=/run/postgresql"], "unix"),
        (["redis://h:1", "unix:///run/redis.sock"], None),
    ],
)
def test_how_a_server_is_reached_is_read_off_its_address(given, way):
    assert transport_of(given) == way


def test_a_hold_whose_tail_outlasts_the_lease_is_warned_of():
    # Of 1 s the clock-skew margin takes 12 ms; exp(-988/200) of the holds are longer.
    warning, alone = planned(strategy="mutex,fenced(renew=off)", ttl="1s", hold="exp(200ms)").warnings
    assert alone == "a run with one client cannot show such an overlap: use more clients"
    assert len(planned(strategy="mutex", ttl="1s", hold="exp(200ms)", concurrency="1,8").warnings) == 1
    assert warning == (
        "0.715 % of the holds of exp(200ms) outlast the lease of 1s: two clients may then work on one key; about "
        "0.1 % would outlast a ttl of 1.4 s"
    )
    long = planned(strategy="mutex", ttl="1s", hold="exp(500ms)").warnings[0]
    assert long.endswith("about 1 % would outlast a ttl of 2.4 s and 0.1 % would outlast a ttl of 3.5 s")
    # Both quantiles of this hold need the same ttl.
    even = planned(strategy="mutex", ttl="25ms", hold="uniform(5ms, 40ms)").warnings[0]
    assert even.endswith("two clients may then work on one key; about 0.1 % would outlast a ttl of 43 ms")


def test_a_hold_that_is_renewed_or_stays_below_the_lease_needs_no_warning():
    assert planned(strategy="watchdog,pg-advisory", ttl="1s", hold="exp(200ms)").warnings == []
    assert planned(strategy="mutex", ttl="1s", hold="exp(20ms),900ms").warnings == []


def test_a_hold_that_is_given_by_quantiles_has_the_mean_of_its_curve():
    curve = Distribution.parse("quantiles(p50=50ms, p99=2s)")
    assert curve.quantile(0.5) < curve.mean() < curve.quantile(0.99)
