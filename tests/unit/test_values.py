from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans import refusal

from pybench.matrix import durations
from pybench.matrix.cells import Cell
from pybench.matrix.durations import format_duration, format_lease, format_rate, parse_duration, parse_lease, parse_rate
from pybench.matrix.values import Connections, Distribution, KeyChoice, Retry
from pybench.notation import BadValue, parse_call, split_list

flattened = itertools.chain.from_iterable
lengths = st.integers(0, durations.LONGEST_DURATION_NS)
positive_lengths = st.integers(1, durations.LONGEST_DURATION_NS)
sigmas = st.floats(0.001, 10)
distributions = st.one_of(
    lengths.map(lambda ns: Distribution("fixed", (ns,))),
    positive_lengths.map(lambda ns: Distribution("exp", (ns,))),
    st.tuples(positive_lengths, sigmas).map(lambda both: Distribution("lognormal", both)),
    st.lists(lengths, min_size=2, max_size=2, unique=True).map(lambda two: Distribution("uniform", tuple(sorted(two)))),
    by_quantiles := st.integers(2, 8).flatmap(
        lambda count: st.tuples(
            st.lists(
                st.sampled_from([1, 2.5, 5, 10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.9, 99.99]),
                min_size=count,
                max_size=count,
                unique=True,
            ),
            st.lists(positive_lengths, min_size=count, max_size=count, unique=True),
        ).map(lambda both: Distribution("quantiles", tuple(flattened(zip(*map(sorted, both), strict=True)))))
    ),
)
attempts = st.none() | st.integers(1, 2**31)


@st.composite
def retries(draw):
    kind = draw(st.sampled_from(["none", "fixed", "exponential", "full-jitter", "equal-jitter", "decorrelated-jitter"]))
    if kind == "none":
        return Retry.parse("none")
    base, cap = sorted(draw(st.lists(positive_lengths, min_size=2, max_size=2)))
    fields = {"base": format_duration(base), "max_wait": format_duration(draw(positive_lengths))}
    if kind != "fixed":
        fields["cap"] = format_duration(cap)
    if kind not in ("fixed", "decorrelated-jitter"):
        fields["factor"] = str(draw(st.floats(1, 1_000)))
    if (most := draw(attempts)) is not None:
        fields["max_attempts"] = str(most)
    return Retry.parse({"kind": kind, **fields})


@given(lengths)
def test_every_duration_reads_back_from_its_canonical_text(ns):
    assert parse_duration(format_duration(ns)) == ns


@given(st.integers(1, durations.LONGEST_LEASE_MS))
def test_every_lease_reads_back_from_its_canonical_text(ms):
    assert parse_lease(format_lease(ms)) == ms


@given(st.floats(durations.LOWEST_RATE_PER_S, durations.HIGHEST_RATE_PER_S))
def test_every_rate_reads_back_from_its_canonical_text(rate):
    assert parse_rate(format_rate(rate)) == rate


@given(distributions)
def test_every_distribution_reads_back_from_its_canonical_text(distribution):
    assert Distribution.parse(distribution.text) == distribution


@given(distributions, st.floats(0.001, 0.999))
def test_the_share_above_a_quantile_is_what_lies_above_it(distribution, q):
    if distribution.kind == "fixed":
        assert distribution.share_above(distribution.quantile(q)) == 0.0
    elif distribution.quantile(q) < 2**62:
        assert distribution.share_above(distribution.quantile(q)) == pytest.approx(1 - q, abs=1e-6)


@given(by_quantiles)
def test_a_distribution_goes_through_its_quantiles(distribution):
    for percent, ns in zip(distribution.parameters[::2], distribution.parameters[1::2], strict=True):
        assert distribution.quantile(percent / 100) == pytest.approx(ns, rel=1e-6)
        assert distribution.share_above(ns) == pytest.approx(1 - percent / 100, abs=1e-9)


@given(retries())
def test_every_retry_policy_reads_back_from_its_canonical_text(retry):
    assert Retry.parse(retry.text) == retry


