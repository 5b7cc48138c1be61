"""The options of a swarm: what they mean, what they refuse, and that they show no password."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pybench.errors import InputError
from pybench.swarm.addresses import Address, urls_of
from pybench.swarm.clocks import ClockOffset
from pybench.swarm.conductor import Conductor
from pybench.swarm.driver import Assignment
from pybench.swarm.preparation import Preparation
from pybench.swarm.settings import Settings
from pybench.swarm.site import Origin, Site

URL = "redis://:s3cret,word@db.example:6379/0"


def settings(**options: object) -> Settings:
    return Settings.of({"clients_per_user": "16", **options})


def test_without_options_it_is_a_mutex_on_a_thousand_keys():
    plain = settings()
    cell = plain.cell(plain.matrix(64))
    assert (cell.strategy, cell.keys, cell.concurrency, plain.clients_per_user) == ("mutex", 1_000, 64, 16)
    assert plain.shared_keys is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "mutexx"}, "--strategy: .*did you mean mutex"),
        ({"strategy": "mutex,none"}, "one lock with one load"),
        ({"keys": "10,20"}, "--keys 10,20 name 2"),
        ({"keys": "0"}, "--keys"),
        ({"hold": "1 parsec"}, "--hold"),
        ({"clients_per_user": "0"}, "--clients-per-user"),
        ({"clients_per_user": "many"}, "--clients-per-user"),
        ({"redis": "http://127.0.0.1"}, "http://127.0.0.1"),
        ({"postgres": "redis://127.0.0.1"}, "--postgres"),
    ],
)
def test_values_that_a_matrix_does_not_take_are_refused_with_the_option(options, message):
    with pytest.raises(InputError, match=message):
        settings(**options)


def test_an_address_shows_no_password_and_keeps_it():
    option = Address(URL)
    for text in (str(option), repr(option), json.dumps(option), f"{option}", repr(settings(redis=option))):
        assert "s3cret" not in text
    assert "db.example" in option
    assert urls_of(option) == (URL,)


def test_the_stars_that_a_form_sends_back_stand_for_the_same_address():
    option = Address(URL)
    again = type(option)(str(option))
    assert urls_of(again) == (URL,)
    assert urls_of(str(option)) == (URL,)
    assert settings(redis=again).redis == (URL,)


def test_another_password_typed_into_the_form_counts():
    Address(URL)
    assert urls_of(Address("redis://:other-word@db.example:6379/0")) == ("redis://:other-word@db.example:6379/0",)


def test_several_addresses_are_separated_by_commas_or_spaces():
    option = Address(f"{URL}, redis://b:1  redis://c:2")
    assert urls_of(option) == (URL, "redis://b:1", "redis://c:2")
    assert settings(strategy="redlock(nodes=3)", redis=option).redis == (URL, "redis://b:1", "redis://c:2")


def test_stars_that_stand_for_nothing_are_refused():
    with pytest.raises(InputError, match="masked"):
        settings(redis="redis://:***@never.seen:1/0")


def test_without_locust_the_package_says_what_to_install():
    script = "import sys; sys.modules['locust'] = None; from pybench.swarm import NativeLocks"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "a native swarm needs Locust, which is not installed" in done.stderr
    assert "pip install 'pybench[locust]'" in done.stderr


def test_pybench_itself_loads_neither_locust_nor_gevent():
    script = "import sys, pybench, pybench.cli.app, pybench.swarm; print({'locust', 'gevent'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "set()\n"


def test_a_worker_elsewhere_is_told_that_the_master_s_server_is_not_for_it():
    here, there = Origin("here", 1, "boot 1"), Origin("there", 2, "boot 2")
    conductor = Conductor(Preparation(lambda trial: trial.run(), binds=False, command=[]), here, lambda call: call())
    message = {"error": "no such socket", "refusal": None}
    for origin, sentence in ((there, "for this machine only"), (here, "the connections of its trial failed")):
        site = Site("worker 1", "id", origin, Assignment(1, {}, 16), None, [], 0)
        conductor.failed(site, message)
        assert sentence in site.error
        assert site.is_over


def test_the_exchange_with_the_shortest_round_trip_says_the_offset():
    clock = ClockOffset()
    assert clock.error_ns is None
    clock.learn(sent_ns=1_000, theirs_ns=51_500, received_ns=3_000)
    assert (clock.offset_ns, clock.error_ns) == (49_500, 1_000)
    clock.learn(sent_ns=10_000, theirs_ns=60_100, received_ns=10_200)
    assert (clock.offset_ns, clock.error_ns) == (50_000, 100)
    clock.learn(sent_ns=20_000, theirs_ns=99_000, received_ns=29_000)
    assert (clock.offset_ns, clock.error_ns) == (50_000, 100)
