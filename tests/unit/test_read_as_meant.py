"""Input that could be read otherwise than it was meant is refused, with what to say instead."""

from __future__ import annotations

import pytest

from pybench.errors import InputError
from pybench.matrix import load_matrix, matrix_from_options
from pybench.matrix.durations import parse_rate
from pybench.servers import Endpoint
from pybench.servers.postgres import PostgresEndpoint


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://h:0", "the port is no number from 1 to 65535"),
        ("redis://h/3?db=5", "it names the database twice"),
        ("redis://h?db=3&db=5", "it names the database twice"),
        ("redis://:a@h?password=b", "it names the password twice"),
        ("redis://ann@h?username=bob", "it names the user twice"),
        ("redis://a..b", "its host is not the name of a host"),
        (f"redis://{'a' * 64}.example", "its host is not the name of a host"),
    ],
)
def test_an_address_of_redis_means_one_thing(url: str, told: str):
    with pytest.raises(InputError, match=told):
        Endpoint.parse(url)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://h:0/db", "the port is no number"),
        ("postgresql://u:a@h/db?password=b", "it names the password twice"),
        ("postgresql://u@h/db?user=v", "it names the user twice"),
        ("postgresql://u@h/db?dbname=d", "it names the database twice"),
        ("postgresql://u@h:1/db?port=2", "it names the port twice"),
        ("postgresql://u@h/db?host=i", "it names the host twice"),
        ("postgresql://u@/db?port=1&port=2", "it names the port twice"),
        ("postgresql://u@a..b/db", "its host is not the name of a host"),
    ],
)
def test_an_address_of_postgres_means_one_thing(url: str, told: str):
    with pytest.raises(InputError, match=told):
        PostgresEndpoint.parse(url)


@pytest.mark.parametrize("text", ["1,024", "10,000", "1,000,000", "64,007"])
def test_a_comma_inside_of_a_number_is_refused(text: str):
    with pytest.raises(InputError) as caught:
        matrix_from_options({}, strategy="mutex", keys=text)
    assert "--keys" in caught.value.message
    assert "begins with a zero; write a number without a comma" in caught.value.message
    with pytest.raises(InputError, match="begins with a zero; write a number without a comma"):
        load_matrix("m.yaml", f"axes: {{strategy: [mutex], keys: [{text}]}}\n")


@pytest.mark.parametrize("text", ["1,64", "1,100", "512,128"])
def test_a_list_of_numbers_stays_one(text: str):
    assert len(matrix_from_options({}, strategy="mutex", concurrency=text).axes.concurrency) == 2


@pytest.mark.parametrize(
    ("rate", "meant"),
    [("60/min", "1/s"), ("3600/h", "1/s"), ("90/m", "1.5/s"), ("5/ms", "5000/s"), ("7/sec", "7/s")],
)
def test_a_rate_of_another_unit_is_told_as_one_a_second(rate: str, meant: str):
    with pytest.raises(InputError) as caught:
        parse_rate(rate)
    assert caught.value.hint == f"rates are per second: {meant}"


@pytest.mark.parametrize(("character", "code"), [("\u00a0", "U+00A0"), ("\u200b", "U+200B"), ("\u2003", "U+2003")])
def test_an_invisible_character_before_a_key_is_named_with_its_line(character: str, code: str):
    with pytest.raises(InputError) as caught:
        load_matrix("m.yaml", f"axes:\n  strategy: [mutex]\n{character} keys: [1]\n")
    assert f"m.yaml:3:1: a key contains the invisible character {code}" in caught.value.message