@given(st.text(max_size=40))
def test_no_text_makes_a_parser_fail_in_any_way_but_its_own(text):
    for parse in (parse_duration, parse_lease, parse_rate, Distribution.parse, KeyChoice.parse, Connections.parse):
        with contextlib.suppress(BadValue):
            parse(text)


@pytest.mark.parametrize(
    ("text", "ns", "canonical"),
    [
        ("0", 0, "0"),
        (0, 0, "0"),
        (0.0, 0, "0"),
        ("0ms", 0, "0"),
        ("250us", 250_000, "250us"),
        ("250µs", 250_000, "250us"),
        ("0.25ms", 250_000, "250us"),
        (".5ms", 500_000, "500us"),
        ("2ms", 2_000_000, "2ms"),
        ("1000us", 1_000_000, "1ms"),
        (" 1.5 s ", 1_500_000_000, "1.5s"),
        ("90s", 90_000_000_000, "90s"),
        ("2m", 120_000_000_000, "2m"),
        ("120s", 120_000_000_000, "2m"),
        ("24h", 86_400_000_000_000, "24h"),
        ("7ns", 7, "7ns"),
        ("1.000000001s", 1_000_000_001, "1.000000001s"),
    ],
)
def test_a_duration_is_read_with_its_unit(text, ns, canonical):
    assert parse_duration(text) == ns
    assert format_duration(ns) == canonical


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (2, "2 has no unit; use 2s or 2ms"),
        ("2", '"2" has no unit; use 2s or 2ms'),
        (1.5, "1.5 has no unit; use 1.5s or 1.5ms"),
        ("-1ms", '"-1ms" is negative; a duration is 0 or longer'),
        (-3, "-3 is negative; a duration is 0 or longer"),
        (float("nan"), "nan is not a duration; use for example 2s or 2ms"),
        (float("inf"), "inf is not a duration; use for example 2s or 2ms"),
        (True, "true is not a duration; use for example 2s or 2ms"),
        (None, "nothing is not a duration; use for example 2s or 2ms"),
        ([1], "a list is not a duration; use for example 2s or 2ms"),
        ("2S", '"2S" has the unknown unit "S"; did you mean 2s?'),
        ("3 secs", '"3 secs" has the unknown unit "secs"; did you mean 3s?'),
        ("2d", '"2d" has the unknown unit "d"; units are ns, us, ms, s, m, h'),
        ("25h", '"25h" is too long; at most 24h'),
        ("9" * 30 + "h", f'"{"9" * 30}h" is too long; at most 24h'),
        ("0.5ns", '"0.5ns" is finer than a nanosecond; use whole nanoseconds'),
        ("1e3ms", '"1e3ms" is not a duration; use for example 2s or 2ms'),
    ],
)
def test_what_is_no_duration_is_refused_with_what_to_say(value, told):
    assert refusal(parse_duration, value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("0", '"0" is not a lease; at least 1ms'),
        ("1.5ms", '"1.5ms" is not in whole milliseconds; use 2ms'),
        ("9007199254740993ms", '"9007199254740993ms" is too long; at most 9007199254740.992s'),
    ],
)
def test_a_lease_is_whole_milliseconds_up_to_2_to_the_53(value, told):
    assert parse_lease("9007199254740992ms") == 2**53
    assert refusal(parse_lease, value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (5000, "5000 is not a rate; use 5000/s"),
        ("5000", '"5000" is not a rate; use 5000/s'),
        ("5/m", '"5/m" is not a rate; rates are per second: 0.08333/s'),
        ("1k", '"1k" is not a rate; use 1000/s'),
        ("1k/s", '"1k/s" is not a usable rate; use 1000/s'),
        ("1,000/s", '"1,000/s" is not a usable rate; use 1000/s'),
        ("2.5M", '"2.5M" is not a rate; use 2500000/s'),
        ("100M", '"100M" is not a rate; at most 10000000/s'),
        ("60rpm", '"60rpm" is not a rate; use 1/s'),
        ("1234rps", '"1234rps" is not a rate; use 1234/s'),
        ("12345.5 rps", '"12345.5 rps" is not a rate; use 12350/s'),
        ("30 per minute", '"30 per minute" is not a rate; use 0.5/s'),
        ("7/x", '"7/x" is not a rate; use for example 5000/s'),
        ("1/year", '"1/year" is not a rate; use for example 5000/s'),
        # A minute or a million: no guess.
        ("5m", '"5m" is not a rate; use for example 5000/s'),
        ("fast", '"fast" is not a rate; use for example 5000/s'),
        ("0/s", '"0/s" is not a usable rate; at least 0.001/s'),
        ("nan/s", '"nan/s" is not a usable rate; use for example 5000/s'),
        ("1e9/s", '"1e9/s" is not a usable rate; at most 10000000/s'),
    ],
)
def test_what_is_no_rate_is_refused_with_what_to_say(value, told):
    assert refusal(parse_rate, value) == told


