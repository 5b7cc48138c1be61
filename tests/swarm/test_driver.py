"""The trial of one process: its clients follow the users, and every count comes exactly once."""

from __future__ import annotations

import pytest

from pybench.swarm.driver import Assignment, Driver
from pybench.swarm.tally import Tally
from tests.core_trials import trial_spec
from tests.waiting import wait_until


@pytest.fixture
def driver():
    made = Driver(lambda call: call())
    yield made
    if made.is_running:
        made.stop()


def assignment(server, **fields: object) -> Assignment:
    spec = trial_spec(server, duration_ns=None, warmup_ns=0, keys=100, concurrency=8, **fields)
    return Assignment.read(Assignment(1, spec, 2).message())


def drained_until(driver: Driver, holds) -> Tally:
    whole = Tally()

    def reached() -> bool:
        whole.add(Tally.read(driver.drain().message()))
        return holds(whole)

    wait_until(reached, "enough was counted")
    return whole


def test_what_was_drained_and_the_rest_are_the_whole_trial(server, driver):
    driver.follow(2)
    planted = driver.start(assignment(server))
    assert planted
    assert all(caught for _, caught in planted)
    whole = drained_until(driver, lambda tally: tally["grants"] > 1_000)
    ended = driver.stop()
    whole.add(ended.rest)
    assert ended.part is not None
    assert whole["grants"] == ended.part.totals["grants"]
    response = [row for row in ended.part.histograms if (row.phase, row.outcome) == ("response", "granted")]
    assert int(whole.buckets("response", "granted").counts.sum()) == response[0].count


def test_clients_follow_the_users_and_those_that_never_worked_are_left_out(server, driver):
    driver.start(assignment(server))
    assert drained_until(driver, lambda tally: tally.elapsed_ns > 1)["grants"] == 0
    driver.follow(1)
    drained_until(driver, lambda tally: tally["grants"] > 100)
    driver.follow(2)
    drained_until(driver, lambda tally: tally["grants"] > 100)
    driver.follow(1)
    assert (driver.clients, driver.most_clients) == (2, 4)
    part = driver.stop().part
    assert part is not None
    assert len(part.clients["grants"]) == 4
    assert part.clients["grants"].min() > 0
    assert part.jain is not None


def test_a_trial_never_has_more_clients_than_it_has_room_for(server, driver):
    driver.follow(100)
    driver.start(assignment(server))
    assert (driver.clients, driver.wanted) == (8, 200)
    drained_until(driver, lambda tally: tally["grants"] > 100)


def test_a_server_that_cannot_be_reached_ends_the_trial_with_the_error(server, driver):
    nowhere = {**server.core_spec(), "port": 1}
    driver.start(assignment(server, servers=[nowhere]))
    wait_until(lambda: driver.drain() is None, "the trial ends")
    ended = driver.stop()
    assert ended.part is None
    assert "refused" in str(ended.error).lower()


def test_points_of_a_distribution_survive_the_message(server, driver):
    hold = {"kind": "quantiles", "points": [(0.0, 100_000), (1.0, 200_000)]}
    driver.follow(1)
    sent = assignment(server, hold=hold)
    driver.start(Assignment(1, {**sent.spec, "hold": {**hold, "points": [list(point) for point in hold["points"]]}}, 2))
    drained_until(driver, lambda tally: tally["grants"] > 10)


def test_what_a_lost_process_had_reported_is_a_part_of_its_own(server, driver):
    driver.follow(2)
    driver.start(assignment(server))
    whole = drained_until(driver, lambda tally: tally["grants"] > 100)
    part = whole.part()
    assert part.totals["grants"] == whole["grants"]
    assert part.totals["window_ns"] == whole.elapsed_ns
    assert part.totals.keys() >= driver.stop().part.totals.keys()
