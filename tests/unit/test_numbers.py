from __future__ import annotations

import math

import pandas as pd
import pytest

from pybench.numbers import (
    format_bytes,
    format_count,
    format_exact,
    format_ns,
    format_percent,
    format_points,
    format_rate,
    format_ratio,
    format_seconds,
    format_us,
    plural,
    significant,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (7, "7"), (0.4242, "0.424"), (999, "999"), (999.6, "1 k"), (1_000, "1 k"), (12_345, "12.3 k"),
        (999_499, "999 k"), (999_950, "1 M"), (4_100_000, "4.1 M"), (2.5e9, "2.5 G"), (-1_500, "-1.5 k"),
    ],
)  # fmt: skip
def test_a_count_has_three_digits_and_a_suffix(value, text):
    assert format_count(value) == text


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0"), (0.85, "850 ns"), (0.9999, "1 µs"), (85.04, "85 µs"), (999.9, "1 ms"), (1_234, "1.23 ms"),
        (2_500_000, "2.5 s"), (90_000_000, "90 s"), (186_000_000, "3.1 min"), (7.3e9, "2.03 h"),
    ],
)  # fmt: skip
def test_a_time_is_shown_in_the_unit_that_suits(us, text):
    assert format_us(us) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (0.0035, "<1 B"), (412, "412 B"), (1_536, "1.5 KiB"), (128 * 2**20, "128 MiB"), (2**40, "1,020 GiB")],
)
def test_bytes_are_shown_in_the_unit_that_suits(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize("nothing", [None, math.nan, pd.NA, float("nan")])
@pytest.mark.parametrize(
    "show", [format_bytes, format_count, format_exact, format_rate, format_us, format_ns, format_ratio, format_percent]
)
def test_what_is_not_there_is_na(show, nothing):
    assert show(nothing) == "n/a"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.00"),
        (0.9996, "1.00"),
        (9.996, "10"),
        (0.9973, "0.997"),
        (0.0, "0"),
        (0.0004, "0.000"),
        (1.534, "1.53"),
        (12.44, "12.4"),
    ],
)
def test_a_ratio_keeps_its_places(value, text):
    assert format_ratio(value) == text


def test_the_rest_reads_as_it_should():
    assert format_rate(12_345) == "12.3 k/s"
    assert format_ns(1_500_000) == "1.5 ms"
    assert format_percent(0.0312) == "3.12 %"
    assert format_exact(12_345.0) == "12,345"
    assert plural(1, "client") == "1 client"
    assert plural(1000, "key") == "1,000 keys"
    assert plural(2, "lease overrun", "lease overruns") == "2 lease overruns"
    assert significant(123_456) == "123,000"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100 %"),
        (0.9999, "99.99 %"),
        (0.99999, ">99.99 %"),
        (0.999, "99.9 %"),
        (0.0, "0 %"),
        (-0.0, "0 %"),
        (0.00715, "0.715 %"),
        (None, "n/a"),
    ],
)
def test_what_is_not_all_of_it_is_not_100_percent(share, text):
    assert format_percent(share) == text


@pytest.mark.parametrize(("points", "text"), [(9.8, "9.8"), (-0.04, "0"), (0.0, "0"), (12.34, "12.3")])
def test_a_zero_has_no_sign(points, text):
    assert format_points(points) == text


def test_seconds_have_three_digits():
    assert format_seconds(5.00002) == "5 s"