@pytest.mark.parametrize(
    ("text", "median_ns"),
    [("2ms", 2_000_000), ("exp(2ms)", 1_386_294), ("lognormal(2ms, 0.8)", 2_000_000), ("uniform(1ms, 4ms)", 2_500_000)],
)
def test_half_of_the_draws_of_a_distribution_exceed_its_median(text, median_ns):
    assert Distribution.parse(text).median() == median_ns


@pytest.mark.parametrize(
    ("parse", "value", "told"),
    [
        (Distribution.parse, "expo(2ms)", '"expo(2ms)" is not a distribution; use for example exp(2ms)'),
        (Distribution.parse, "exp(2)", '"2" has no unit; use 2s or 2ms'),
        (Distribution.parse, "exp(0)", '"0" is out of range; use a duration above 0'),
        (Distribution.parse, "lognormal(2ms, x)", '"x" is not a number; None'),
        (Distribution.parse, "quantiles(p50=1s)", "quantiles takes 2 to 8 quantiles; use quantiles(p50="),
        (Distribution.parse, "quantiles(p50=2s, p99=1s)", "the length at p99, 1s, is not above that at p50, 2s; "),
        (Distribution.parse, "quantiles(p0=1s, p99=2s)", '"p0" is not a quantile between 0 and 100 percent; name it'),
        (Distribution.parse, "quantiles(p50=1s, p100=2s)", '"p100" is not a quantile between 0 and 100 percent; '),
        (Distribution.parse, "quantiles(p99=1s, p99.0=2s)", "p99 is given twice; "),
        (Distribution.parse, "quantiles(p50=0, p99=2s)", 'p50="0" is out of range; use a length above 0'),
        (
            Distribution.parse,
            "uniform(3ms, 1ms)",
            '"uniform(3ms, 1ms)" is an empty range; put the lower bound first',
        ),
        (Distribution.parse, "exp(2ms", 'the parentheses of "exp(2ms" do not match'),
        (KeyChoice.parse, "zipf", '"zipf" is not a key choice; use for example zipf(1.1)'),
        (KeyChoice.parse, "zipf(0)", '"0" is out of range; at least 0.001'),
        (KeyChoice.parse, 1, "1 is not a key choice; use one of uniform, zipf(1.1), single"),
        (Connections.parse, "per_client", '"per_client" is not a kind of connections; use for example per-client'),
        (Connections.parse, "shared(0)", "0 is out of range; at least 1"),
        (Retry.parse, "fulljitter", '"fulljitter" is not a retry policy; did you mean full-jitter?'),
        (
            Retry.parse,
            "none(base=1ms)",
            "the retry policy none has no field base; none makes one attempt and has no fields",
        ),
        (Retry.parse, "fixed(cap=1s)", "the retry policy fixed has no field cap; known: base, max_attempts, max_wait"),
        (Retry.parse, "fixed(1ms)", '"1ms" has no name in "fixed(1ms)"; name the fields: fixed(base=2ms)'),
        (Retry.parse, "fixed(base=1ms, base=2ms)", "base is given twice"),
        (Retry.parse, "full-jitter(base=1s)", "the base of 1s is longer than the cap of 50ms; use cap=1s or more"),
        (Retry.parse, "exponential(base=0)", "exponential with a base of 0 never pauses; use fixed(base=0)"),
        (Retry.parse, "fixed(max_attempts=0)", "max_attempts: 0 is out of range; at least 1"),
        (Retry.parse, {"kind": "fixed", "base": 2}, "base: 2 has no unit; use 2s or 2ms"),
    ],
)
def test_an_unusable_value_is_refused_with_what_to_say(parse, value, told):
    assert told in refusal(parse, value)


