"""Each column writes all its figures with one precision, whoever shows it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybench.columns import COLUMNS
from pybench.formats import Format, digits

FIGURES = st.floats(min_value=1e-3, max_value=1e12)


def test_every_column_of_numbers_has_a_format():
    assert [column.name for column in COLUMNS.values() if column.is_number and column.format is Format.TEXT] == []


@pytest.mark.parametrize(
    ("format_", "values", "texts"),
    [
        (Format.TIME_US, (48, 1_200, 650_000, 999.96, 0, 0.4), "48.0 µs|1.20 ms|650 ms|1.00 ms|0|400 ns"),
        (Format.TIME_MS, (26,), "26.0 ms"),
        (Format.TIME_S, (90, 150, 7_300), "90.0 s|2.50 min|2.03 h"),
        (Format.RATE, (152_960, 21.43, 0.3333, 99.96), "153,000|21.4|0.333|100"),
        (Format.RATIO, (1, 12.4, 0), "1.00|12.40|0.00"),
        (Format.INDEX, (1, 0.9999, 0.125, 0), "1.000|>0.999|0.125|0.000"),
        (Format.SHARE, (1, 0.9999, 0.031, 0.0001, 0), "100.0 %|>99.9 %|3.1 %|<0.1 %|0.0 %"),
        (Format.PER_MILLION, (2_020, 15), "0.20 %|0.0015 %"),
        (Format.BYTES, (412, 1_536), "412 B|1.50 KiB"),
        (Format.COUNT, (12_345, 0), "12,345|0"),
    ],
)
def test_a_format_writes(format_, values, texts):
    assert "|".join(format_.text(value) for value in values) == texts
    assert (format_.text(None), format_.text(float("nan"))) == ("n/a", "n/a")


@given(FIGURES, st.integers(2, 4))
def test_trailing_zeros_stay(value, count):
    text = digits(value, count)
    shown = text.replace(",", "").replace(".", "").lstrip("0")
    assert len(shown) == count or ("." not in text and len(shown) > count)
    assert float(text.replace(",", "")) == pytest.approx(value, rel=10.0 ** (1 - count))


@given(FIGURES)
def test_a_time_shows_three_digits_in_a_unit_in_which_it_is_neither_tiny_nor_long(value):
    figure, unit = Format.TIME_US.text(value).split(" ")
    assert unit in ("ns", "µs", "ms", "s", "min", "h")
    assert len(re.sub(r"\D", "", figure).lstrip("0")) >= 3
    assert unit in ("ns", "h") or 0.99 < float(figure.replace(",", "")) < 1_000
