"""The axis `rtt`: its notation, what a plan makes of it, and what the core and the record are told."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.plans import planned, refusal
from support.trials import cell, record

from pybench.errors import InputError
from pybench.matrix import expand, load_matrix, matrix_from_mapping, matrix_from_options
from pybench.matrix.conditions import chart_title, place_on_chart, say_condition
from pybench.matrix.durations import LONGEST_DURATION_NS, MS
from pybench.matrix.round_trips import MOST_SERVERS, RoundTrip
from pybench.matrix.values import Distribution
from pybench.notation import BadValue
from pybench.planning import control, probes
from pybench.planning.network import added_ns
from pybench.planning.trial_spec import trial_spec
from pybench.strategies import ServerKind

lengths = st.integers(0, LONGEST_DURATION_NS)
positive = st.integers(1, LONGEST_DURATION_NS)
distributions = st.one_of(
    lengths.map(lambda ns: Distribution("fixed", (ns,))),
    positive.map(lambda ns: Distribution("exp", (ns,))),
    st.tuples(positive, st.floats(0.001, 10)).map(lambda both: Distribution("lognormal", both)),
    st.lists(lengths, min_size=2, max_size=2, unique=True).map(lambda two: Distribution("uniform", tuple(sorted(two)))),
    st.just(Distribution.parse("quantiles(p50=1ms, p99=20ms)")),
)
round_trips = st.lists(distributions, min_size=1, max_size=MOST_SERVERS).map(lambda times: RoundTrip(tuple(times)))


def reasons(**options: object) -> list[str]:
    return [refused.reason for refused in planned(**options).refused]


@given(round_trips)
def test_every_value_reads_back_from_its_canonical_text(value):
    assert RoundTrip.parse(value.text) == value


@given(round_trips, round_trips)
def test_two_values_have_different_texts(one, other):
    assert (one.text == other.text) == (one == other)


@given(st.text(max_size=40) | st.text(max_size=20).map(lambda text: f"per-server({text})"))
def test_no_text_makes_the_parser_fail_in_any_way_but_its_own(text):
    with contextlib.suppress(BadValue):
        RoundTrip.parse(text)


@given(round_trips)
def test_a_value_is_one_element_of_a_list_and_one_value_of_an_option(value):
    assume(value.text != "3ns")
    by_list = matrix_from_mapping({"axes": {"strategy": "redlock(nodes=32)", "rtt": [value.text, "3ns"]}})
    by_option = matrix_from_options(strategy="redlock(nodes=32)", rtt=f"{value.text},3ns")
    assert by_list.axes.rtt == by_option.axes.rtt == (value, RoundTrip.parse("3ns"))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            ["1ms", "2ms"],
            "a list in a list is not a round-trip time; one value for several servers is per-server(1ms, 2ms)",
        ),
        (
            ["fast", 3],
            "a list in a list is not a round-trip time; one value for several servers is per-server(0.5ms, 1ms, 20ms)",
        ),
        ("per-server(5ms)", '"per-server(5ms)" names fewer than two servers; one time for all servers is written 5ms'),
        (
            "per-server(1ms",
            'the parentheses of "per-server(1ms" do not match; quote the value in a list in brackets: '
            '["per-server(0.5ms, 1ms, 20ms)"]',
        ),
        ("per-server()", '"per-server()" names fewer than two servers; one time for all servers is written 1ms'),
        ("per-server(1ms, 2)", '"2" has no unit; use 2s or 2ms'),
        (
            "per-server(a=1ms, b=2ms)",
            '"per-server(a=1ms, b=2ms)" is not a round-trip time; use for example per-server(0.5ms, 1ms, 20ms)',
        ),
        (5, "5 has no unit; use 5s or 5ms"),
    ],
)
def test_what_is_no_round_trip_time_is_refused_with_what_to_write(value, told):
    assert refusal(RoundTrip.parse, value) == told


def test_a_list_of_servers_in_a_matrix_is_refused_where_it_stands(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text("axes:\n  strategy: redlock(nodes=3)\n  rtt: [[0.5ms, 1ms, 20ms]]\n")
    with pytest.raises(InputError) as caught:
        load_matrix(path)
    assert caught.value.message.endswith(
        "m.yaml:3:9: axes.rtt: a list in a list is not a round-trip time; one value for several servers is "
        "per-server(0.5ms, 1ms, 20ms)"
    )


def test_it_is_an_axis_like_all_others():
    cells = expand(matrix_from_options(strategy="mutex", rtt="0,0.5ms,lognormal(20ms, 0.3)"))
    assert [one.id for one in cells] == ["mutex", "mutex rtt=500us", "mutex rtt=lognormal(20ms, 0.3)"]
    assert [one.columns()["rtt"] for one in cells] == ["0", "500us", "lognormal(20ms, 0.3)"]
    assert say_condition("rtt", "500us") == "rtt 500us"


def test_the_core_is_told_the_time_of_each_server():
    (one,) = expand(matrix_from_options(strategy="redlock(nodes=3)", rtt="per-server(1ms, exp(2ms), 3ms)"))
    (same,) = expand(matrix_from_options(strategy="redlock(nodes=3)", rtt="1ms"))
    assert [server["rtt"] for server in spec_of(one, 3)["servers"]] == [
        {"kind": "fixed", "value_ns": MS},
        {"kind": "exp", "mean_ns": 2 * MS},
        {"kind": "fixed", "value_ns": 3 * MS},
    ]
    assert [server["rtt"]["value_ns"] for server in spec_of(same, 3)["servers"]] == [MS] * 3
    assert "rtt" not in spec_of(same, 3)


def spec_of(one, servers):
    times = {"seed": 1, "warmup_ns": 0, "duration_ns": 1}
    return trial_spec(one, [{"kind": "redis"}] * servers, cores=[], key_prefix="p", client_name="c", **times)


def test_a_record_has_the_text_and_the_mean_over_the_servers_of_the_lock():
    named = RoundTrip.parse("per-server(1ms, uniform(1ms, 3ms), 9ms)")
    of_three = record(cell("redlock", args=(("nodes", 3),), rtt=named)).row
    assert (of_three["rtt"], of_three["rtt_ms"]) == ("per-server(1ms, uniform(1ms, 3ms), 9ms)", 4.0)
    assert record(cell("mutex", rtt=named)).row["rtt_ms"] == 1.0
    assert (record(cell()).row["rtt"], record(cell()).row["rtt_ms"]) == ("0", 0.0)


def test_locks_of_fewer_servers_take_the_first_times_so_that_all_stand_on_one_network():
    plan = planned(strategy="mutex,redlock(nodes=3)", rtt="per-server(1ms, 2ms, 9ms)")
    assert not plan.refused
    mutex, redlock = plan.cells
    assert (added_ns(mutex), added_ns(redlock)) == (1 * MS, 2 * MS)
    assert plan.warnings == []


def test_a_lock_of_more_servers_than_times_is_refused_and_spare_times_are_named():
    assert reasons(strategy="redlock", rtt="per-server(1ms, 2ms, 9ms)") == [
        "rtt names 3 servers, and redlock has 5 servers; name at least 5 servers"
    ]
    (warning,) = planned(strategy="mutex,redlock(nodes=3)", rtt="per-server(1ms, 2ms, 3ms, 4ms)").warnings
    assert warning == "rtt per-server(1ms, 2ms, 3ms, 4ms) names 4 servers, and no lock with it has more than 3"


def test_a_round_trip_that_reaches_the_reply_timeout_is_refused():
    assert reasons(strategy="mutex", rtt="999ms,1s", ttl="10s") == [
        "the rtt of 1s is not shorter than the reply timeout of 1s, after which a command counts as lost; shorten rtt"
    ]
    (reason,) = reasons(strategy="redlock(nodes=3)", rtt="per-server(1ms, 2ms, exp(2s))")
    assert reason.startswith("the rtt of exp(2s) to server 3 is not shorter than the reply timeout of 1s")


def test_a_tail_beyond_the_reply_timeout_is_a_warning():
    assert planned(strategy="mutex", rtt="exp(100ms)").warnings == []
    assert planned(strategy="mutex", rtt="exp(200ms)").warnings == [
        "0.674 % of the round trips of exp(200ms) are longer than the reply timeout of 1s: their commands count as lost"
    ]


def test_a_lease_that_ends_before_its_grant_arrives_is_refused():
    (reason,) = reasons(strategy="mutex", rtt="96ms,98ms", ttl="100ms", allow="hold-beyond-ttl")
    assert reason == (
        "with an rtt of 98ms a grant comes after its lease of 100ms, which counts from the send of the request, less "
        "the clock-skew margin; lengthen ttl, or shorten rtt"
    )
    assert reasons(strategy="pg-advisory", rtt="500ms", ttl="100ms") == []


def test_a_hold_has_the_lease_less_a_round_trip():
    assert reasons(strategy="mutex", rtt="10ms", hold="80ms,87ms", ttl="100ms") == [
        "the hold of 87ms does not fit into the lease of 100ms, which leaves 87ms after the clock-skew margin and a "
        "round trip of 10ms; lengthen ttl, shorten hold, or set allow: [hold-beyond-ttl]"
    ]


def test_a_quorum_needs_a_majority_within_its_timeout_and_leaves_a_distant_server_out():
    assert reasons(strategy="redlock(nodes=3)", rtt="per-server(1ms, 60ms, 70ms)") == [
        "with an rtt of per-server(1ms, 60ms, 70ms) no majority of the servers replies within 50ms, the time that "
        "redlock allows each server; shorten rtt, or raise node_timeout_ms"
    ]
    assert planned(strategy="redlock(nodes=3)", rtt="per-server(1ms, 2ms, 80ms)").warnings == [
        "server 3 of redlock, at an rtt of 80ms, never counts: the lock waits 50ms for each server; raise "
        "node_timeout_ms to count it"
    ]
    assert planned(strategy="redlock(nodes=3, node_timeout_ms=200)", rtt="per-server(1ms, 60ms, 80ms)").warnings == []


def test_a_rate_that_the_round_trips_make_impossible_is_a_warning():
    beyond = {"strategy": "mutex", "concurrency": 16, "keys": 1_000, "rtt": "20ms"}
    assert planned(**beyond, rate="300/s").warnings == []
    assert planned(**beyond, rate="500/s").warnings == [
        "a rate of 500/s cannot be kept: 16 clients of mutex at an rtt of 20ms make at most 399 grants/s"
    ]


def test_a_plan_takes_longer_by_the_round_trips_outside_of_the_windows():
    near, far = (planned(strategy="mutex", rtt=rtt, trials=3).seconds for rtt in ("0", "100ms"))
    assert far - near == pytest.approx(3 * 0.4)


def test_the_checks_of_a_run_itself_stand_on_the_machine_as_it_is():
    (one,) = expand(matrix_from_options(strategy="mutex", rtt="20ms"))
    idle = control.round_trip_cell([one], "redis", ServerKind.REDIS)
    checks = [idle, *control.control_cells([one]), *probes.probe_cells([one])]
    assert all(check.rtt.is_zero for check in checks)


def test_charts_draw_it_in_milliseconds_where_all_values_are_lengths():
    assert (place_on_chart("rtt", "0"), place_on_chart("rtt", "500us")) == (0.0, 0.5)
    assert place_on_chart("rtt", "exp(1ms)") is None
    assert place_on_chart("rtt", "per-server(1ms, 2ms)") is None
    assert place_on_chart("hold", "1ms") is None, "a hold is a panel of its own"
    assert (place_on_chart("ttl_ms", 50), place_on_chart("rtt", "of another version")) == (50.0, None)
    assert (chart_title("rtt"), chart_title("concurrency")) == ("rtt (ms)", "clients")