def test_a_policy_names_only_what_is_off_its_defaults():
    assert Retry.parse({"kind": "full-jitter", "base": "1ms", "cap": "50ms", "max_wait": "10s"}).text == "full-jitter"
    assert Retry.parse("fixed( max_wait = 5s, base=2ms )").text == "fixed(base=2ms, max_wait=5s)"
    assert Retry.parse({"base": "2ms"}) == Retry.parse("full-jitter(base=2ms)")


def test_quantiles_are_named_as_people_write_them_and_kept_in_one_form():
    given = Distribution.parse("quantiles(p99.9=5s, p50=50ms, p2.5=1ms, p99=2s)")
    assert given.text == "quantiles(p2.5=1ms, p50=50ms, p99=2s, p999=5s)"
    # Beyond the last the line goes on, so that the tail of a hold is not cut off at what was given.
    assert Distribution.parse("quantiles(p50=50ms, p99=2s)").quantile(0.999) == pytest.approx(6.7156e9, rel=1e-4)


def test_the_core_is_told_numbers_in_nanoseconds():
    assert Distribution.parse("lognormal(2ms, 0.8)").to_core() == {
        "kind": "lognormal",
        "median_ns": 2_000_000,
        "sigma": 0.8,
    }
    assert Distribution.parse("uniform(1ms, 3ms)").to_core() == {
        "kind": "uniform",
        "low_ns": 1_000_000,
        "high_ns": 3_000_000,
    }
    assert KeyChoice.parse("zipf(1.1)").to_core() == {"kind": "zipf", "s": 1.1}
    assert KeyChoice.parse("uniform").to_core() == {"kind": "uniform"}
    assert Cell(id="closed", strategy="mutex", args=()).to_core()["loop"] == {"kind": "closed"}
    opened = Cell(id="open", strategy="mutex", args=(), rate_per_s=5000.0, arrival_process="poisson", max_in_flight=100)
    assert opened.to_core()["loop"] == {
        "kind": "open",
        "arrivals": "poisson",
        "rate_per_s": 5000.0,
        "max_in_flight": 100,
    }
    assert Retry.parse("none").to_core()["max_attempts"] == 1
    assert Retry.parse("full-jitter").to_core() == {
        "kind": "full-jitter",
        "base_ns": 1_000_000,
        "factor": 2.0,
        "cap_ns": 50_000_000,
        "max_attempts": None,
        "max_wait_ns": 10_000_000_000,
    }


def test_no_more_connections_are_shared_than_there_are_clients():
    shared = Connections.parse("shared(4)")
    assert shared.to_core(1) == {"kind": "shared", "count": 1}
    assert shared.to_core(64) == {"kind": "shared", "count": 4}
    assert Connections.parse("per-client").to_core(64) == {"kind": "per-client"}
    assert Connections.parse("per-client").used_by(64) == 64


def test_a_list_is_cut_at_commas_outside_of_parentheses():
    assert split_list("redlock(nodes=5, fanout=sequential), mutex") == ["redlock(nodes=5, fanout=sequential)", "mutex"]
    assert split_list("  ") == []
    for text in ("a,,b", ",a", "a,", "f(a))", "f(a"):
        with pytest.raises(BadValue):
            split_list(text)


def test_a_call_is_taken_apart_into_name_positions_and_names():
    call = parse_call(" f( 1ms , b = g(2, 3) ) ")
    assert (call.name, call.positional, call.named) == ("f", ("1ms",), {"b": "g(2, 3)"})
    assert parse_call("f()") == parse_call("f")
